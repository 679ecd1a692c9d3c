//! A pool of connections to one database.
//!
//! A general pool does not know how a connection was used, so it pings each one
//! that is returned: a round trip to the database for every statement. This pool
//! takes a connection back only after its statement ended; a connection that broke
//! or was dropped in the middle of a statement is closed.

#[cfg(test)]
mod tests;

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use sqlx::Error;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, MissedTickBehavior, interval};

/// How often stale connections are closed.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);

/// How long a connection may stay unused before it is closed.
const MAX_IDLE: Duration = Duration::from_secs(10 * 60);

/// The maximum age of a connection: the database may have moved to another host.
pub(super) const MAX_AGE: Duration = Duration::from_secs(30 * 60);

/// Opens and closes connections to one database.
pub(super) trait Opener: Send + Sync + 'static {
    type Connection: Send + 'static;

    fn open(&self) -> impl Future<Output = Result<Self::Connection, Error>> + Send;

    fn close(connection: Self::Connection) -> impl Future<Output = ()> + Send;

    /// Returns the maximum age of a connection; `None` for a database in memory, which
    /// ends with its connection.
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
    /// One permit for each connection that may be open.
    permits: Semaphore,
    idle: Mutex<Vec<PooledConnection<O::Connection>>>,
}

struct PooledConnection<C> {
    connection: C,
    opened_at: Instant,
    last_used: Instant,
}

impl<O: Opener> Pool<O> {
    /// Creates a pool and opens its first connection, so that a wrong address is found.
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
        tokio::spawn(close_stale(Arc::downgrade(&shared)));
        Ok(Pool(shared))
    }

    /// Takes an idle connection for one statement, or opens one; waits for at most the
    /// pool's timeout.
    pub(super) async fn take(&self) -> Result<LentConnection<'_, O>, Error> {
        let taken = tokio::time::timeout(self.0.timeout, async {
            let permit = self.0.permits.acquire().await.map_err(|_| Error::PoolClosed)?;
            let (pooled, stale) = self.0.take_idle();
            for connection in stale {
                O::close(connection).await;
            }
            let pooled = match pooled {
                Some(pooled) => pooled,
                None => PooledConnection::new(self.0.opener.open().await?),
            };
            Ok(LentConnection { shared: &self.0, pooled, _permit: permit })
        });
        taken.await.unwrap_or(Err(Error::PoolTimedOut))
    }

    pub(super) fn n_idle(&self) -> usize {
        self.0.idle().len()
    }

    pub(super) async fn close(&self) {
        self.0.permits.close();
        let idle = std::mem::take(&mut *self.0.idle());
        for pooled in idle {
            O::close(pooled.connection).await;
        }
    }
}

impl<O: Opener> Shared<O> {
    fn idle(&self) -> MutexGuard<'_, Vec<PooledConnection<O::Connection>>> {
        self.idle.lock()
    }

    /// Takes the connection that was used last, if any, and those that are to be closed.
    fn take_idle(&self) -> (Option<PooledConnection<O::Connection>>, Vec<O::Connection>) {
        let mut idle = self.idle();
        let stale = self.remove_stale(&mut idle);
        (idle.pop(), stale)
    }

    /// Removes the connections that are too old or unused for too long.
    fn remove_stale(&self, idle: &mut Vec<PooledConnection<O::Connection>>) -> Vec<O::Connection> {
        let Some(max_age) = self.opener.max_age() else { return Vec::new() };
        let old = |pooled: &mut PooledConnection<O::Connection>| {
            pooled.opened_at.elapsed() >= max_age || pooled.last_used.elapsed() >= MAX_IDLE
        };
        idle.extract_if(.., old).map(|pooled| pooled.connection).collect()
    }
}

/// Closes stale connections from time to time, until the pool is dropped.
async fn close_stale<O: Opener>(pool: Weak<Shared<O>>) {
    let mut rounds = interval(SWEEP_INTERVAL);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        rounds.tick().await;
        let Some(shared) = pool.upgrade() else { return };
        let stale = shared.remove_stale(&mut shared.idle());
        drop(shared);
        for connection in stale {
            O::close(connection).await;
        }
    }
}

impl<C> PooledConnection<C> {
    fn new(connection: C) -> PooledConnection<C> {
        let now = Instant::now();
        PooledConnection { connection, opened_at: now, last_used: now }
    }
}

/// A connection while a statement runs on it. Dropping it closes it, because the
/// statement may not have ended; `give_back` keeps it.
pub(super) struct LentConnection<'a, O: Opener> {
    shared: &'a Shared<O>,
    pooled: PooledConnection<O::Connection>,
    _permit: SemaphorePermit<'a>,
}

impl<O: Opener> LentConnection<'_, O> {
    /// Returns the connection to the pool, unless the pool was closed.
    pub(super) fn give_back(mut self) {
        self.pooled.last_used = Instant::now();
        // Checked under the lock, because `close` first closes the semaphore and then
        // empties the list.
        let mut idle = self.shared.idle();
        if !self.shared.permits.is_closed() {
            idle.push(self.pooled);
        }
    }
}

impl<O: Opener> Deref for LentConnection<'_, O> {
    type Target = O::Connection;

    fn deref(&self) -> &O::Connection {
        &self.pooled.connection
    }
}

impl<O: Opener> DerefMut for LentConnection<'_, O> {
    fn deref_mut(&mut self) -> &mut O::Connection {
        &mut self.pooled.connection
    }
}
