//! Runs long computations off the threads of the async runtime.
//!
//! A runtime thread that computes for seconds serves nobody meanwhile. [`run`] moves such
//! work to a thread for blocking work. Only a few computations run at once, because they
//! compete for the same processors. Each has a deadline, and its [`StopFlag`] is set when
//! the deadline passes or nobody waits for its result any more.
//!
//! Programs and patterns that a caller wrote run by [`evaluate`], which is limited
//! separately and shared fairly between callers, so that a caller with many slow ones does
//! not delay other work.
//!
//! A request whose data is long at every step of its way is polled elsewhere as a whole, by
//! [`aside`].
//!
//! Work of a few milliseconds need not be moved: [`is_long`] decides by its size. This
//! crate does not know what is computed.

mod aside;

use std::hash::Hash;
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use fair::{Limits, Priority};
use tokio::sync::Semaphore;
use tokio::task::JoinError;

pub use aside::{Aside, aside};

/// Text of more bytes than this takes more than a few milliseconds to search for secrets,
/// to measure or to summarize.
const LONG: usize = 128 << 10;

/// How long a computation may take, without the time it waits for its turn.
pub const DEADLINE: Duration = Duration::from_secs(20);

/// How long a program or pattern of a caller may run, without the time it waits for its
/// turn: the caller may be gone without notice.
pub const EVALUATION: Duration = Duration::from_secs(10);

/// The most evaluations of one caller that may wait for their turn.
const MAX_WAITING: usize = 64;

/// Limits concurrent evaluations. One caller never has all permits.
static EVALUATIONS: LazyLock<fair::Semaphore> = LazyLock::new(|| {
    let permits = processors().max(2);
    fair::Semaphore::new(Limits { permits, reserved: permits / 2, waiting: MAX_WAITING })
});

/// How many stored results are loaded at a time, on machines of any size: it is memory that
/// they take. One caller never has all of the turns.
const LOADED_AT_ONCE: usize = 4;

static READINGS: LazyLock<fair::Semaphore> = LazyLock::new(|| {
    let reserved = LOADED_AT_ONCE / 2;
    fair::Semaphore::new(Limits { permits: LOADED_AT_ONCE, reserved, waiting: MAX_READERS })
});

/// The most readers of one caller that may wait for their turn. They hold nothing yet.
const MAX_READERS: usize = 4096;

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

/// Limits concurrent computations. It is global because the processors are.
static COMPUTATIONS: LazyLock<Arc<Semaphore>> =
    LazyLock::new(|| Arc::new(Semaphore::new(processors().max(2))));

/// A flag that tells a computation to stop, because nobody wants its result any more.
#[derive(Clone, Debug, Default)]
pub struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    /// A flag that is never set, for work that is bounded otherwise.
    pub fn never() -> StopFlag {
        StopFlag::default()
    }

    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A computation took too long, or too many evaluations of its caller wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it takes longer than {} seconds", DEADLINE.as_secs())]
pub struct TooSlow;

/// Whether work on this many bytes should be moved to another thread.
pub fn is_long(bytes: usize) -> bool {
    LONG < bytes
}

/// Permission to have a stored result in memory, given back when dropped.
#[derive(Debug)]
pub struct ReadingTurn {
    _permit: fair::Permit,
}

/// Waits until it is this caller's turn to load a stored result, which takes several times
/// its size until it is an answer. A caller with too many waiting gets [`TooSlow`].
pub async fn reading_turn(caller: impl Hash) -> Result<ReadingTurn, TooSlow> {
    let key = READINGS.key(caller, ());
    let permit = READINGS.acquire(key, Priority::Normal).await.map_err(|_| TooSlow)?;
    Ok(ReadingTurn { _permit: permit })
}

/// Runs `work` on another thread when its turn comes.
///
/// Dropping the future stops the work: at once while it waits for its turn, otherwise when
/// it next checks its [`StopFlag`].
pub async fn run<T: Send + 'static>(
    work: impl FnOnce(&StopFlag) -> T + Send + 'static,
) -> Result<T, TooSlow> {
    run_within(DEADLINE, work).await
}

/// Like [`run`], with another deadline.
pub async fn run_within<T: Send + 'static>(
    deadline: Duration,
    work: impl FnOnce(&StopFlag) -> T + Send + 'static,
) -> Result<T, TooSlow> {
    let Ok(turn) = Arc::clone(&*COMPUTATIONS).acquire_owned().await else {
        unreachable!("nobody closes the semaphore");
    };
    run_holding(turn, deadline, work).await
}

/// Runs a program or pattern that a caller wrote on another thread, when it is that
/// caller's turn. A caller with too many waiting gets [`TooSlow`].
pub async fn evaluate<T: Send + 'static>(
    caller: impl Hash,
    work: impl FnOnce(&StopFlag) -> T + Send + 'static,
) -> Result<T, TooSlow> {
    let key = EVALUATIONS.key(caller, ());
    let turn = EVALUATIONS.acquire(key, Priority::Normal).await.map_err(|_| TooSlow)?;
    run_holding(turn, EVALUATION, work).await
}

/// Runs `work` on another thread, holding a permit (`turn`) until it ends.
async fn run_holding<T: Send + 'static>(
    turn: impl Send + 'static,
    deadline: Duration,
    work: impl FnOnce(&StopFlag) -> T + Send + 'static,
) -> Result<T, TooSlow> {
    let waiting = StopOnDrop(StopFlag::default());
    let stop = waiting.0.clone();
    // The permit is held until the work ends, even if nobody waits for it any more.
    let working = tokio::task::spawn_blocking(move || {
        let done = work(&stop);
        drop(turn);
        done
    });
    match tokio::time::timeout(deadline, working).await {
        Err(_) => Err(TooSlow),
        Ok(joined) => match joined.map_err(JoinError::try_into_panic) {
            Ok(done) => Ok(done),
            Err(Ok(panic)) => std::panic::resume_unwind(panic),
            // The runtime is shutting down, and so is the caller.
            Err(Err(_)) => std::future::pending().await,
        },
    }
}

/// Sets the flag when nobody waits for the result any more.
struct StopOnDrop(StopFlag);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.set();
    }
}

#[cfg(test)]
mod tests;
