//! Connections to SQLite, each with a deadline of its own.
//!
//! SQLite has no limit for a statement; it asks back every so many steps
//! whether to go on. Who answers is set once for each connection and reads the
//! deadline from a number that we share with it. Setting it anew for every
//! statement, which is all that a general pool allows, costs a round trip to
//! the connection's thread: as much as a small statement itself.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Connection, Error, Executor};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use super::cell::{self, Rows};
use crate::config::Pool;
use crate::sql::Statement;

/// Steps of SQLite's machine between two looks at the clock: well under a
/// millisecond, and no cost that could be measured.
const STEPS: i32 = 10_000;

/// A file may be replaced under us, so no connection to one lives for ever.
const MAX_AGE: Duration = Duration::from_secs(30 * 60);

/// The connections to one SQLite database.
#[derive(Clone)]
pub(super) struct Readers(Arc<Shared>);

struct Shared {
    origin: Origin,
    patience: Duration,
    acquire: Duration,
    permits: Semaphore,
    idle: Mutex<Vec<Reader>>,
}

/// What a connection is opened to.
pub(super) enum Origin {
    File(Box<SqliteConnectOptions>),
    /// A database in memory, filled by these statements.
    Memory(&'static str),
}

struct Reader {
    connection: SqliteConnection,
    opened: Instant,
    /// Nanoseconds since `opened`.
    deadline: Arc<AtomicU64>,
}

impl Readers {
    /// Opens the first connection, to see that it can be.
    pub(super) async fn open(origin: Origin, pool: &Pool) -> Result<Readers, Error> {
        let n_connections = match origin {
            Origin::File(_) => usize::try_from(pool.connections).unwrap_or(usize::MAX),
            // Every connection would have its own copy, so one is enough.
            Origin::Memory(_) => 1,
        };
        let first = Reader::open(&origin).await?;
        Ok(Readers(Arc::new(Shared {
            origin,
            patience: pool.statement,
            acquire: pool.acquire,
            permits: Semaphore::new(n_connections.clamp(1, Semaphore::MAX_PERMITS)),
            idle: Mutex::new(vec![first]),
        })))
    }

    /// All rows of a statement. Whoever stops waiting stops the statement.
    pub(super) async fn fetch(&self, statement: &Statement) -> Result<Rows, Error> {
        let _permit = self.permit().await?;
        let mut reader = match self.take() {
            Some(reader) => reader,
            None => Reader::open(&self.0.origin).await?,
        };
        let allowance = reader.allow(self.0.patience);
        let rows = super::bound!(statement).fetch_all(&mut reader.connection).await;
        drop(allowance);
        if !matches!(rows, Err(Error::WorkerCrashed | Error::Io(_))) {
            self.idle().push(reader);
        }
        rows?.iter().map(cell::sqlite).collect()
    }

    pub(super) async fn close(&self) {
        self.0.permits.close();
        let idle = std::mem::take(&mut *self.idle());
        for reader in idle {
            // There is nothing to be saved.
            let _ = reader.connection.close().await;
        }
    }

    async fn permit(&self) -> Result<SemaphorePermit<'_>, Error> {
        match timeout(self.0.acquire, self.0.permits.acquire()).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) => Err(Error::PoolClosed),
            Err(_) => Err(Error::PoolTimedOut),
        }
    }

    /// A connection that is idle and not too old.
    fn take(&self) -> Option<Reader> {
        let keeps = match self.0.origin {
            Origin::File(_) => MAX_AGE,
            Origin::Memory(_) => Duration::MAX,
        };
        let mut idle = self.idle();
        idle.retain(|reader| reader.opened.elapsed() < keeps);
        idle.pop()
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Reader>> {
        self.0.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reader {
    async fn open(origin: &Origin) -> Result<Reader, Error> {
        let mut connection = match origin {
            Origin::File(options) => options.connect().await?,
            Origin::Memory(statements) => {
                let options =
                    SqliteConnectOptions::new().in_memory(true).disable_statement_logging();
                let mut connection = options.connect().await?;
                connection.execute(*statements).await?;
                connection.execute("pragma query_only = on").await?;
                connection
            }
        };
        let opened = Instant::now();
        let deadline = Arc::new(AtomicU64::new(u64::MAX));
        let limit = Arc::clone(&deadline);
        let in_time = move || nanoseconds(opened.elapsed()) < limit.load(Ordering::Relaxed);
        connection.lock_handle().await?.set_progress_handler(STEPS, in_time);
        Ok(Reader { connection, opened, deadline })
    }

    /// Gives the next statement its time, and no more than the caller waits.
    fn allow(&self, patience: Duration) -> Allowance {
        let deadline = self.opened.elapsed().saturating_add(patience);
        self.deadline.store(nanoseconds(deadline), Ordering::Relaxed);
        Allowance(Arc::clone(&self.deadline))
    }
}

/// The time that a statement has; it is over when this is dropped.
struct Allowance(Arc<AtomicU64>);

impl Drop for Allowance {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
