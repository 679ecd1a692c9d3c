//! The same statement without the toolset: what a program would do that asks
//! the database itself. A warm pool, a prepared statement, the same rows, and
//! every column read.

use serde_json::Value;
use sqlx::mysql::{MySqlPool, MySqlPoolOptions, MySqlRow};
use sqlx::sqlite::{SqlitePool, SqlitePoolOptions, SqliteRow};
use sqlx::{AssertSqlSafe, Error, Row, TypeInfo, ValueRef};

pub(crate) enum Bare {
    Sqlite(SqlitePool),
    MySql(MySqlPool),
}

/// One value of a row, as such a program would hold it.
pub(crate) enum Field {
    Null,
    Number(i64),
    Text(String),
}

impl Field {
    /// A use for what was read, so that reading it is not left out.
    pub(crate) fn weight(&self) -> usize {
        match self {
            Field::Null => 0,
            Field::Number(number) => usize::from(*number != 0),
            Field::Text(text) => text.len(),
        }
    }
}

/// Runs a statement and reads its rows.
macro_rules! ask {
    ($pool:expr, $sql:expr, $values:expr, $read:path) => {{
        let mut query = sqlx::query(AssertSqlSafe($sql));
        for value in $values {
            query = match value {
                Value::String(text) => query.bind(text.as_str()),
                Value::Number(number) if number.is_f64() => query.bind(number.as_f64()),
                number => query.bind(number.as_i64()),
            };
        }
        let rows = query.fetch_all($pool).await?;
        rows.iter().map(|row| (0..row.len()).map(|at| $read(row, at)).collect()).collect()
    }};
}

impl Bare {
    pub(crate) async fn open(url: &str) -> Result<Bare, Error> {
        // No ping before each statement: that would flatter us.
        Ok(if url.starts_with("sqlite:") {
            let pool = SqlitePoolOptions::new().test_before_acquire(false);
            Bare::Sqlite(pool.connect(url).await?)
        } else {
            let pool = MySqlPoolOptions::new().test_before_acquire(false);
            Bare::MySql(pool.connect(url).await?)
        })
    }

    pub(crate) async fn ask(&self, sql: &str, values: &[Value]) -> Result<Vec<Vec<Field>>, Error> {
        match self {
            Bare::Sqlite(pool) => ask!(pool, sql, values, sqlite),
            Bare::MySql(pool) => ask!(pool, sql, values, mysql),
        }
    }

    pub(crate) async fn close(&self) {
        match self {
            Bare::Sqlite(pool) => pool.close().await,
            Bare::MySql(pool) => pool.close().await,
        }
    }
}

fn sqlite(row: &SqliteRow, at: usize) -> Result<Field, Error> {
    let raw = row.try_get_raw(at)?;
    if raw.is_null() {
        return Ok(Field::Null);
    }
    match raw.type_info().name() {
        "INTEGER" | "BOOLEAN" => row.try_get_unchecked(at).map(Field::Number),
        _ => row.try_get_unchecked(at).map(Field::Text),
    }
}

fn mysql(row: &MySqlRow, at: usize) -> Result<Field, Error> {
    let raw = row.try_get_raw(at)?;
    if raw.is_null() {
        return Ok(Field::Null);
    }
    match raw.type_info().name() {
        name if name.contains("INT") || name == "BOOLEAN" => {
            row.try_get_unchecked(at).map(Field::Number)
        }
        _ => row.try_get_unchecked(at).map(Field::Text),
    }
}
