//! Opens read-only connection pools to SQLite, MySQL and PostgreSQL.

use std::str::FromStr;
use std::time::Duration;

use sqlx::mysql::{MySqlConnectOptions, MySqlConnection};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Error, Executor};

use super::pool::{Opener, Pool};
use super::sqlite::{Sqlite, with_number_collations};
use crate::config::{self, Source};

/// The sample site that comes with gatelet, as SQL for SQLite. Its content is invented.
const SAMPLE: &str = include_str!("../../assets/sample.sql");

/// A pool of connections to one of the engines.
#[derive(Clone)]
pub(super) enum Engine {
    Sqlite(Pool<Sqlite>),
    MySql(Pool<MySql>),
    Postgres(Pool<Postgres>),
}

/// Why a database cannot be opened at all.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    #[error(
        "`{0}` is no database URL; it must start with `sqlite:`, `mysql:`, `mariadb:` or `postgres:`"
    )]
    Scheme(String),
    #[error("the database URL cannot be read")]
    Url(#[source] Error),
    #[error("there is no file `{0}`")]
    NoFile(String),
    #[error("the database cannot be reached")]
    Unreachable(#[source] Error),
}

pub(super) async fn open(source: &Source, pool: &config::Pool) -> Result<Engine, ConnectError> {
    let url = match source {
        Source::Sample => return sample(pool).await,
        Source::Url(url) => url.as_str(),
    };
    match url.split_once(':') {
        Some(("sqlite", _)) => sqlite(url, pool).await,
        Some(("mysql", _)) => mysql(url, pool).await,
        Some(("mariadb", rest)) => mysql(&format!("mysql:{rest}"), pool).await,
        Some(("postgres" | "postgresql", _)) => postgres(url, pool).await,
        Some((scheme, _)) => Err(ConnectError::Scheme(format!("{scheme}:…"))),
        // Not quoted, because it may be a password in the wrong place.
        None => Err(ConnectError::Scheme("…".to_owned())),
    }
}

async fn sqlite(url: &str, pool: &config::Pool) -> Result<Engine, ConnectError> {
    let options = SqliteConnectOptions::from_str(url)
        .map_err(ConnectError::Url)?
        .read_only(true)
        .create_if_missing(false)
        .busy_timeout(Duration::from_secs(2))
        .pragma("query_only", "on")
        .disable_statement_logging();
    let file = options.get_filename().to_owned();
    let opener = Sqlite::File(Box::new(with_number_collations(options)));
    match open_pool(opener, pool.connections, pool).await {
        Ok(pool) => Ok(Engine::Sqlite(pool)),
        Err(ConnectError::Unreachable(_)) if !file.exists() => {
            Err(ConnectError::NoFile(file.display().to_string()))
        }
        Err(error) => Err(error),
    }
}

/// Opens the sample site with one connection, because each would have its own copy.
async fn sample(pool: &config::Pool) -> Result<Engine, ConnectError> {
    open_pool(Sqlite::Memory(SAMPLE), 1, pool).await.map(Engine::Sqlite)
}

async fn mysql(url: &str, pool: &config::Pool) -> Result<Engine, ConnectError> {
    let options =
        MySqlConnectOptions::from_str(url).map_err(ConnectError::Url)?.disable_statement_logging();
    let opener = MySql { options: Box::new(options), statement_timeout: pool.statement };
    open_pool(opener, pool.connections, pool).await.map(Engine::MySql)
}

async fn postgres(url: &str, pool: &config::Pool) -> Result<Engine, ConnectError> {
    let options = PgConnectOptions::from_str(url)
        .map_err(ConnectError::Url)?
        .options([
            ("default_transaction_read_only", "on".to_owned()),
            ("statement_timeout", pool.statement.as_millis().to_string()),
        ])
        .disable_statement_logging();
    open_pool(Postgres(Box::new(options)), pool.connections, pool).await.map(Engine::Postgres)
}

async fn open_pool<O: Opener>(
    opener: O,
    n_connections: u32,
    pool: &config::Pool,
) -> Result<Pool<O>, ConnectError> {
    Pool::open(opener, n_connections, pool.acquire).await.map_err(ConnectError::Unreachable)
}

/// Opens connections to MariaDB or MySQL.
pub(super) struct MySql {
    options: Box<MySqlConnectOptions>,
    statement_timeout: Duration,
}

impl Opener for MySql {
    type Connection = MySqlConnection;

    /// Opens a read-only session with a time limit for every statement.
    async fn open(&self) -> Result<MySqlConnection, Error> {
        let mut connection = self.options.connect().await?;
        connection.execute("set session transaction read only").await?;
        // MariaDB's variable counts in seconds; MySQL has another one, in milliseconds.
        let mariadb =
            format!("set session max_statement_time = {:.3}", self.statement_timeout.as_secs_f64());
        if connection.execute(AssertSqlSafe(mariadb)).await.is_err() {
            let mysql =
                format!("set session max_execution_time = {}", self.statement_timeout.as_millis());
            connection.execute(AssertSqlSafe(mysql)).await?;
        }
        Ok(connection)
    }

    async fn close(connection: MySqlConnection) {
        // There is nothing to be saved.
        let _ = connection.close().await;
    }
}

/// Opens connections to PostgreSQL.
pub(super) struct Postgres(Box<PgConnectOptions>);

impl Opener for Postgres {
    type Connection = PgConnection;

    async fn open(&self) -> Result<PgConnection, Error> {
        self.0.connect().await
    }

    async fn close(connection: PgConnection) {
        let _ = connection.close().await;
    }
}
