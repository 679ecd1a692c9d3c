//! A server that is a program of ours, spoken to over its pipes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::unix::pipe;
use tokio::time::Instant;

use super::child::{Child, Pipes};
use super::launcher::{self, CANNOT_RUN};
use super::relay::Relay;
use super::{ConnectError, Options, Program, Shutdown};
use crate::message::excerpt;
use crate::peer::{self, Line, Lines, Peer};

/// The longest line of a log that is kept.
const LOG_LINE: usize = 16 << 10;

/// How many of the last lines are kept for when the program ends badly.
const STDERR_TAIL: usize = 20;

/// How many of them are logged then.
const SHOWN: usize = 5;

/// Starts a program and converses with it until it ends.
pub(super) async fn start(
    program: &Program,
    options: &Options,
    relay: &Arc<Relay>,
    peer: &Peer,
) -> Result<(), ConnectError> {
    if let Some(cwd) = program.cwd.as_ref().filter(|cwd| !cwd.is_dir()) {
        let reason = format!("there is no directory `{}` to run it in", cwd.display());
        return Err(ConnectError::BadTarget { reason });
    }
    let started = Child::start(program, options.launcher.as_ref()).await;
    let (child, pipes) = started.map_err(|source| ConnectError::Start {
        program: program.command.display().to_string(),
        source,
    })?;
    let running = RunningProgram {
        child,
        label: options.label.clone(),
        grace: options.grace,
        relay: Arc::clone(relay),
        peer: peer.clone(),
    };
    options.shutdown.spawn(running.run(pipes, options.shutdown.clone()));
    Ok(())
}

/// Converses over any pair of pipes.
pub(super) async fn converse<R, W>(
    reader: R,
    writer: W,
    relay: Arc<Relay>,
    peer: Peer,
    shutdown: Shutdown,
) where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let talking = peer::run(peer.clone(), reader, writer, Arc::clone(&relay) as _);
    let reason = ended(talking, &peer, &relay, &shutdown).await;
    relay.gone(&reason);
}

struct RunningProgram {
    child: Child,
    label: String,
    grace: Duration,
    relay: Arc<Relay>,
    peer: Peer,
}

impl RunningProgram {
    async fn run(self, pipes: Pipes, shutdown: Shutdown) {
        let tail = StderrTail::default();
        let log = tail.clone().log(self.label.clone(), pipes.stderr);
        let log = tokio::spawn(log);
        let incoming = Arc::clone(&self.relay) as _;
        // The pipes are closed when this returns, which asks the child to end.
        let talking = peer::run(self.peer.clone(), pipes.stdout, pipes.stdin, incoming);
        let reason = ended(talking, &self.peer, &self.relay, &shutdown).await;
        let how = self.child.end(self.grace).await;
        // The group is dead, so the log ends by itself, unless somebody left
        // the group and took the pipe along.
        let abort = log.abort_handle();
        if tokio::time::timeout(self.grace, log).await.is_err() {
            abort.abort();
        }
        let reason = match tail.last() {
            // There was no program but our own, which says why.
            Some(line) if line.starts_with(CANNOT_RUN) && how == unstarted() => line,
            Some(line) => format!("{reason} ({how}): {line}"),
            None => format!("{reason} ({how})"),
        };
        if !self.relay.is_ending() && self.relay.why_gone().is_none() {
            for line in tail.end() {
                tracing::warn!(target: "upstream", upstream = self.label, "its last words: {line}");
            }
        }
        self.relay.gone(&reason);
    }
}

/// Waits for the end of a conversation, and ends it when everything ends.
pub(super) async fn ended(
    talking: impl Future<Output = String>,
    peer: &Peer,
    relay: &Relay,
    shutdown: &Shutdown,
) -> String {
    let mut talking = std::pin::pin!(talking);
    tokio::select! {
        reason = &mut talking => return reason,
        () = shutdown.asked() => {}
    }
    relay.expect_end();
    peer.close("gatelet ends");
    talking.await
}

fn unstarted() -> String {
    format!("exit code {}", launcher::UNSTARTED)
}

fn render(line: &Line) -> String {
    match line {
        Line::Whole(text) => String::from_utf8_lossy(text).trim_end().to_owned(),
        Line::TooLong { length, head, .. } => format!("{}… ({length} bytes)", excerpt(head)),
    }
}

/// How many lines of a program are logged in a second. One that writes without
/// end would fill the disk and keep everybody else waiting.
const LOGGED_A_SECOND: usize = 200;

/// Counts the lines of a second.
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

/// What the program wrote to its standard error last.
#[derive(Clone, Default)]
struct StderrTail(Arc<Mutex<VecDeque<String>>>);

impl StderrTail {
    async fn log(self, label: String, stderr: pipe::Receiver) {
        let (mut lines, mut rate) = (Lines::new(stderr, LOG_LINE), LogRate::new());
        let mut n_taken = 0_usize;
        while let Ok(more) = lines.fill().await {
            let mut unlogged = None;
            while let Some(line) = lines.take() {
                match rate.step(Instant::now()) {
                    LogStep::Log { skipped } => {
                        if 0 < skipped {
                            tracing::warn!(target: "upstream", upstream = label, "it writes too much: {skipped} lines are left out");
                        }
                        let text = render(&line);
                        tracing::info!(target: "upstream", upstream = label, "{text}");
                        self.keep(text);
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
                self.keep(render(&line));
            }
            if !more {
                return;
            }
        }
    }

    fn keep(&self, line: String) {
        let mut lines = self.0.lock();
        if STDERR_TAIL <= lines.len() {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    /// The last few lines, each cut short.
    fn end(&self) -> Vec<String> {
        let lines = self.0.lock();
        let from = lines.len().saturating_sub(SHOWN);
        lines.iter().skip(from).map(|line| line.chars().take(300).collect()).collect()
    }

    /// The line that most likely says why: the last that speaks of an error,
    /// or else the last.
    fn last(&self) -> Option<String> {
        let lines = self.0.lock();
        let speaks = |line: &&String| line.to_ascii_lowercase().contains("error");
        let line = lines.iter().rev().find(speaks).or(lines.back())?;
        Some(line.chars().take(300).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
