//! Waits until a condition is true.

use std::pin::pin;

use tokio::sync::Notify;

/// Waits until a condition is true; `changed` is notified whenever it may have changed.
pub(super) async fn until(changed: &Notify, condition: impl Fn() -> bool) {
    let mut next = pin!(changed.notified());
    loop {
        // Enabled before the check, so that no notification in between is lost.
        next.as_mut().enable();
        if condition() {
            return;
        }
        next.as_mut().await;
        next.set(changed.notified());
    }
}
