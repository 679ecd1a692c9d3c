//! Clocks that are set for nearly every request and hardly ever ring.
//!
//! To arm a new clock, the runtime has to be woken; to move one that runs to a
//! later time costs nothing. So clocks are left running, and pass from request
//! to request.

use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// How many clocks are kept for the next requests.
const KEPT: usize = 64;

/// The clocks that nobody waits for.
#[derive(Default)]
pub(super) struct Alarms(Mutex<Vec<Pin<Box<Sleep>>>>);

/// A clock that somebody waits for.
pub(super) struct Alarm<'a> {
    /// `None` only while it is handed back.
    sleep: Option<Pin<Box<Sleep>>>,
    alarms: &'a Alarms,
}

impl Alarms {
    pub(super) fn set(&self, after: Duration) -> Alarm<'_> {
        let at = Instant::now() + after;
        let kept = self.lock().pop();
        let sleep = match kept {
            Some(mut sleep) => {
                sleep.as_mut().reset(at);
                sleep
            }
            None => Box::pin(sleep_until(at)),
        };
        Alarm { sleep: Some(sleep), alarms: self }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Pin<Box<Sleep>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Alarm<'_> {
    pub(super) async fn rings(&mut self) {
        match &mut self.sleep {
            Some(sleep) => sleep.as_mut().await,
            None => std::future::pending().await,
        }
    }
}

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        let mut kept = self.alarms.lock();
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
        let alarms = Alarms::default();
        let start = Instant::now();
        alarms.set(Duration::from_secs(1)).rings().await;
        assert_eq!(start.elapsed().as_secs(), 1);
        drop(alarms.set(Duration::from_secs(10)));
        alarms.set(Duration::from_secs(2)).rings().await;
        assert_eq!(start.elapsed().as_secs(), 3);
        assert_eq!(alarms.lock().len(), 1);
    }
}
