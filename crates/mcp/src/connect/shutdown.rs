//! Closes all upstream connections together, when gatelet ends.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Makes every upstream that was opened with it end, and waits for that: programs get end
/// of input, then SIGTERM, then SIGKILL; HTTP sessions are deleted. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Shutdown {
    requested: CancellationToken,
    tasks: TaskTracker,
}

impl Shutdown {
    /// Ends all upstreams, and returns whether they ended within `limit`.
    pub async fn end_all(&self, limit: Duration) -> bool {
        self.requested.cancel();
        self.tasks.close();
        tokio::time::timeout(limit, self.tasks.wait()).await.is_ok()
    }

    /// Resolves when upstreams have to end.
    pub(super) async fn requested(&self) {
        self.requested.cancelled().await;
    }

    /// Spawns a task that [`end_all`](Shutdown::end_all) waits for.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }
}
