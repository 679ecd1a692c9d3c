//! Converts the result rows of the three engines to one type of value.

use sqlx::mysql::{MySqlColumn, MySqlRow};
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{Column, Error, Row, TypeInfo, ValueRef};

/// One value of one row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    Null,
    Integer(i64),
    Text(String),
}

/// The rows that a statement returned.
pub(crate) type Rows = Vec<Vec<Cell>>;

impl Cell {
    /// The value as an integer; of a text, the integer at its start or 0.
    pub(crate) fn number(&self) -> Option<i64> {
        match self {
            Cell::Null => None,
            Cell::Integer(number) => Some(*number),
            Cell::Text(text) => Some(leading_integer(text)),
        }
    }

    pub(crate) fn text(self) -> Option<String> {
        match self {
            Cell::Null => None,
            Cell::Integer(number) => Some(number.to_string()),
            Cell::Text(text) => Some(text),
        }
    }
}

/// The integer at the start of a text, 0 where there is none.
fn leading_integer(text: &str) -> i64 {
    let text = text.trim_start();
    let signs = text.len() - text.trim_start_matches(['+', '-']).len();
    let digits = text[signs..].bytes().take_while(u8::is_ascii_digit).count();
    text[..signs + digits].parse().unwrap_or(0)
}

/// Converts bytes to text and replaces invalid UTF-8. Nearly all bytes are valid, and
/// the check alone is faster than `from_utf8_lossy`.
fn lossy(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => String::from_utf8_lossy(bytes).into_owned(),
    }
}

pub(super) fn sqlite(rows: &[SqliteRow]) -> Result<Rows, Error> {
    // In SQLite each value has a type of its own, whatever its column declares.
    let cell = |row: &SqliteRow, at: usize| {
        let raw = row.try_get_raw(at)?;
        if raw.is_null() {
            return Ok(Cell::Null);
        }
        let kind = raw.type_info();
        if kind.name() == "INTEGER" || kind.name() == "BOOLEAN" {
            return Ok(Cell::Integer(row.try_get_unchecked(at)?));
        }
        if kind.name() == "REAL" {
            let real: f64 = row.try_get_unchecked(at)?;
            return Ok(Cell::Text(real.to_string()));
        }
        let bytes: &[u8] = row.try_get_unchecked(at)?;
        Ok(Cell::Text(lossy(bytes)))
    };
    rows.iter().map(|row| (0..row.len()).map(|at| cell(row, at)).collect()).collect()
}

/// The type as which the values of a MySQL column are decoded.
#[derive(Clone, Copy)]
enum ColumnKind {
    Signed,
    Unsigned,
    Bytes,
}

pub(super) fn mysql(rows: &[MySqlRow]) -> Result<Rows, Error> {
    let kind = |column: &MySqlColumn| match column.type_info().name() {
        "BOOLEAN" | "TINYINT" | "SMALLINT" | "MEDIUMINT" | "INT" | "BIGINT" => ColumnKind::Signed,
        "TINYINT UNSIGNED" | "SMALLINT UNSIGNED" | "MEDIUMINT UNSIGNED" | "INT UNSIGNED"
        | "BIGINT UNSIGNED" => ColumnKind::Unsigned,
        _ => ColumnKind::Bytes,
    };
    let Some(first) = rows.first() else { return Ok(Rows::new()) };
    let kinds: Vec<ColumnKind> = first.columns().iter().map(kind).collect();
    let cell = |row: &MySqlRow, at: usize, kind: ColumnKind| {
        let cell = match kind {
            ColumnKind::Signed => row.try_get_unchecked::<Option<i64>, _>(at)?.map(Cell::Integer),
            ColumnKind::Unsigned => {
                let number = row.try_get_unchecked::<Option<u64>, _>(at)?;
                number.map(|number| Cell::Integer(i64::try_from(number).unwrap_or(i64::MAX)))
            }
            ColumnKind::Bytes => {
                let bytes = row.try_get_unchecked::<Option<&[u8]>, _>(at)?;
                bytes.map(|bytes| Cell::Text(lossy(bytes)))
            }
        };
        Ok(cell.unwrap_or(Cell::Null))
    };
    let cells = |row| kinds.iter().enumerate().map(|(at, kind)| cell(row, at, *kind)).collect();
    rows.iter().map(cells).collect()
}

pub(super) fn postgres(rows: &[PgRow]) -> Result<Rows, Error> {
    let cell = |row: &PgRow, at: usize| {
        if row.try_get_raw(at)?.is_null() {
            return Ok(Cell::Null);
        }
        match row.column(at).type_info().name() {
            "BOOL" => Ok(Cell::Integer(i64::from(row.try_get::<bool, _>(at)?))),
            "INT2" => Ok(Cell::Integer(i64::from(row.try_get::<i16, _>(at)?))),
            "INT4" => Ok(Cell::Integer(i64::from(row.try_get::<i32, _>(at)?))),
            "INT8" => Ok(Cell::Integer(row.try_get(at)?)),
            _ => Ok(Cell::Text(row.try_get_unchecked(at)?)),
        }
    };
    rows.iter().map(|row| (0..row.len()).map(|at| cell(row, at)).collect()).collect()
}
