//! A server that is a program of ours, spoken to over its pipes.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::unix::pipe;

use super::child::{Child, Pipes};
use super::relay::Relay;
use super::{ConnectError, Options, Program};
use crate::message::excerpt;
use crate::peer::{self, Line, Lines, Peer};

/// The longest line of a log that is kept.
const LOG_LINE: usize = 16 << 10;

/// How many of the last lines are kept for when the program ends badly.
const LAST_WORDS: usize = 20;

/// Starts a program and converses with it until it ends.
pub(super) async fn start(
    program: &Program,
    options: &Options,
    relay: &Arc<Relay>,
    peer: &Peer,
) -> Result<(), ConnectError> {
    let started = Child::start(program, options.tether.as_ref()).await;
    let (child, pipes) = started.map_err(|source| ConnectError::Start {
        program: program.command.display().to_string(),
        source,
    })?;
    let life = Life {
        child,
        label: options.label.clone(),
        grace: options.grace,
        relay: Arc::clone(relay),
        peer: peer.clone(),
    };
    tokio::spawn(life.run(pipes));
    Ok(())
}

/// Converses over any pair of pipes.
pub(super) async fn converse<R, W>(reader: R, writer: W, relay: Arc<Relay>, peer: Peer)
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let reason = peer::run(peer, reader, writer, Arc::clone(&relay) as _).await;
    relay.gone(&reason);
}

struct Life {
    child: Child,
    label: String,
    grace: Duration,
    relay: Arc<Relay>,
    peer: Peer,
}

impl Life {
    async fn run(self, pipes: Pipes) {
        let words = LastWords::default();
        let log = words.clone().log(self.label, pipes.stderr);
        let log = tokio::spawn(log);
        let incoming = Arc::clone(&self.relay) as _;
        // The pipes are closed when this returns, which asks the child to end.
        let reason = peer::run(self.peer.clone(), pipes.stdout, pipes.stdin, incoming).await;
        let how = self.child.end(self.grace).await;
        // The group is dead, so the log ends by itself, unless somebody left
        // the group and took the pipe along.
        let abort = log.abort_handle();
        if tokio::time::timeout(self.grace, log).await.is_err() {
            abort.abort();
        }
        let reason = match words.last() {
            Some(line) => format!("{reason} ({how}): {line}"),
            None => format!("{reason} ({how})"),
        };
        self.relay.gone(&reason);
    }
}

/// What the program wrote to its standard error last.
#[derive(Clone, Default)]
struct LastWords(Arc<Mutex<VecDeque<String>>>);

impl LastWords {
    async fn log(self, label: String, stderr: pipe::Receiver) {
        let mut lines = Lines::new(stderr, LOG_LINE);
        while let Ok(more) = lines.fill().await {
            while let Some(line) = lines.take() {
                let text = match &line {
                    Line::Whole(text) => String::from_utf8_lossy(text).trim_end().to_owned(),
                    Line::TooLong { length, head, .. } => {
                        format!("{}… ({length} bytes)", excerpt(head))
                    }
                };
                tracing::info!(target: "upstream", upstream = label, "{text}");
                self.keep(text);
            }
            if !more {
                return;
            }
        }
    }

    fn keep(&self, line: String) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if LAST_WORDS <= lines.len() {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    /// The line that most likely says why: the last that speaks of an error,
    /// or else the last.
    fn last(&self) -> Option<String> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let speaks = |line: &&String| line.to_ascii_lowercase().contains("error");
        let line = lines.iter().rev().find(speaks).or(lines.back())?;
        Some(line.chars().take(300).collect())
    }
}
