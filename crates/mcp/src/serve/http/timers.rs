//! Timers that nearly every request sets and that hardly ever fire.
//!
//! Arming a new timer wakes the runtime; moving one that runs to a later time
//! costs nothing. So timers are left running and are reused by later requests.

use std::pin::Pin;

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, Sleep, sleep_until};

/// How many timers are kept for later requests.
const KEPT: usize = 64;

/// Running timers that are free for reuse.
#[derive(Default)]
pub(super) struct TimerPool(Mutex<Vec<Pin<Box<Sleep>>>>);

/// A timer in use; returns to the pool when dropped.
pub(super) struct PooledTimer<'a> {
    /// `None` only in `drop`.
    sleep: Option<Pin<Box<Sleep>>>,
    timers: &'a TimerPool,
}

impl TimerPool {
    /// Starts a timer, if possible a reused one.
    pub(super) fn set(&self, after: Duration) -> PooledTimer<'_> {
        let at = Instant::now() + after;
        let kept = self.0.lock().pop();
        let sleep = match kept {
            Some(mut sleep) => {
                sleep.as_mut().reset(at);
                sleep
            }
            None => Box::pin(sleep_until(at)),
        };
        PooledTimer { sleep: Some(sleep), timers: self }
    }
}

impl PooledTimer<'_> {
    pub(super) async fn elapsed(&mut self) {
        match &mut self.sleep {
            Some(sleep) => sleep.as_mut().await,
            None => std::future::pending().await,
        }
    }
}

impl Drop for PooledTimer<'_> {
    fn drop(&mut self) {
        let mut kept = self.timers.0.lock();
        if kept.len() < KEPT {
            kept.extend(self.sleep.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_was_used_before_rings_at_its_new_time() {
        let timers = TimerPool::default();
        let start = Instant::now();
        timers.set(Duration::from_secs(1)).elapsed().await;
        assert_eq!(start.elapsed().as_secs(), 1);
        drop(timers.set(Duration::from_secs(10)));
        timers.set(Duration::from_secs(2)).elapsed().await;
        assert_eq!(start.elapsed().as_secs(), 3);
        assert_eq!(timers.0.lock().len(), 1);
    }
}
