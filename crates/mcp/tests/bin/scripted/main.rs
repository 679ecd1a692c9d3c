//! A server that does what a test wants: odd answers, silence, noise, death.
//!
//! `scripted MODE` speaks on its standard input and output; the modes are those
//! of [`Mode`]. `scripted __launch …` is the launcher of the tests, and `scripted
//! parent` connects to another one and waits to be killed. `scripted driver URL`
//! is a client for the official conformance suite.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "stdout is its wire, stderr its log"
)]

mod driver;
mod human;
mod lists;
mod parent;
mod script;

use std::io::BufRead;
use std::process::ExitCode;

fn main() -> ExitCode {
    match mcp::connect::launch::run_if_requested(std::env::args_os().skip(1)) {
        Some(Ok(())) => return ExitCode::SUCCESS,
        Some(Err(error)) => {
            eprintln!("{error}");
            return ExitCode::from(127);
        }
        None => {}
    }
    let mode = std::env::args().nth(1).unwrap_or_default();
    if mode == "parent" {
        return parent::run();
    }
    if mode == "driver" {
        return driver::run();
    }
    if mode == "exit" {
        eprintln!("Error: no API key");
        return ExitCode::from(3);
    }
    let mut script = script::Script::new(&mode);
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        if script.hear(&line).is_break() {
            break;
        }
    }
    if mode == "stubborn" {
        // Neither closed pipes nor SIGTERM move it, as far as it can help.
        std::thread::park();
    }
    ExitCode::SUCCESS
}
