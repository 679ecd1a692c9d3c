//! The requests for approval of one configuration, in the state directory.
//!
//! Gatelets that share a state directory and a configuration share the queue.
//! It is signed with a key that lies beside it, readable only by its owner.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use policy::approval::{Approvals, InMemoryQueue, QueueStore, QueuedRequest, Verdict};
use serde_json::{Value, json};
use store::approvals::StoredQueue;
use store::clock::System;
use store::files::Files;
use tool::clock::Clock;
use tool::hex;

use crate::local_socket::config_digest;
use crate::secret;

/// Who decided, where it was done in a shell: whoever may run programs as the
/// user that gatelet runs as.
pub(crate) const BY_SHELL: &str = "the shell";

const KEY: &str = "approvals.key";

/// How long it may take to find the key, or to make one.
const WITHIN: Duration = Duration::from_secs(5);

/// The queue of a configuration, on disk; in memory where the state directory
/// cannot be written.
pub(crate) fn open(state: &Path, file: Option<&Path>, config: &config::Approvals) -> Approvals {
    let store: Arc<dyn QueueStore> = match stored(state, file) {
        Ok(store) => Arc::new(store),
        Err(error) => {
            tracing::warn!("requests for approval are forgotten when this gate ends: {error:#}");
            Arc::new(InMemoryQueue::default())
        }
    };
    let clock: Arc<dyn Clock> = Arc::new(System::start());
    Approvals::new(store, clock, config.life)
}

fn stored(state: &Path, file: Option<&Path>) -> anyhow::Result<StoredQueue> {
    let files = Files::at(state);
    let key = key(&files)?;
    let name = format!("approvals-{}.json", config_digest(file));
    Ok(StoredQueue::new(Arc::new(files), &name, &key))
}

/// The key of a state directory, made when it is first asked for.
fn key(files: &Files) -> anyhow::Result<Vec<u8>> {
    let file = files.path().join(KEY);
    let read = || {
        let text = std::fs::read_to_string(&file).ok()?;
        hex::decode(text.trim()).filter(|key| key.len() == 32)
    };
    if let Some(key) = read() {
        return Ok(key);
    }
    store::file::private(files.path()).context("there is no state directory")?;
    // Whoever else begins at the same time makes no other.
    files.alone(KEY, WITHIN, |file| {
        if let Some(key) = read() {
            return Ok(key);
        }
        let key: [u8; 32] = secret::random();
        secret::write(file, &hex::encode(&key))?;
        Ok(key.to_vec())
    })?
}

/// The requests as commands and the socket tell them.
pub(crate) async fn listed(approvals: &Approvals) -> Value {
    match approvals.list().await {
        Ok(requests) => json!({"now": approvals.now(), "requests": requests}),
        Err(error) => json!({"error": error.to_string()}),
    }
}

/// Decides about a request, and says how that went.
pub(crate) async fn decided(approvals: &Approvals, number: u64, allow: bool, by: &str) -> Value {
    let verdict = if allow { Verdict::Allow } else { Verdict::Deny };
    match approvals.decide(number, verdict, by).await {
        Ok(request) => json!({"request": request}),
        Err(error) => json!({"error": error.to_string()}),
    }
}

/// What [`listed`] tells, as requests.
pub(crate) fn requests(told: &Value) -> Result<Vec<QueuedRequest>, String> {
    if let Some(error) = told["error"].as_str() {
        return Err(error.to_owned());
    }
    serde_json::from_value(told["requests"].clone()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_key_is_made_once_for_its_owner_alone() {
        let state = tempfile::tempdir().unwrap();
        let files = Files::at(state.path());
        let first = key(&files).unwrap();
        assert_eq!(key(&files).unwrap(), first);
        let mode = std::fs::metadata(state.path().join(KEY)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
