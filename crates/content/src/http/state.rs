//! The SQLite file with the state of the HTTP interface: tokens, tasks, idempotency keys.

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
    /// Opens the file, and creates it if there is none.
    pub async fn open(path: &Path) -> Result<State, StateError> {
        restrict_to_owner(path).map_err(sqlx::Error::Io)?;
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .busy_timeout(Duration::from_secs(5));
        // Writers would wait for each other anyway, and one connection needs no locks.
        let pool = SqlitePoolOptions::new().max_connections(1).connect_with(options).await?;
        State::prepare(pool).await
    }

    /// Opens a state in memory, which is lost when it is dropped.
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

    /// Queues the tasks again that were running when the last process ended. Those without
    /// attempts left fail, since they may have crashed it. Only for the process that runs
    /// the tasks.
    pub async fn recover(&self) -> Result<(), StateError> {
        let statements = "
            update tasks set status = 100, progress = 100, error = 'it never came to an end'
              where status = 50 and attempts >= max_attempts;
            update tasks set status = 10, progress = 0 where status = 50;";
        sqlx::raw_sql(statements).execute(&self.0).await?;
        Ok(())
    }
}

/// Creates the file with permissions for its owner alone, or restricts those of an
/// existing one. SQLite gives its auxiliary files the same permissions.
fn restrict_to_owner(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
    let mut options = std::fs::OpenOptions::new();
    options.create(true).truncate(false).write(true).mode(0o600).open(path)?;
    for end in ["", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        match std::fs::metadata(&name) {
            Ok(metadata) if metadata.permissions().mode() & 0o077 != 0 => {
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
