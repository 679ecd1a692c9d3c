//! Logs the stderr of a server program, rate limited, and keeps its last lines for error
//! messages.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::net::unix::pipe;
use tokio::time::Instant;

use crate::message::excerpt;
use crate::peer::{self, Line, Lines};

/// The longest line that is kept, in bytes.
const LOG_LINE: usize = 16 << 10;

/// How many of the last lines are kept.
const STDERR_TAIL: usize = 20;

/// How many of them are shown in an error message.
const SHOWN: usize = 5;

/// The last lines that the program wrote to stderr. Clones share them.
#[derive(Clone, Default)]
pub(super) struct StderrTail(Arc<Mutex<VecDeque<String>>>);

impl StderrTail {
    /// Logs the lines of `stderr` until it ends.
    pub(super) async fn log(self, label: String, stderr: pipe::Receiver) {
        let (mut lines, mut rate) = (Lines::new(stderr, LOG_LINE), LogRate::new());
        let mut n_taken = 0_usize;
        while let Ok(more) = lines.fill().await {
            let mut unlogged = None;
            while let Some(line) = lines.next_line() {
                match rate.step(Instant::now()) {
                    LogStep::Log { skipped } => {
                        if 0 < skipped {
                            tracing::warn!(target: "upstream", upstream = label, "it writes too much: {skipped} lines are left out");
                        }
                        let text = render(&line);
                        tracing::info!(target: "upstream", upstream = label, "{text}");
                        self.push(text);
                        unlogged = None;
                    }
                    LogStep::Skip => unlogged = Some(line),
                }
                n_taken += 1;
                if n_taken.is_multiple_of(peer::LINES_PER_TURN) {
                    tokio::task::yield_now().await;
                }
            }
            if let Some(line) = unlogged {
                self.push(render(&line));
            }
            if !more {
                return;
            }
        }
    }

    fn push(&self, line: String) {
        let mut lines = self.0.lock();
        if STDERR_TAIL <= lines.len() {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    /// Returns the last few lines, each cut short.
    pub(super) fn last_lines(&self) -> Vec<String> {
        let lines = self.0.lock();
        let from = lines.len().saturating_sub(SHOWN);
        lines.iter().skip(from).map(|line| line.chars().take(300).collect()).collect()
    }

    /// Returns the line that most likely tells why the program ended: npm's reason, the last
    /// line that contains "error", or else the last line.
    pub(super) fn likely_cause(&self) -> Option<String> {
        let lines = self.0.lock();
        if let Some(at) = lines.iter().rposition(|line| npm_code(line).is_some()) {
            let reason = lines.get(at + 1).and_then(|line| npm_error(line)).unwrap_or_default();
            return Some(format!("{} {reason}", lines[at]).trim_end().chars().take(300).collect());
        }
        let speaks = |line: &&String| line.to_ascii_lowercase().contains("error");
        let line = lines.iter().rev().find(speaks).or(lines.back())?;
        Some(line.chars().take(300).collect())
    }
}

/// Returns the text of a line that npm wrote about an error.
fn npm_error(line: &str) -> Option<&str> {
    line.strip_prefix("npm error ").or_else(|| line.strip_prefix("npm ERR! "))
}

/// Returns npm's error code; the line after it has the reason.
fn npm_code(line: &str) -> Option<&str> {
    npm_error(line)?.strip_prefix("code ")
}

fn render(line: &Line) -> String {
    match line {
        Line::Whole(text) => String::from_utf8_lossy(text).trim_end().to_owned(),
        Line::TooLong { length, head, .. } => format!("{}… ({length} bytes)", excerpt(head)),
    }
}

/// The maximum number of lines that are logged per second, so that a program that writes
/// without end does not fill the disk.
const LOGGED_A_SECOND: usize = 200;

/// Counts the lines of the current second.
struct LogRate {
    since: Instant,
    n_lines: usize,
}

enum LogStep {
    Log {
        /// How many lines before this one were not logged.
        skipped: usize,
    },
    Skip,
}

impl LogRate {
    fn new() -> LogRate {
        LogRate { since: Instant::now(), n_lines: 0 }
    }

    fn step(&mut self, now: Instant) -> LogStep {
        let mut skipped = 0;
        if Duration::from_secs(1) <= now.duration_since(self.since) {
            skipped = self.n_lines.saturating_sub(LOGGED_A_SECOND);
            *self = LogRate { since: now, n_lines: 0 };
        }
        self.n_lines += 1;
        if self.n_lines <= LOGGED_A_SECOND { LogStep::Log { skipped } } else { LogStep::Skip }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_npm_the_reason_is_told_and_not_where_its_log_is() {
        let tail = StderrTail::default();
        for line in [
            "npm error code E404",
            "npm error 404 Not Found - GET https://registry.example/nothing",
            "npm error 404  'nothing@*' is not in this registry.",
            "npm error A complete log of this run can be found in: /home/somebody/.npm/_logs/x.log",
        ] {
            tail.push(line.to_owned());
        }
        assert_eq!(
            tail.likely_cause().unwrap(),
            "npm error code E404 404 Not Found - GET https://registry.example/nothing"
        );
    }

    #[test]
    fn of_a_flood_the_beginning_of_every_second_is_logged_and_the_rest_counted() {
        let mut rate = LogRate::new();
        let (start, mut logged, mut skipped) = (rate.since, 0, 0);
        for line in 0..3000_u64 {
            match rate.step(start + Duration::from_millis(line)) {
                LogStep::Log { skipped: before } => {
                    logged += 1;
                    skipped += before;
                }
                LogStep::Skip => {}
            }
        }
        assert_eq!((logged, skipped), (3 * LOGGED_A_SECOND, 2 * (1000 - LOGGED_A_SECOND)));
    }
}
