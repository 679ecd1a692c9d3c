//! Classifies the errors of the three engines by what a caller can do about them.

use sqlx::Error;
use sqlx::mysql::MySqlDatabaseError;

/// The class of an error, as in [`DatabaseError`](super::DatabaseError).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ErrorClass {
    /// The connection broke, or the database is too busy.
    Lost,
    /// The statement ran into its time limit.
    Slow,
    /// The database rejected the statement.
    Refused,
}

#[expect(clippy::wildcard_enum_match_arm, reason = "sqlx's errors are not ours to list")]
pub(super) fn classify(error: &Error) -> ErrorClass {
    match error {
        Error::Io(_)
        | Error::Tls(_)
        | Error::Protocol(_)
        | Error::PoolTimedOut
        | Error::PoolClosed
        | Error::WorkerCrashed => ErrorClass::Lost,
        Error::Database(refusal) => {
            if let Some(refusal) = refusal.try_downcast_ref::<MySqlDatabaseError>() {
                return classify_mysql(refusal.number());
            }
            match refusal.code().as_deref() {
                // SQLite: interrupted; PostgreSQL: query cancelled.
                Some("9" | "57014") => ErrorClass::Slow,
                // SQLite: busy, locked, I/O error, cannot open.
                Some("5" | "6" | "10" | "14") => ErrorClass::Lost,
                // PostgreSQL: shut down, starting up, too many, connection.
                Some("57P01" | "57P02" | "57P03" | "53300") => ErrorClass::Lost,
                Some(code) if code.starts_with("08") => ErrorClass::Lost,
                _ => ErrorClass::Refused,
            }
        }
        _ => ErrorClass::Refused,
    }
}

/// Why a database server refused a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionRefusal {
    /// There is no such database.
    NoDatabase,
    /// The user is unknown, its password is wrong, or it lacks the right.
    AccessDenied,
}

/// Returns why the server refused a connection; `None` for errors of other kinds.
pub(crate) fn connection_refusal(error: &Error) -> Option<ConnectionRefusal> {
    let refusal = error.as_database_error()?;
    if let Some(refusal) = refusal.try_downcast_ref::<MySqlDatabaseError>() {
        return match refusal.number() {
            1049 => Some(ConnectionRefusal::NoDatabase),
            // Access denied to the database or to the server, host not allowed, account locked.
            1044 | 1045 | 1130 | 1698 | 3118 | 4151 => Some(ConnectionRefusal::AccessDenied),
            _ => None,
        };
    }
    match refusal.code().as_deref() {
        // SQLite: the file is not a database. PostgreSQL: no such database;
        // authorization failed; no privilege.
        Some("26" | "3D000") => Some(ConnectionRefusal::NoDatabase),
        Some("28000" | "28P01" | "42501") => Some(ConnectionRefusal::AccessDenied),
        _ => None,
    }
}

fn classify_mysql(number: u16) -> ErrorClass {
    match number {
        // Statement timeouts of MariaDB and MySQL.
        1969 | 3024 => ErrorClass::Slow,
        // Too many connections, shutdown, killed, read errors.
        1040 | 1053 | 1158..=1161 | 1927 => ErrorClass::Lost,
        _ => ErrorClass::Refused,
    }
}
