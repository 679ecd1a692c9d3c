//! How the process ends: the signals that ask for it, and waiting for child processes.

use std::io::{self, IsTerminal};
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal as catch};

/// What a SIGHUP means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HangUp {
    /// The process ends.
    Ends,
    /// The configuration is read again; the process ends only if its terminal is gone.
    Reloads,
}

/// A future that is ready when a signal asks the process to end. Signals are caught from
/// this call on, not only while the future is awaited.
pub(crate) fn asked_to_end(meaning: HangUp) -> io::Result<impl Future<Output = ()>> {
    let mut interrupt = catch(SignalKind::interrupt())?;
    let mut terminate = catch(SignalKind::terminate())?;
    let mut hang_up = catch(SignalKind::hangup())?;
    let had_terminal = io::stderr().is_terminal();
    let hung_up = async move {
        while hang_up.recv().await.is_some() {
            let has_lost_terminal = had_terminal && !io::stderr().is_terminal();
            if meaning == HangUp::Ends || has_lost_terminal {
                return;
            }
        }
        std::future::pending().await
    };
    Ok(async move {
        let name = tokio::select! {
            _ = interrupt.recv() => "SIGINT",
            _ = terminate.recv() => "SIGTERM",
            () = hung_up => "SIGHUP",
        };
        tracing::info!("{name} came");
    })
}

/// Waits until no child process is left, at most for `limit`.
///
/// Upstreams were asked to end when their sessions were dropped. One that does not is
/// killed when this process ends, so waiting is only a courtesy.
pub(crate) async fn children_have_ended(limit: Duration) {
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let wait = async {
        while waitid(WaitId::All, options).is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    if tokio::time::timeout(limit, wait).await.is_err() {
        tracing::warn!("some upstreams did not end in time and are killed");
    }
}
