//! Runs blocking file operations without blocking runtime threads, and repeats them
//! while a lock is busy.
//!
//! An operation is a closure that tries once: it is done, or a lock is busy. On a
//! runtime it runs in the pool for blocking work and sleeps asynchronously between
//! two tries. Outside of a runtime, as in commands, it runs on the caller's thread.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::spawn_blocking;
use tool::Backoff;

use crate::state::{Deadline, StateError, StateFuture, later, ready};

/// The result of one try.
pub(super) enum Attempt<T> {
    Done(T),
    /// Another process holds the lock.
    Busy,
}

/// The pauses between two tries.
const PAUSES: Backoff = Backoff::doubling(Duration::from_millis(1), Duration::from_millis(50));

/// Repeats `attempt` until it is done, for at most `timeout`.
pub(super) fn run<'a, T: Send + 'static>(
    timeout: Duration,
    attempt: impl Fn() -> Result<Attempt<T>, StateError> + Send + Sync + 'static,
) -> StateFuture<'a, T> {
    match is_on_runtime() {
        true => later(run_in_pool(timeout, Arc::new(attempt))),
        false => ready(run_here(timeout, &attempt)),
    }
}

fn is_on_runtime() -> bool {
    Handle::try_current().is_ok()
}

async fn run_in_pool<T: Send + 'static>(
    timeout: Duration,
    attempt: Arc<impl Fn() -> Result<Attempt<T>, StateError> + Send + Sync + 'static>,
) -> Result<T, StateError> {
    // The future may be polled outside of the runtime that created it.
    if !is_on_runtime() {
        return run_here(timeout, &*attempt);
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
    let done = tokio::time::timeout(timeout, tries).await;
    done.unwrap_or_else(|_| Err(too_long(timeout)))
}

/// Does what [`run`] does on this thread, blocking it.
pub(super) fn run_here<T>(
    timeout: Duration,
    attempt: &impl Fn() -> Result<Attempt<T>, StateError>,
) -> Result<T, StateError> {
    let end = Deadline::after(timeout);
    let mut pauses = PAUSES;
    loop {
        match attempt()? {
            Attempt::Done(done) => return Ok(done),
            Attempt::Busy if end.left().is_zero() => return Err(too_long(timeout)),
            Attempt::Busy => std::thread::sleep(pauses.fail().min(end.left())),
        }
    }
}

fn too_long(timeout: Duration) -> StateError {
    StateError::unavailable(format!(
        "not done within {timeout:?}; another process may hold its lock"
    ))
}
