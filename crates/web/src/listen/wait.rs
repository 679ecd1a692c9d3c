//! Waits until a condition holds.

use std::pin::pin;

use tokio::sync::Notify;

/// Waits until something is so; whoever makes it so tells.
pub(super) async fn until(told: &Notify, is_so: impl Fn() -> bool) {
    let mut next = pin!(told.notified());
    loop {
        // Before the look, so that what happens in between is heard.
        next.as_mut().enable();
        if is_so() {
            return;
        }
        next.as_mut().await;
        next.set(told.notified());
    }
}
