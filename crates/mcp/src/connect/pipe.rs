//! Runs a server as a child process, and connects to it over its stdin and stdout.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};

use super::child::{Child, ChildPipes};
use super::error::ConnectError;
use super::launcher::{self, CANNOT_RUN};
use super::options::{Options, Program};
use super::relay::Relay;
use super::shutdown::Shutdown;
use super::stderr::StderrTail;
use crate::peer::{self, Peer};

/// Starts a program and the task that exchanges messages with it until it ends.
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

/// Exchanges messages over any pair of pipes until they end.
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
    let reason = run_until_shutdown(talking, &peer, &relay, &shutdown).await;
    relay.mark_gone(&reason);
}

/// A started server program with its connection.
struct RunningProgram {
    child: Child,
    label: String,
    grace: Duration,
    relay: Arc<Relay>,
    peer: Peer,
}

impl RunningProgram {
    async fn run(self, pipes: ChildPipes, tail: StderrTail, shutdown: Shutdown) {
        let log = tail.clone().log(self.label.clone(), pipes.stderr);
        let log = tokio::spawn(log);
        let incoming = Arc::clone(&self.relay) as _;
        // When this returns the pipes are closed, which makes the child exit.
        let talking = peer::run(self.peer.clone(), pipes.stdout, pipes.stdin, incoming);
        let reason = run_until_shutdown(talking, &self.peer, &self.relay, &shutdown).await;
        let how = self.child.end(self.grace).await;
        // The process group is dead, so the log ends, unless a process left the group
        // and holds the pipe open.
        let abort = log.abort_handle();
        if tokio::time::timeout(self.grace, log).await.is_err() {
            abort.abort();
        }
        let reason = match tail.likely_cause() {
            // Only the launcher ran; its message tells why.
            Some(line) if line.starts_with(CANNOT_RUN) && how == exit_not_started() => line,
            Some(line) => format!("{reason} ({how}): {line}"),
            None => format!("{reason} ({how})"),
        };
        if !self.relay.is_ending() && self.relay.why_gone().is_none() {
            for line in tail.last_lines() {
                tracing::debug!(target: "upstream", upstream = self.label, "its last words: {line}");
            }
        }
        self.relay.mark_gone(&reason);
    }
}

/// Runs the connection `talking` to its end and returns why it ended; closes it on
/// shutdown.
pub(super) async fn run_until_shutdown(
    talking: impl Future<Output = String>,
    peer: &Peer,
    relay: &Relay,
    shutdown: &Shutdown,
) -> String {
    let mut talking = std::pin::pin!(talking);
    tokio::select! {
        reason = &mut talking => return reason,
        () = shutdown.requested() => {}
    }
    relay.expect_end();
    peer.close("gatelet ends");
    talking.await
}

fn exit_not_started() -> String {
    format!("exit code {}", launcher::EXIT_NOT_STARTED)
}
