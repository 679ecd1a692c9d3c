//! Opening databases so that nothing can be changed through them.

use std::str::FromStr;
use std::time::{Duration, Instant};

use sqlx::mysql::{MySqlConnectOptions, MySqlDatabaseError, MySqlPoolOptions};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqlitePoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions, Error, Executor};

use super::{Engine, NoConnection};
use crate::config::{Pool, Source};

/// The site that comes with gatelet, as SQL for SQLite. Computed for this
/// project; invented content.
const SAMPLE: &str = include_str!("../../assets/sample.sql");

pub(super) async fn open(source: &Source, pool: &Pool) -> Result<Engine, NoConnection> {
    let url = match source {
        Source::Sample => return sample(pool).await,
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

/// Every connection has its own copy, so one is enough.
async fn sample(pool: &Pool) -> Result<Engine, NoConnection> {
    let options = SqliteConnectOptions::new().in_memory(true).disable_statement_logging();
    let filled = SqlitePoolOptions::new()
        .max_connections(1)
        .idle_timeout(None)
        .max_lifetime(None)
        .acquire_timeout(pool.acquire)
        .test_before_acquire(false)
        .after_connect(|connection, _| {
            Box::pin(async move {
                connection.execute(SAMPLE).await?;
                connection.execute("pragma query_only = on").await?;
                Ok(())
            })
        })
        .connect_with(options)
        .await
        .map_err(NoConnection::Unreachable)?;
    Ok(Engine::Sqlite(filled))
}

async fn sqlite(url: &str, pool: &Pool) -> Result<Engine, NoConnection> {
    let options = SqliteConnectOptions::from_str(url)
        .map_err(NoConnection::Url)?
        .read_only(true)
        .create_if_missing(false)
        .busy_timeout(Duration::from_secs(2))
        .pragma("query_only", "on")
        .disable_statement_logging();
    let opened = SqlitePoolOptions::new()
        .max_connections(pool.connections)
        .acquire_timeout(pool.acquire)
        .test_before_acquire(false)
        .connect_with(options)
        .await
        .map_err(NoConnection::Unreachable)?;
    Ok(Engine::Sqlite(opened))
}

async fn mysql(url: &str, pool: &Pool) -> Result<Engine, NoConnection> {
    let options =
        MySqlConnectOptions::from_str(url).map_err(NoConnection::Url)?.disable_statement_logging();
    let limit = pool.statement;
    let opened = MySqlPoolOptions::new()
        .max_connections(pool.connections)
        .acquire_timeout(pool.acquire)
        .test_before_acquire(false)
        .after_connect(move |connection, _| {
            Box::pin(async move {
                connection.execute("set session transaction read only").await?;
                // MariaDB counts in seconds; MySQL has another name for it.
                let seconds = limit.as_secs_f64();
                let mariadb = format!("set session max_statement_time = {seconds:.3}");
                if connection.execute(AssertSqlSafe(mariadb)).await.is_err() {
                    let mysql = format!("set session max_execution_time = {}", limit.as_millis());
                    connection.execute(AssertSqlSafe(mysql)).await?;
                }
                Ok(())
            })
        })
        .connect_with(options)
        .await
        .map_err(NoConnection::Unreachable)?;
    Ok(Engine::MySql(opened))
}

async fn postgres(url: &str, pool: &Pool) -> Result<Engine, NoConnection> {
    let options = PgConnectOptions::from_str(url)
        .map_err(NoConnection::Url)?
        .options([
            ("default_transaction_read_only", "on".to_owned()),
            ("statement_timeout", pool.statement.as_millis().to_string()),
        ])
        .disable_statement_logging();
    let opened = PgPoolOptions::new()
        .max_connections(pool.connections)
        .acquire_timeout(pool.acquire)
        .test_before_acquire(false)
        .connect_with(options)
        .await
        .map_err(NoConnection::Unreachable)?;
    Ok(Engine::Postgres(opened))
}

/// Gives the next statement on this connection its time. SQLite has no limit
/// of its own; it asks back every so many steps whether to go on.
pub(super) async fn limit(
    connection: &mut SqliteConnection,
    patience: Duration,
) -> Result<(), Error> {
    let deadline = Instant::now() + patience;
    let mut handle = connection.lock_handle().await?;
    handle.set_progress_handler(STEPS, move || Instant::now() < deadline);
    Ok(())
}

/// Steps of SQLite's machine between two looks at the clock: well under a
/// millisecond, and no cost that could be measured.
const STEPS: i32 = 10_000;

/// What an error means for the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Lost,
    Slow,
    Refused,
}

#[expect(clippy::wildcard_enum_match_arm, reason = "sqlx's errors are not ours to list")]
pub(super) fn verdict(error: &Error) -> Verdict {
    match error {
        Error::Io(_)
        | Error::Tls(_)
        | Error::Protocol(_)
        | Error::PoolTimedOut
        | Error::PoolClosed
        | Error::WorkerCrashed => Verdict::Lost,
        Error::Database(refusal) => {
            if let Some(refusal) = refusal.try_downcast_ref::<MySqlDatabaseError>() {
                return mysql_verdict(refusal.number());
            }
            match refusal.code().as_deref() {
                // SQLite: interrupted; PostgreSQL: query cancelled.
                Some("9" | "57014") => Verdict::Slow,
                // SQLite: busy, locked, I/O error, cannot open.
                Some("5" | "6" | "10" | "14") => Verdict::Lost,
                // PostgreSQL: shut down, starting up, too many, connection.
                Some("57P01" | "57P02" | "57P03" | "53300") => Verdict::Lost,
                Some(code) if code.starts_with("08") => Verdict::Lost,
                _ => Verdict::Refused,
            }
        }
        _ => Verdict::Refused,
    }
}

fn mysql_verdict(number: u16) -> Verdict {
    match number {
        // Statement timeouts of MariaDB and MySQL.
        1969 | 3024 => Verdict::Slow,
        // Too many connections, shutdown, killed, read errors.
        1040 | 1053 | 1158..=1161 | 1927 => Verdict::Lost,
        _ => Verdict::Refused,
    }
}
