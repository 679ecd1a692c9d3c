//! The binary: parses the command line, runs the command, and picks the exit code. Started
//! with other first arguments, the same executable launches an upstream, confines a program
//! in a sandbox, or runs scripts.

mod cli;
mod commands;

mod config_loader;
mod paths;
mod wire;

mod fetch;
mod local_socket;
mod mounts;
mod running;
mod search_paths;

mod approval_queue;
mod exit;
mod key_file;
mod ledger_file;
mod logging;
mod polled_file;
mod recipe_files;
mod secret;
mod secrets;
mod terminal;
mod time;
mod trusted_directories;
mod usage_file;

use std::process::ExitCode;

use clap::CommandFactory;
use mimalloc::MiMalloc;

/// A call makes many small allocations, for which the platform's allocator took
/// an eighth of its instructions: `docs/decisions/030-allocator.md`.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    // Upstreams are started through ourselves, so that they die with us.
    if let Some(done) = mcp::connect::launch::run_if_requested(std::env::args_os().skip(1)) {
        return match done {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                terminal::say(&error.to_string());
                ExitCode::from(mcp::connect::launcher::EXIT_NOT_STARTED)
            }
        };
    }
    // A program with a sandbox is started by an executable that confines itself.
    if let Some(done) = sandbox::launch::run_if_requested(std::env::args_os().skip(1)) {
        return match done {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                terminal::say(&error.to_string());
                ExitCode::from(mcp::connect::launcher::EXIT_NOT_STARTED)
            }
        };
    }
    // Scripts of callers run in processes that can do nothing else.
    if let Some(done) = script::worker::run_if_requested(std::env::args_os().skip(1)) {
        return if done.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let cli = cli::Cli::parse_words(&std::env::args_os().collect::<Vec<_>>());
    cli.color.write_global();
    let serves = matches!(cli.command, commands::Command::Serve(_) | commands::Command::Connect(_));
    let purpose = match serves {
        true => logging::Purpose::Serve,
        false => logging::Purpose::Command,
    };
    logging::init(purpose, cli.log.as_deref(), cli.color);
    match commands::run(cli.command, &cli.paths, cli::Cli::command) {
        Ok(done) => exit::success(done),
        Err(error) => exit::failure(&error),
    }
}
