//! Runs SQL statements on SQLite, MySQL or PostgreSQL and returns their rows.
//!
//! Every connection is read-only, and every statement has a time limit. When a
//! connection breaks, the statement is run again on another one, which is safe
//! because statements only read.

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
pub(crate) use error_class::{ConnectionRefusal, connection_refusal};
use error_class::{ErrorClass, classify};

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
    /// The database cannot be reached or is too busy: try again.
    #[error("the database cannot be reached")]
    Lost(#[source] Error),
    /// The statement took too long: ask for less.
    #[error("the statement took longer than {0:?}")]
    Slow(Duration),
    /// The database rejected the statement: look at the log.
    #[error("the database refused the statement")]
    Refused(#[source] Error),
}

/// Binds the values of a statement to its placeholders, for the engine of the caller.
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

/// Runs a statement on a connection of a pool and converts its rows to cells. The time
/// limit is for the statement alone: waiting for a connection has its own. A
/// connection that still works goes back to the pool.
macro_rules! run {
    ($self:ident, $pool:expr, $statement:expr, $cells:path,
     $lent:ident => $on:expr $(, while $held:expr)?) => {{
        let mut $lent = $pool.take().await.map_err(|error| $self.convert_error(error))?;
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

    /// Runs a statement and returns all its rows; tries again when a connection breaks.
    pub(crate) async fn fetch(&self, statement: &Statement) -> Result<Rows, DatabaseError> {
        let mut attempts_left = self.n_idle() + 1;
        loop {
            match self.run(statement).await {
                // After a restart of the server all idle connections are broken, so as
                // many attempts are needed. A timeout of the pool is not tried again.
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

    /// Runs a statement once.
    async fn run(&self, statement: &Statement) -> Result<Rows, DatabaseError> {
        let rows = match &self.engine {
            Engine::Sqlite(pool) => run!(
                self, pool, statement, cell::sqlite,
                reader => &mut reader.connection, while reader.limit_statement(self.timeout)
            ),
            Engine::MySql(pool) => {
                run!(self, pool, statement, cell::mysql, connection => &mut *connection)
            }
            Engine::Postgres(pool) => {
                run!(self, pool, statement, cell::postgres, connection => &mut *connection)
            }
        };
        rows.map_err(|error| self.convert_error(error))
    }

    fn convert_error(&self, error: Error) -> DatabaseError {
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

/// How much longer than the engine's own time limit we wait before we give up.
const GRACE: Duration = Duration::from_secs(2);
