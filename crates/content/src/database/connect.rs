//! Opening databases so that nothing can be changed through them.

use std::str::FromStr;
use std::time::Duration;

use sqlx::mysql::{MySqlConnectOptions, MySqlConnection};
use sqlx::pool::PoolOptions;
use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Error, Executor};

use super::readers::{Origin, Readers};
use super::{Engine, NoConnection};
use crate::config::{Pool, Source};

/// The site that comes with gatelet, as SQL for SQLite. Computed for this
/// project; invented content.
const SAMPLE: &str = include_str!("../../assets/sample.sql");

pub(super) async fn open(source: &Source, pool: &Pool) -> Result<Engine, NoConnection> {
    let url = match source {
        Source::Sample => return readers(Origin::Memory(SAMPLE), pool).await,
        Source::Url(url) => url.as_str(),
    };
    match url.split_once(':') {
        Some(("sqlite", _)) => sqlite(url, pool).await,
        Some(("mysql", _)) => mysql(url, pool).await,
        Some(("mariadb", rest)) => mysql(&format!("mysql:{rest}"), pool).await,
        Some(("postgres" | "postgresql", _)) => postgres(url, pool).await,
        Some((scheme, _)) => Err(NoConnection::Scheme(format!("{scheme}:…"))),
        // Anything else may be a password typed into the wrong place.
        None => Err(NoConnection::Scheme("…".to_owned())),
    }
}

async fn sqlite(url: &str, pool: &Pool) -> Result<Engine, NoConnection> {
    let options = SqliteConnectOptions::from_str(url)
        .map_err(NoConnection::Url)?
        .read_only(true)
        .create_if_missing(false)
        .busy_timeout(Duration::from_secs(2))
        .pragma("query_only", "on")
        .disable_statement_logging();
    readers(Origin::File(Box::new(options)), pool).await
}

async fn readers(origin: Origin, pool: &Pool) -> Result<Engine, NoConnection> {
    Readers::open(origin, pool).await.map(Engine::Sqlite).map_err(NoConnection::Unreachable)
}

async fn mysql(url: &str, pool: &Pool) -> Result<Engine, NoConnection> {
    let options =
        MySqlConnectOptions::from_str(url).map_err(NoConnection::Url)?.disable_statement_logging();
    let limit = pool.statement;
    let opened = pooled(pool)
        .after_connect(move |connection, _| Box::pin(restrict(connection, limit)))
        .connect_with(options)
        .await
        .map_err(NoConnection::Unreachable)?;
    Ok(Engine::MySql(opened))
}

/// Makes a session read-only, with a limit for every statement.
async fn restrict(connection: &mut MySqlConnection, limit: Duration) -> Result<(), Error> {
    connection.execute("set session transaction read only").await?;
    // MariaDB counts in seconds; MySQL has another name for it.
    let seconds = limit.as_secs_f64();
    let mariadb = format!("set session max_statement_time = {seconds:.3}");
    if connection.execute(AssertSqlSafe(mariadb)).await.is_err() {
        let mysql = format!("set session max_execution_time = {}", limit.as_millis());
        connection.execute(AssertSqlSafe(mysql)).await?;
    }
    Ok(())
}

async fn postgres(url: &str, pool: &Pool) -> Result<Engine, NoConnection> {
    let options = PgConnectOptions::from_str(url)
        .map_err(NoConnection::Url)?
        .options([
            ("default_transaction_read_only", "on".to_owned()),
            ("statement_timeout", pool.statement.as_millis().to_string()),
        ])
        .disable_statement_logging();
    let opened = pooled(pool).connect_with(options).await.map_err(NoConnection::Unreachable)?;
    Ok(Engine::Postgres(opened))
}

/// A connection that turns out to be dead is replaced when it is used, so none
/// is asked beforehand how it feels.
fn pooled<DB: sqlx::Database>(pool: &Pool) -> PoolOptions<DB> {
    PoolOptions::new()
        .max_connections(pool.connections)
        .acquire_timeout(pool.acquire)
        .test_before_acquire(false)
}
