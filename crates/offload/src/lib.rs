//! Long computations, off the threads that serve everybody.
//!
//! A runtime thread that filters, matches or compiles for seconds answers
//! nobody meanwhile. [`run`] moves such work to a thread for blocking work. Only
//! a few run at once, because they compete for the same processors; each has a
//! deadline; and each is told to [`Stop`] when its deadline passes or nobody
//! waits for its answer any more.
//!
//! Programs and patterns that a caller wrote have turns of their own, by
//! [`evaluate`], shared fairly between callers: whoever sends a hundred that take
//! long makes nobody wait for the rest of what the gate does.
//!
//! Work that takes less than a few milliseconds stays where it is: [`is_long`]
//! says by its size which is which.

use std::hash::Hash;
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use fair::{Limits, Urgency};
use tokio::sync::Semaphore;
use tokio::task::JoinError;

/// Text of more bytes than this takes more than a few milliseconds to look
/// through for secrets, to measure or to summarise.
const LONG: usize = 128 << 10;

/// How long a computation may take, without the time it waits for its turn.
pub const DEADLINE: Duration = Duration::from_secs(20);

/// How long a program or pattern of a caller may run, without the time it waits for
/// its turn: who wrote it may have gone away and said nothing.
pub const EVALUATION: Duration = Duration::from_secs(10);

/// How many evaluations of one caller may wait for their turn.
const WAITING: usize = 64;

/// The turns of evaluations. One caller never has all of them.
static EVALUATIONS: LazyLock<fair::Semaphore> = LazyLock::new(|| {
    let permits = processors().max(2);
    fair::Semaphore::new(Limits { permits, reserve: permits / 2, waiting: WAITING })
});

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

/// How many computations run at once. The processors are those of the machine,
/// so this is one for the process.
static TURNS: LazyLock<Arc<Semaphore>> =
    LazyLock::new(|| Arc::new(Semaphore::new(processors().max(2))));

/// Tells a computation that nobody wants its outcome any more.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// One that is never set, for work that is bounded otherwise.
    pub fn never() -> Stop {
        Stop::default()
    }

    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A computation took longer than it may, or too many of its caller wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it takes longer than {} seconds", DEADLINE.as_secs())]
pub struct TooSlow;

/// Returns whether work on so many bytes is worth a thread of its own.
pub fn is_long(bytes: usize) -> bool {
    LONG < bytes
}

/// Runs `work` on another thread when its turn comes.
///
/// Dropping the future stops the work: at once while it waits for its turn, and
/// else when it next looks at its [`Stop`].
pub async fn run<T: Send + 'static>(
    work: impl FnOnce(&Stop) -> T + Send + 'static,
) -> Result<T, TooSlow> {
    run_within(DEADLINE, work).await
}

/// The same with another deadline.
pub async fn run_within<T: Send + 'static>(
    deadline: Duration,
    work: impl FnOnce(&Stop) -> T + Send + 'static,
) -> Result<T, TooSlow> {
    let Ok(turn) = Arc::clone(&*TURNS).acquire_owned().await else {
        unreachable!("nobody closes the semaphore");
    };
    hold(turn, deadline, work).await
}

/// Runs a program or pattern that a caller wrote on another thread, when it is that
/// caller's turn. Who has too many waiting is told that it takes too long.
pub async fn evaluate<T: Send + 'static>(
    caller: impl Hash,
    work: impl FnOnce(&Stop) -> T + Send + 'static,
) -> Result<T, TooSlow> {
    let key = EVALUATIONS.key(caller, ());
    let turn = EVALUATIONS.acquire(key, Urgency::Ordinary).await.map_err(|_| TooSlow)?;
    hold(turn, EVALUATION, work).await
}

/// Runs `work` on another thread, holding a turn until it ends.
async fn hold<T: Send + 'static>(
    turn: impl Send + 'static,
    deadline: Duration,
    work: impl FnOnce(&Stop) -> T + Send + 'static,
) -> Result<T, TooSlow> {
    let waiting = Waiting(Stop::default());
    let stop = waiting.0.clone();
    // The turn ends with the work, however long ago its caller went away.
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
            // The runtime is going down, and takes whoever asked with it.
            Err(Err(_)) => std::future::pending().await,
        },
    }
}

/// Somebody waits for the outcome while this lives.
struct Waiting(Stop);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.set();
    }
}

#[cfg(test)]
mod tests;
