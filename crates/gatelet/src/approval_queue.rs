//! The queue of requests for approval: in the state directory, or in the store that
//! replicas share.
//!
//! Gatelets with the same state directory and configuration share one queue. It is signed
//! with a key in the same directory, which only its owner can read. Replicas share one
//! queue in their store, signed with the key of `[state]`, and nothing that was allowed
//! outlives a failover of the store.

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
use valkey::{EpochDocuments, Valkey};

use crate::local_socket::config_digest;
use crate::secret;

/// The name of who decides by a command: anybody who may run programs as gatelet's user.
pub(crate) const BY_SHELL: &str = "the shell";

/// The file with the key that signs the queue.
const KEY: &str = "approvals.key";

/// How long to wait for the lock of the key file.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// The name of the queue in a store that replicas share.
const SHARED_NAME: &str = "approvals";

/// What replicas keep their queue in.
pub(crate) struct SharedStore<'a> {
    pub(crate) store: &'a Valkey,
    /// The key of `[state]`, which signs the queue.
    pub(crate) key: &'a [u8],
}

/// Opens the queue of the configuration `file`: in the store of the replicas where there
/// are some, else on disk, or in memory where the state directory cannot be written.
pub(crate) fn open(
    state: &Path,
    file: Option<&Path>,
    config: &config::Approvals,
    shared: Option<SharedStore<'_>>,
) -> Approvals {
    let clock: Arc<dyn Clock> = Arc::new(System::start());
    let store: Arc<dyn QueueStore> = match shared {
        Some(shared) => Arc::new(open_shared(&shared, &clock)),
        None => open_local(state, file),
    };
    Approvals::new(store, clock, config.life)
}

fn open_shared(shared: &SharedStore<'_>, clock: &Arc<dyn Clock>) -> StoredQueue {
    let documents = Arc::new(EpochDocuments(shared.store.clone()));
    StoredQueue::shared(documents, SHARED_NAME, shared.key, Arc::clone(clock))
}

fn open_local(state: &Path, file: Option<&Path>) -> Arc<dyn QueueStore> {
    match open_stored(state, file) {
        Ok(store) => Arc::new(store),
        Err(error) => {
            tracing::warn!("requests for approval are forgotten when this gate ends: {error:#}");
            Arc::new(InMemoryQueue::default())
        }
    }
}

fn open_stored(state: &Path, file: Option<&Path>) -> anyhow::Result<StoredQueue> {
    let files = Files::at(state);
    let key = key(&files)?;
    let name = format!("approvals-{}.json", config_digest(file));
    Ok(StoredQueue::new(Arc::new(files), &name, &key))
}

/// Reads the key of a state directory, or makes one.
fn key(files: &Files) -> anyhow::Result<Vec<u8>> {
    let file = files.path().join(KEY);
    let read = || {
        let text = std::fs::read_to_string(&file).ok()?;
        hex::decode(text.trim()).filter(|key| key.len() == 32)
    };
    if let Some(key) = read() {
        return Ok(key);
    }
    store::file::create_private_dir(files.path()).context("there is no state directory")?;
    // Under a lock, so that gatelets that start at the same time make one key.
    files.with_lock(KEY, LOCK_TIMEOUT, |file| {
        if let Some(key) = read() {
            return Ok(key);
        }
        let key: [u8; 32] = secret::random();
        secret::write(file, &hex::encode(&key))?;
        Ok(key.to_vec())
    })?
}

/// Lists the requests as JSON, as the local socket answers.
pub(crate) async fn list(approvals: &Approvals) -> Value {
    match approvals.list().await {
        Ok(requests) => json!({"now": approvals.now(), "requests": requests}),
        Err(error) => json!({"error": error.to_string()}),
    }
}

/// Allows or denies a request, in the name of `by`. Returns the request or an error as
/// JSON, as the local socket answers.
pub(crate) async fn decide(approvals: &Approvals, number: u64, allow: bool, by: &str) -> Value {
    let verdict = if allow { Verdict::Allow } else { Verdict::Deny };
    match approvals.decide(number, verdict, by).await {
        Ok(request) => json!({"request": request}),
        Err(error) => json!({"error": error.to_string()}),
    }
}

/// Parses the answer of [`list`].
pub(crate) fn parse_list(answer: &Value) -> Result<Vec<QueuedRequest>, String> {
    if let Some(error) = answer["error"].as_str() {
        return Err(error.to_owned());
    }
    serde_json::from_value(answer["requests"].clone()).map_err(|error| error.to_string())
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
