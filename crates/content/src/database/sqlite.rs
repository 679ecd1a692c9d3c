//! Connections to SQLite with a time limit for every statement.
//!
//! SQLite has no time limit of its own, but calls a progress handler every so many
//! steps to ask whether to go on. The handler is set once for each connection and
//! reads the deadline from a shared number. Setting a handler for every statement
//! would cost a round trip to the connection's thread, as much as a small statement.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Connection, Error, Executor};

use super::pool::{MAX_AGE, Opener};
use crate::number_prefix::{self, collation_name};
use crate::query::{Cast, MAX_SCALE};

/// Steps of SQLite's virtual machine between two checks of the deadline: well under a
/// millisecond, and without a measurable cost.
const STEPS_PER_CHECK: i32 = 10_000;

/// The SQLite database that connections are opened to.
pub(super) enum Sqlite {
    File(Box<SqliteConnectOptions>),
    /// A database in memory, filled by these statements.
    Memory(&'static str),
}

/// A read-only connection with the deadline of its current statement.
pub(super) struct Reader {
    pub(super) connection: SqliteConnection,
    opened: Instant,
    /// In nanoseconds since `opened`.
    deadline: Arc<AtomicU64>,
}

impl Opener for Sqlite {
    type Connection = Reader;

    async fn open(&self) -> Result<Reader, Error> {
        let mut connection = match self {
            Sqlite::File(options) => options.connect().await?,
            Sqlite::Memory(statements) => {
                let options = SqliteConnectOptions::new().in_memory(true);
                let options = with_number_collations(options).disable_statement_logging();
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
        connection.lock_handle().await?.set_progress_handler(STEPS_PER_CHECK, in_time);
        Ok(Reader { connection, opened, deadline })
    }

    async fn close(reader: Reader) {
        // There is nothing to be saved.
        let _ = reader.connection.close().await;
    }

    fn max_age(&self) -> Option<Duration> {
        match self {
            Sqlite::File(_) => Some(MAX_AGE),
            Sqlite::Memory(_) => None,
        }
    }
}

/// Registers the collations that compare texts by the number at their start.
pub(super) fn with_number_collations(options: SqliteConnectOptions) -> SqliteConnectOptions {
    let decimals = (0..=MAX_SCALE).map(|scale| Cast::Decimal { scale });
    decimals.chain([Cast::Integer]).fold(options, |options, cast| {
        let name: Arc<str> = collation_name(cast).into();
        options.collation(name, move |left, right| number_prefix::compare(cast, left, right))
    })
}

impl Reader {
    /// Starts the time limit of the next statement, which ends when the result is dropped.
    pub(super) fn limit_statement(&self, timeout: Duration) -> StatementTime {
        let deadline = self.opened.elapsed().saturating_add(timeout);
        self.deadline.store(nanoseconds(deadline), Ordering::Relaxed);
        StatementTime(Arc::clone(&self.deadline))
    }
}

/// The time limit of a running statement; dropping it interrupts the statement.
pub(super) struct StatementTime(Arc<AtomicU64>);

impl Drop for StatementTime {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
