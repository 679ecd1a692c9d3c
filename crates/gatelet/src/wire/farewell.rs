//! How the program ends: the signals that ask for it, and nobody left behind.

use std::io;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal as catch};

/// Ready when SIGINT, SIGTERM or SIGHUP asks us to end. They are caught from now
/// on, not only once somebody waits.
pub(crate) fn signal() -> io::Result<impl Future<Output = ()>> {
    let mut interrupt = catch(SignalKind::interrupt())?;
    let mut terminate = catch(SignalKind::terminate())?;
    let mut hang_up = catch(SignalKind::hangup())?;
    Ok(async move {
        let name = tokio::select! {
            _ = interrupt.recv() => "SIGINT",
            _ = terminate.recv() => "SIGTERM",
            _ = hang_up.recv() => "SIGHUP",
        };
        tracing::info!("{name} came");
    })
}

/// Waits until no child of ours is left, for as long as `limit`.
///
/// Upstreams were asked to end when their sessions were dropped. One that does
/// not is killed when we are gone, so this is a courtesy, not the guarantee.
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
