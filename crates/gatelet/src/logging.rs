//! Logging: always to stderr, because stdout may carry MCP; with secrets masked. A gatelet
//! that serves also keeps its last lines for `gatelet logs`.

mod recent_lines;

use std::io::{IsTerminal, Write};
use std::sync::LazyLock;

use parking_lot::{Mutex, RwLock};
use redact::Scrubber;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

use crate::terminal::{ColorMode, colours_only};
use recent_lines::RecentLines;

/// What the process runs for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To serve clients.
    Serve,
    /// To run one command and end.
    Command,
}

/// Starts logging with the filter of `--log`. By default a gatelet that serves logs what
/// it does, and a command only errors.
pub(crate) fn init(purpose: Purpose, filter: Option<&str>, color: ColorMode) {
    // What upstreams write to their stderr is shown only on request.
    let quiet = match purpose {
        Purpose::Serve => "info,upstream=warn",
        Purpose::Command => "error",
    };
    let filter = filter.unwrap_or(quiet);
    let ansi = match color {
        ColorMode::Auto => std::io::stderr().is_terminal(),
        ColorMode::Always => true,
        ColorMode::Never => false,
    };
    let shown = tracing_subscriber::fmt::layer()
        .with_writer(|| Scrubbed(std::io::stderr()))
        .with_ansi(ansi)
        .with_target(false)
        .compact()
        .with_filter(EnvFilter::new(filter));
    // The lines for `gatelet logs` include what upstreams write to their stderr.
    let kept = (purpose == Purpose::Serve).then(|| {
        tracing_subscriber::fmt::layer()
            .with_writer(|| Scrubbed(Recent))
            .with_ansi(false)
            .with_target(false)
            .compact()
            .with_filter(EnvFilter::new("info"))
    });
    // A second subscriber can only come from a test in the same process.
    let _ = tracing_subscriber::registry().with(shown).with(kept).try_init();
}

/// Masks secrets in the log: those that look like one, and those of the configuration.
static SCRUBBER: LazyLock<RwLock<Scrubber>> = LazyLock::new(RwLock::default);

/// Masks these secrets in the log from now on: upstreams repeat what they were given on
/// their stderr.
pub(crate) fn mask(known_secrets: Vec<String>) {
    *SCRUBBER.write() = Scrubber::new(redact::Config { enabled: true, known_secrets });
}

/// The last lines of the log.
static RECENT: LazyLock<Mutex<RecentLines>> = LazyLock::new(Mutex::default);

/// The last lines of the log, at most `n_lines`.
pub(crate) fn recent(n_lines: usize) -> Vec<String> {
    RECENT.lock().last(n_lines)
}

/// The last lines of the log about an upstream, at most `n_lines`.
pub(crate) fn recent_of(label: &str, n_lines: usize) -> Vec<String> {
    RECENT.lock().last_of(label, n_lines)
}

/// A writer that appends to [`RECENT`].
struct Recent;

impl Write for Recent {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        RECENT.lock().push(String::from_utf8_lossy(line).trim_end().to_owned());
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A writer that masks secrets and escapes control and invisible characters: text of
/// upstreams ends up in logs too. Further lines of a message are indented, so that none of
/// them looks like a line of the log.
struct Scrubbed<W>(W);

impl<W: Write> Write for Scrubbed<W> {
    /// Gets whole messages, so that no secret is cut in two.
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        let text = SCRUBBER.read().scrub(text.trim_end_matches('\n')).replace('\n', "\n    ");
        self.0.write_all(format!("{}\n", colours_only(&text)).as_bytes())?;
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

    #[test]
    fn what_the_configuration_names_as_secret_is_masked_in_the_log() {
        mask(vec!["zq7Wk2mV9xRt4LpB8nHc".to_owned()]);
        let mut log = Scrubbed(Vec::new());
        let line = b"it: invalid token zq7Wk2mV9xRt4LpB8nHc (enE3V2sybVY5eFJ0NExwQjhuSGM=)\n";
        log.write_all(line).unwrap();
        let written = String::from_utf8(log.0).unwrap();
        assert!(!written.contains("zq7W") && !written.contains("enE3V2sy"), "{written}");
    }

    #[test]
    fn nobody_forges_a_line_of_the_log_or_hides_in_one() {
        let mut log = Scrubbed(Vec::new());
        let line =
            "evil: a\rb\0\u{202e}\u{200b}\u{2028}\u{3164}\u{e0100}\n2026-01-01  INFO granted\n";
        log.write_all(line.as_bytes()).unwrap();
        let written = String::from_utf8(log.0).unwrap();
        let shown = "evil: a\\u{d}b\\u{0}\\u{202e}\\u{200b}\\u{2028}\\u{3164}\\u{e0100}\n    2026-01-01  INFO granted\n";
        assert_eq!(written, shown);
        let mut log = Scrubbed(Vec::new());
        log.write_all("\u{1b}[32m INFO\u{1b}[0m é ⚠\u{fe0f}\n".as_bytes()).unwrap();
        assert_eq!(log.0, "\u{1b}[32m INFO\u{1b}[0m é ⚠\u{fe0f}\n".as_bytes(), "colours are ours");
    }
}
