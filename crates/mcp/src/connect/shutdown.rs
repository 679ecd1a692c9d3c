//! Ends all upstreams together.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Asks every upstream that was opened with it to end, and waits until they
/// have: programs see the end of their input, then SIGTERM, then SIGKILL;
/// sessions over HTTP are deleted.
#[derive(Clone, Debug, Default)]
pub struct Shutdown {
    asked: CancellationToken,
    ending: TaskTracker,
}

impl Shutdown {
    /// Ends all upstreams. Whether they had ended within `limit`.
    pub async fn end_all(&self, limit: Duration) -> bool {
        self.asked.cancel();
        self.ending.close();
        tokio::time::timeout(limit, self.ending.wait()).await.is_ok()
    }

    /// Ready when upstreams are to end.
    pub(super) async fn asked(&self) {
        self.asked.cancelled().await;
    }

    /// Runs what has to be waited for.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.ending.spawn(task);
    }
}
