//! How work on a disk is done without anybody waiting on a runtime thread.
//!
//! An operation is a closure that tries once: it is done, or a lock is busy. On
//! a runtime it runs in the pool for blocking work, and the pauses between two
//! tries are slept through without a thread. Outside of one, as in commands,
//! nobody else waits, so it is tried right there.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::spawn_blocking;
use tool::Backoff;

use crate::state::{Deadline, StateError, StateFuture, later, ready};

/// What one try came to.
pub(super) enum Attempt<T> {
    Done(T),
    /// Somebody else is at it.
    Busy,
}

/// The pauses while somebody else is at it.
const PAUSES: Backoff = Backoff::doubling(Duration::from_millis(1), Duration::from_millis(50));

/// Tries until it is done, for no longer than `within`.
pub(super) fn run<'a, T: Send + 'static>(
    within: Duration,
    attempt: impl Fn() -> Result<Attempt<T>, StateError> + Send + Sync + 'static,
) -> StateFuture<'a, T> {
    match is_on_runtime() {
        true => later(run_in_pool(within, Arc::new(attempt))),
        false => ready(run_here(within, &attempt)),
    }
}

fn is_on_runtime() -> bool {
    Handle::try_current().is_ok()
}

async fn run_in_pool<T: Send + 'static>(
    within: Duration,
    attempt: Arc<impl Fn() -> Result<Attempt<T>, StateError> + Send + Sync + 'static>,
) -> Result<T, StateError> {
    // It may have been handed to somebody else in between.
    if !is_on_runtime() {
        return run_here(within, &*attempt);
    }
    let tries = async {
        let mut pauses = PAUSES;
        loop {
            let once = Arc::clone(&attempt);
            let tried = spawn_blocking(move || once()).await;
            match tried.unwrap_or_else(|error| Err(StateError::unavailable(error)))? {
                Attempt::Done(done) => return Ok(done),
                Attempt::Busy => tokio::time::sleep(pauses.fail()).await,
            }
        }
    };
    let done = tokio::time::timeout(within, tries).await;
    done.unwrap_or_else(|_| Err(too_long(within)))
}

/// The same right here, however long others take.
pub(super) fn run_here<T>(
    within: Duration,
    attempt: &impl Fn() -> Result<Attempt<T>, StateError>,
) -> Result<T, StateError> {
    let end = Deadline::after(within);
    let mut pauses = PAUSES;
    loop {
        match attempt()? {
            Attempt::Done(done) => return Ok(done),
            Attempt::Busy if end.left().is_zero() => return Err(too_long(within)),
            Attempt::Busy => std::thread::sleep(pauses.fail().min(end.left())),
        }
    }
}

fn too_long(within: Duration) -> StateError {
    StateError::unavailable(format!(
        "not done within {within:?}; another process may hold its lock"
    ))
}
