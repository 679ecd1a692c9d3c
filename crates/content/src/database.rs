//! Runs statements on any of the three engines.
//!
//! Every connection is opened read-only, and every statement has a time
//! limit. A connection that breaks is replaced and the statement is run
//! again: nothing here changes anything, so that is always safe.

mod cell;
mod connect;
mod error_class;
mod pool;
mod sqlite;

use std::time::Duration;

use sqlx::Error;
use tokio::time::timeout;

pub(crate) use cell::{Cell, Rows};
pub(crate) use connect::ConnectError;
use connect::Engine;
use error_class::{ErrorClass, classify};
pub(crate) use error_class::{Refused, refused};

use crate::config::{self, Source};
use crate::statement::{Dialect, Statement};

/// A pool of connections to one database.
#[derive(Clone)]
pub(crate) struct Database {
    engine: Engine,
    timeout: Duration,
}

/// Why a statement gave no rows. One variant per remedy.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DatabaseError {
    /// The database is away or too busy: try again.
    #[error("the database cannot be reached")]
    Lost(#[source] Error),
    /// The statement took too long: ask for less.
    #[error("the statement took longer than {0:?}")]
    Slow(Duration),
    /// The database understood, and would not: look at the log.
    #[error("the database refused the statement")]
    Refused(#[source] Error),
}

/// A statement with its values, ready for one engine.
macro_rules! bound {
    ($statement:expr) => {{
        let mut query = sqlx::query(sqlx::AssertSqlSafe($statement.text.as_str()));
        for value in &$statement.values {
            query = match value {
                crate::query::Operand::Integer(integer) => query.bind(*integer),
                crate::query::Operand::Decimal(text) | crate::query::Operand::Text(text) => {
                    query.bind(text.as_str())
                }
            };
        }
        query
    }};
}

/// Runs a statement on a connection of a pool, and turns its rows into cells.
/// Waiting for a connection has its own limit, so only the statement is timed.
/// A connection that still works is kept.
macro_rules! run {
    ($self:ident, $pool:expr, $statement:expr, $cells:path,
     $lent:ident => $on:expr $(, while $held:expr)?) => {{
        let mut $lent = $pool.take().await.map_err(|error| $self.judge(error))?;
        let rows = {
            $(let _held = $held;)?
            timeout($self.timeout + GRACE, bound!($statement).fetch_all($on)).await
        };
        let Ok(rows) = rows else {
            return Err(DatabaseError::Slow($self.timeout));
        };
        if !matches!(&rows, Err(error) if classify(error) == ErrorClass::Lost) {
            $lent.give_back();
        }
        rows.and_then(|rows| $cells(&rows))
    }};
}

impl Database {
    pub(crate) async fn connect(
        source: &Source,
        pool: &config::Pool,
    ) -> Result<Database, ConnectError> {
        let engine = connect::open(source, pool).await?;
        Ok(Database { engine, timeout: pool.statement })
    }

    pub(crate) fn dialect(&self) -> Dialect {
        match self.engine {
            Engine::Sqlite(_) => Dialect::Sqlite,
            Engine::MySql(_) => Dialect::MySql,
            Engine::Postgres(_) => Dialect::Postgres,
        }
    }

    /// All rows of a statement.
    pub(crate) async fn fetch(&self, statement: &Statement) -> Result<Rows, DatabaseError> {
        let mut attempts_left = self.n_idle() + 1;
        loop {
            match self.run(statement).await {
                // Who has waited for a connection in vain need not wait again;
                // but after a restart every idle connection is a dead one.
                Err(DatabaseError::Lost(error))
                    if attempts_left > 0 && !matches!(error, Error::PoolTimedOut) =>
                {
                    attempts_left -= 1;
                }
                outcome => return outcome,
            }
        }
    }

    fn n_idle(&self) -> usize {
        match &self.engine {
            Engine::Sqlite(pool) => pool.n_idle(),
            Engine::MySql(pool) => pool.n_idle(),
            Engine::Postgres(pool) => pool.n_idle(),
        }
    }

    /// One attempt.
    async fn run(&self, statement: &Statement) -> Result<Rows, DatabaseError> {
        let rows = match &self.engine {
            Engine::Sqlite(pool) => run!(
                self, pool, statement, cell::sqlite,
                reader => &mut reader.connection, while reader.allow(self.timeout)
            ),
            Engine::MySql(pool) => {
                run!(self, pool, statement, cell::mysql, connection => &mut *connection)
            }
            Engine::Postgres(pool) => {
                run!(self, pool, statement, cell::postgres, connection => &mut *connection)
            }
        };
        rows.map_err(|error| self.judge(error))
    }

    fn judge(&self, error: Error) -> DatabaseError {
        match classify(&error) {
            ErrorClass::Lost => DatabaseError::Lost(error),
            ErrorClass::Slow => DatabaseError::Slow(self.timeout),
            ErrorClass::Refused => DatabaseError::Refused(error),
        }
    }

    pub(crate) async fn close(&self) {
        match &self.engine {
            Engine::Sqlite(pool) => pool.close().await,
            Engine::MySql(pool) => pool.close().await,
            Engine::Postgres(pool) => pool.close().await,
        }
    }
}

/// How much longer than the engine's own limit we wait before we hang up.
const GRACE: Duration = Duration::from_secs(2);
