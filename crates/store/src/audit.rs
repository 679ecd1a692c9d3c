//! The audit log: the actions of operators, one line of JSON each, append-only.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::state::{Lines, StateError};

/// How long writing or reading the log may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The name of the log.
const LOG: &str = "audit.jsonl";

/// A log of the actions of operators.
#[derive(Clone)]
pub struct AuditLog(Arc<dyn Lines>);

impl AuditLog {
    pub fn new(lines: Arc<dyn Lines>) -> AuditLog {
        AuditLog(lines)
    }

    pub async fn append(&self, entry: &impl Serialize) -> Result<(), StateError> {
        let line = serde_json::to_vec(entry).map_err(StateError::unavailable)?;
        self.0.append(LOG, line.into(), TIMEOUT).await
    }

    /// Returns the last entries, oldest first. Entries of another type are left out.
    pub async fn last<T: DeserializeOwned>(&self, n_entries: usize) -> Result<Vec<T>, StateError> {
        let lines = self.0.last(LOG, n_entries, TIMEOUT).await?;
        Ok(lines.iter().filter_map(|line| serde_json::from_slice(line).ok()).collect())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::files::Files;

    #[tokio::test]
    async fn what_was_done_is_read_in_order() {
        let directory = tempfile::tempdir().unwrap();
        let log = AuditLog::new(Arc::new(Files::at(directory.path())));
        for n in 0..3 {
            log.append(&json!({"n": n, "text": "two\nlines"})).await.unwrap();
        }
        let read: Vec<Value> = log.last(2).await.unwrap();
        assert_eq!(read.iter().map(|entry| &entry["n"]).collect::<Vec<_>>(), [1, 2]);
    }
}
