//! Logs, on stderr always: on stdio, stdout is the wire.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::cli::{Cli, Command};
use crate::terminal::Color;

/// Starts logging at the level that the command line asks for: what a server
/// does is worth a line, what a one-off command does only when it goes wrong.
pub(crate) fn init(cli: &Cli) {
    let quiet = if matches!(cli.command, Command::Serve(_)) { "info" } else { "error" };
    let filter = cli.log.as_deref().unwrap_or(quiet);
    let ansi = match cli.color {
        Color::Auto => std::io::stderr().is_terminal(),
        Color::Always => true,
        Color::Never => false,
    };
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(filter))
        .with_writer(std::io::stderr)
        .with_ansi(ansi)
        .with_target(false)
        .compact();
    // A second subscriber can only come from a test in the same process.
    let _ = subscriber.try_init();
}
