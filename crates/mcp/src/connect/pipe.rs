//! A server that gatelet starts and talks to over its pipes.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};

use super::child::{Child, Pipes};
use super::error::ConnectError;
use super::launcher::{self, CANNOT_RUN};
use super::options::{Options, Program};
use super::relay::Relay;
use super::shutdown::Shutdown;
use super::stderr::StderrTail;
use crate::peer::{self, Peer};

/// Starts a program and converses with it until it ends.
pub(super) async fn start(
    program: &Program,
    options: &Options,
    relay: &Arc<Relay>,
    peer: &Peer,
    stderr: StderrTail,
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
    options.shutdown.spawn(running.run(pipes, stderr, options.shutdown.clone()));
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
    async fn run(self, pipes: Pipes, tail: StderrTail, shutdown: Shutdown) {
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
                tracing::debug!(target: "upstream", upstream = self.label, "its last words: {line}");
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
