//! Logs, on stderr always: on stdio, stdout is the wire.

use std::io::{IsTerminal, Write};
use std::sync::LazyLock;

use gateway::redact::Scrubber;
use tracing_subscriber::EnvFilter;

use crate::cli::Cli;
use crate::commands::Command;
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
        .with_writer(|| Scrubbed(std::io::stderr()))
        .with_ansi(ansi)
        .with_target(false)
        .compact();
    // A second subscriber can only come from a test in the same process.
    let _ = subscriber.try_init();
}

/// A writer that lets no secret through: what upstreams say on their own
/// standard error, or when they fail, ends up in logs too.
struct Scrubbed<W>(W);

impl<W: Write> Write for Scrubbed<W> {
    /// A whole line comes at once, so that no secret is cut in two.
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        static SCRUBBER: LazyLock<Scrubber> = LazyLock::new(Scrubber::default);
        let text = String::from_utf8_lossy(line);
        self.0.write_all(SCRUBBER.scrub(&text).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_reaches_the_log() {
        let mut log = Scrubbed(Vec::new());
        log.write_all(b"files: using key sk-proj-bbbbbbbbbbbbbbbbbbbbbbbb\n").unwrap();
        assert_eq!(log.0, b"files: using key [REDACTED-SECRET]\n");
    }
}
