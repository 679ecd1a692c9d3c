//! The persistent state of the HTTP edge: tokens, tasks and idempotency keys.
//!
//! One SQLite file. Every change that must happen once is one transaction.

use std::path::Path;
use std::time::Duration;

use sqlx::SqlitePool;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions};

/// The persistent state.
#[derive(Clone)]
pub struct State(pub(super) SqlitePool);

/// The state file cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the state file cannot be used: {0}")]
pub struct StateError(#[from] sqlx::Error);

const TABLES: &str = "
create table if not exists emcp_tokens (
  id integer primary key autoincrement,
  user_id integer,
  name text not null,
  token_prefix text not null,
  token_hash text not null unique,
  scopes text not null,
  last_used_at integer,
  expires_at integer,
  revoked_at integer,
  created_at integer not null
);
create table if not exists tasks (
  id integer primary key autoincrement,
  server text not null,
  caller text not null,
  owner text not null,
  body blob not null,
  session text,
  trace_id text not null,
  payload_hash text not null,
  status integer not null,
  progress integer not null default 0,
  attempts integer not null default 0,
  max_attempts integer not null,
  result text,
  error text,
  created_at integer not null,
  updated_at integer not null
);
create index if not exists tasks_by_status on tasks (status, id);
create table if not exists idempotency (
  owner text not null,
  key text not null,
  payload_hash text not null,
  task_id integer,
  trace_id text not null,
  result text,
  updated_at integer not null,
  primary key (owner, key)
) without rowid;
create index if not exists idempotency_by_age on idempotency (updated_at);
";

impl State {
    /// Opens a file, and makes it when there is none. What was running when
    /// the last process ended is queued again.
    pub async fn open(path: &Path) -> Result<State, StateError> {
        private(path).map_err(sqlx::Error::Io)?;
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .busy_timeout(Duration::from_secs(5));
        // Writers wait for each other anyway; one connection never does.
        let pool = SqlitePoolOptions::new().max_connections(1).connect_with(options).await?;
        State::prepare(pool).await
    }

    /// A state that ends with the process.
    pub async fn in_memory() -> Result<State, StateError> {
        let pool = SqlitePoolOptions::new()
            .max_connections(1)
            .idle_timeout(None)
            .max_lifetime(None)
            .connect_with(SqliteConnectOptions::new().in_memory(true))
            .await?;
        State::prepare(pool).await
    }

    async fn prepare(pool: SqlitePool) -> Result<State, StateError> {
        sqlx::raw_sql(TABLES).execute(&pool).await?;
        Ok(State(pool))
    }

    /// Queues again what was running when the last process ended, unless it was
    /// tried often enough: it may be what ended it. Only for the process that
    /// works the queue.
    pub async fn recover(&self) -> Result<(), StateError> {
        let statements = "
            update tasks set status = 100, progress = 100, error = 'it never came to an end'
              where status = 50 and attempts >= max_attempts;
            update tasks set status = 10, progress = 0 where status = 50;";
        sqlx::raw_sql(statements).execute(&self.0).await?;
        Ok(())
    }
}

/// Makes the file, so that only its owner ever reads it, and closes one that
/// is open to others. SQLite gives the files beside it the same rights.
fn private(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
    let mut options = std::fs::OpenOptions::new();
    options.create(true).truncate(false).write(true).mode(0o600).open(path)?;
    for end in ["", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        match std::fs::metadata(&name) {
            Ok(about) if about.permissions().mode() & 0o077 != 0 => {
                std::fs::set_permissions(&name, std::fs::Permissions::from_mode(0o600))?;
            }
            Ok(_) | Err(_) => {}
        }
    }
    Ok(())
}

pub(super) fn seconds(time: Duration) -> i64 {
    i64::try_from(time.as_secs()).unwrap_or(i64::MAX)
}
