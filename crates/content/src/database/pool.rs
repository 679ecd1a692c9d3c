//! A pool of idle connections.
//!
//! A general pool does not know how a connection was used, so it pings each one
//! that comes back: a round trip to the database for every statement. This pool
//! takes a connection back only from a statement that ended; one that broke or was
//! left in the middle of a statement is closed.

#[cfg(test)]
mod tests;

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use sqlx::Error;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, MissedTickBehavior, interval};

/// How often unused connections are looked for.
const ROUND: Duration = Duration::from_secs(60);

/// An unused connection is given back to the database after this long.
const MAX_IDLE: Duration = Duration::from_secs(10 * 60);

/// A database may move or be replaced under us, so no connection lives for ever.
pub(super) const MAX_AGE: Duration = Duration::from_secs(30 * 60);

/// How connections to one database are made and ended.
pub(super) trait Opener: Send + Sync + 'static {
    type Connection: Send + 'static;

    fn open(&self) -> impl Future<Output = Result<Self::Connection, Error>> + Send;

    fn close(connection: Self::Connection) -> impl Future<Output = ()> + Send;

    /// Returns how long a connection lives; `None` where the connection is the
    /// database.
    fn max_age(&self) -> Option<Duration> {
        Some(MAX_AGE)
    }
}

/// The connections to one database.
pub(super) struct Pool<O: Opener>(Arc<Shared<O>>);

impl<O: Opener> Clone for Pool<O> {
    fn clone(&self) -> Pool<O> {
        Pool(Arc::clone(&self.0))
    }
}

struct Shared<O: Opener> {
    opener: O,
    /// How long a statement waits for a connection.
    timeout: Duration,
    permits: Semaphore,
    idle: Mutex<Vec<PooledConnection<O::Connection>>>,
}

struct PooledConnection<C> {
    connection: C,
    opened: Instant,
    used: Instant,
}

impl<O: Opener> Pool<O> {
    /// Opens the first connection, to see that it can be.
    pub(super) async fn open(
        opener: O,
        n_connections: u32,
        timeout: Duration,
    ) -> Result<Pool<O>, Error> {
        let first = tokio::time::timeout(timeout, opener.open())
            .await
            .unwrap_or(Err(Error::PoolTimedOut))?;
        let n_connections = usize::try_from(n_connections).unwrap_or(usize::MAX);
        let shared = Arc::new(Shared {
            opener,
            timeout,
            permits: Semaphore::new(n_connections.clamp(1, Semaphore::MAX_PERMITS)),
            idle: Mutex::new(vec![PooledConnection::new(first)]),
        });
        tokio::spawn(tidy(Arc::downgrade(&shared)));
        Ok(Pool(shared))
    }

    /// A connection for one statement, waited for no longer than is allowed.
    pub(super) async fn take(&self) -> Result<LentConnection<'_, O>, Error> {
        let taken = tokio::time::timeout(self.0.timeout, async {
            let permit = self.0.permits.acquire().await.map_err(|_| Error::PoolClosed)?;
            let (kept, stale) = self.0.pick();
            for connection in stale {
                O::close(connection).await;
            }
            let kept = match kept {
                Some(kept) => kept,
                None => PooledConnection::new(self.0.opener.open().await?),
            };
            Ok(LentConnection { shared: &self.0, kept, _permit: permit })
        });
        taken.await.unwrap_or(Err(Error::PoolTimedOut))
    }

    pub(super) fn n_idle(&self) -> usize {
        self.0.idle().len()
    }

    pub(super) async fn close(&self) {
        self.0.permits.close();
        let idle = std::mem::take(&mut *self.0.idle());
        for kept in idle {
            O::close(kept.connection).await;
        }
    }
}

impl<O: Opener> Shared<O> {
    fn idle(&self) -> MutexGuard<'_, Vec<PooledConnection<O::Connection>>> {
        self.idle.lock()
    }

    /// The connection that was used last, and those that are to be closed.
    fn pick(&self) -> (Option<PooledConnection<O::Connection>>, Vec<O::Connection>) {
        let mut idle = self.idle();
        let stale = self.stale(&mut idle);
        (idle.pop(), stale)
    }

    fn stale(&self, idle: &mut Vec<PooledConnection<O::Connection>>) -> Vec<O::Connection> {
        let Some(max_age) = self.opener.max_age() else { return Vec::new() };
        let old = |kept: &mut PooledConnection<O::Connection>| {
            kept.opened.elapsed() >= max_age || kept.used.elapsed() >= MAX_IDLE
        };
        idle.extract_if(.., old).map(|kept| kept.connection).collect()
    }
}

/// Closes what nobody has used for long, as long as there is a pool.
async fn tidy<O: Opener>(pool: Weak<Shared<O>>) {
    let mut rounds = interval(ROUND);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        rounds.tick().await;
        let Some(shared) = pool.upgrade() else { return };
        let stale = shared.stale(&mut shared.idle());
        drop(shared);
        for connection in stale {
            O::close(connection).await;
        }
    }
}

impl<C> PooledConnection<C> {
    fn new(connection: C) -> PooledConnection<C> {
        let now = Instant::now();
        PooledConnection { connection, opened: now, used: now }
    }
}

/// A connection while a statement runs on it. Dropped, it is gone: whoever
/// stops waiting leaves it in the middle of something.
pub(super) struct LentConnection<'a, O: Opener> {
    shared: &'a Shared<O>,
    kept: PooledConnection<O::Connection>,
    _permit: SemaphorePermit<'a>,
}

impl<O: Opener> LentConnection<'_, O> {
    /// Keeps the connection for the next statement, unless there will be none.
    pub(super) fn give_back(mut self) {
        self.kept.used = Instant::now();
        // Asked under the lock: whoever closes the pool empties it after that.
        let mut idle = self.shared.idle();
        if !self.shared.permits.is_closed() {
            idle.push(self.kept);
        }
    }
}

impl<O: Opener> Deref for LentConnection<'_, O> {
    type Target = O::Connection;

    fn deref(&self) -> &O::Connection {
        &self.kept.connection
    }
}

impl<O: Opener> DerefMut for LentConnection<'_, O> {
    fn deref_mut(&mut self) -> &mut O::Connection {
        &mut self.kept.connection
    }
}
