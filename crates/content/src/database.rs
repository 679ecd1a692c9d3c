//! One way to run a statement on three engines.
//!
//! Every connection is opened read-only, and every statement has a time
//! limit. A connection that breaks is replaced and the statement is run
//! again: nothing here changes anything, so that is always safe.

mod cell;
mod connect;

use std::time::Duration;

use sqlx::{AssertSqlSafe, MySqlPool, PgPool, SqlitePool};
use tokio::time::error::Elapsed;
use tokio::time::timeout;

pub(crate) use cell::Cell;

use crate::config::{Pool, Source};
use crate::query::Operand;
use crate::sql::{Dialect, Statement};

/// A pool of connections to one database.
#[derive(Clone)]
pub(crate) struct Database {
    engine: Engine,
    patience: Duration,
}

#[derive(Clone)]
enum Engine {
    Sqlite(SqlitePool),
    MySql(MySqlPool),
    Postgres(PgPool),
}

/// Why a statement gave no rows. One variant per remedy.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    /// The database is away or too busy: try again.
    #[error("the database cannot be reached")]
    Lost(#[source] sqlx::Error),
    /// The statement took too long: ask for less.
    #[error("the statement took longer than {0:?}")]
    Slow(Duration),
    /// The database understood, and would not: look at the log.
    #[error("the database refused the statement")]
    Refused(#[source] sqlx::Error),
}

/// Why a database cannot be opened at all.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoConnection {
    #[error(
        "`{0}` is no database URL; it must start with `sqlite:`, `mysql:`, `mariadb:` or `postgres:`"
    )]
    Scheme(String),
    #[error("the database URL cannot be read")]
    Url(#[source] sqlx::Error),
    #[error("the database cannot be reached")]
    Unreachable(#[source] sqlx::Error),
}

/// What an attempt came to.
type Fetched = Result<Vec<Vec<Cell>>, sqlx::Error>;

/// A statement with its values, ready for one engine.
macro_rules! bound {
    ($statement:expr) => {{
        let mut query = sqlx::query(AssertSqlSafe($statement.text.as_str()));
        for value in &$statement.values {
            query = match value {
                Operand::Integer(integer) => query.bind(*integer),
                Operand::Real(real) => query.bind(*real),
                Operand::Text(text) => query.bind(text.as_str()),
            };
        }
        query
    }};
}

/// Runs a statement and turns its rows into cells.
macro_rules! rows {
    ($executor:expr, $statement:expr, $cells:path) => {
        async {
            let rows = bound!($statement).fetch_all($executor).await?;
            rows.iter().map($cells).collect::<Fetched>()
        }
    };
}

/// A connection, or the way out of an attempt.
macro_rules! acquired {
    ($pool:expr) => {
        match $pool.acquire().await {
            Ok(connection) => connection,
            Err(error) => return Ok(Err(error)),
        }
    };
}

/// Runs a statement and counts its rows.
macro_rules! count {
    ($executor:expr, $statement:expr) => {
        bound!($statement).fetch_all($executor).await.map(|rows| rows.len())
    };
}

impl Database {
    pub(crate) async fn connect(source: &Source, pool: &Pool) -> Result<Database, NoConnection> {
        let engine = connect::open(source, pool).await?;
        Ok(Database { engine, patience: pool.statement })
    }

    pub(crate) fn dialect(&self) -> Dialect {
        match self.engine {
            Engine::Sqlite(_) => Dialect::Sqlite,
            Engine::MySql(_) => Dialect::MySql,
            Engine::Postgres(_) => Dialect::Postgres,
        }
    }

    /// All rows of a statement.
    pub(crate) async fn fetch(&self, statement: &Statement) -> Result<Vec<Vec<Cell>>, Trouble> {
        let mut attempts_left = self.n_idle() + 1;
        loop {
            match self.run(statement).await {
                Ok(Ok(rows)) => return Ok(rows),
                Err(_) => return Err(Trouble::Slow(self.patience)),
                // After a restart every idle connection is a dead one; but who
                // has waited for a connection in vain need not wait again.
                Ok(Err(error)) => match self.judge(error) {
                    Trouble::Lost(sqlx::Error::PoolTimedOut) => {
                        return Err(Trouble::Lost(sqlx::Error::PoolTimedOut));
                    }
                    Trouble::Lost(_) if attempts_left > 0 => attempts_left -= 1,
                    trouble @ (Trouble::Lost(_) | Trouble::Slow(_) | Trouble::Refused(_)) => {
                        return Err(trouble);
                    }
                },
            }
        }
    }

    fn n_idle(&self) -> usize {
        match &self.engine {
            Engine::Sqlite(_) => 0,
            Engine::MySql(pool) => pool.num_idle(),
            Engine::Postgres(pool) => pool.num_idle(),
        }
    }

    /// One attempt. Waiting for a connection has its own limit, so only the
    /// statement itself is timed here.
    async fn run(&self, statement: &Statement) -> Result<Fetched, Elapsed> {
        let patience = self.patience + GRACE;
        match &self.engine {
            Engine::Sqlite(pool) => {
                let mut connection = acquired!(pool);
                if let Err(error) = connect::limit(&mut connection, self.patience).await {
                    return Ok(Err(error));
                }
                timeout(patience, rows!(&mut *connection, statement, cell::sqlite)).await
            }
            Engine::MySql(pool) => {
                let mut connection = acquired!(pool);
                timeout(patience, rows!(&mut *connection, statement, cell::mysql)).await
            }
            Engine::Postgres(pool) => {
                let mut connection = acquired!(pool);
                timeout(patience, rows!(&mut *connection, statement, cell::postgres)).await
            }
        }
    }

    /// Runs a statement as a program without this toolset would: no time
    /// limit is set, and no value is read.
    pub(crate) async fn bare(&self, statement: &Statement) -> Result<usize, Trouble> {
        let n_rows = match &self.engine {
            Engine::Sqlite(pool) => count!(pool, statement),
            Engine::MySql(pool) => count!(pool, statement),
            Engine::Postgres(pool) => count!(pool, statement),
        };
        n_rows.map_err(|error| self.judge(error))
    }

    fn judge(&self, error: sqlx::Error) -> Trouble {
        match connect::verdict(&error) {
            connect::Verdict::Lost => Trouble::Lost(error),
            connect::Verdict::Slow => Trouble::Slow(self.patience),
            connect::Verdict::Refused => Trouble::Refused(error),
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
