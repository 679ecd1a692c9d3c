//! How commands reach the admin API of a gatelet that serves over HTTP on this machine.
//!
//! Such a gatelet leaves a note in its state directory: its URL, and a key for its
//! operator. Only the owner can read it, and it is removed when gatelet ends. Of several
//! gatelets with the same state directory, the latest is asked first.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use reqwest::{Client, Method};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::document::{IfDamaged, JsonDocument};
use store::files::Files;
use store::state::wait;

/// How long a gatelet may take to answer, which includes fetching a manifest.
const TIMEOUT: Duration = Duration::from_secs(60);

/// URL and operator's key of one running gatelet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Note {
    url: String,
    key: String,
}

/// The notes of all running gatelets, oldest first.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Notes {
    gates: Vec<Note>,
}

/// How many notes are kept, also of gatelets that were killed.
const MAX_NOTES: usize = 8;

/// A note on disk; removed when dropped.
pub(crate) struct NoteGuard {
    notes: JsonDocument<Notes>,
    key: String,
}

/// An answer of the admin API.
pub(crate) struct AdminAnswer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

/// Writes the note of a gatelet that listens at `address`. If that fails, logs an error
/// and returns `None`; the gatelet works all the same.
pub(crate) fn write_note(
    state: &Path,
    scheme: &str,
    address: SocketAddr,
    key: String,
) -> Option<NoteGuard> {
    // A gatelet that listens on all addresses is reached on loopback.
    let here = match address.ip().is_unspecified() {
        true => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), address.port()),
        false => address,
    };
    let note = Note { url: format!("{scheme}://{here}"), key: key.clone() };
    let notes = notes(state);
    let added = wait(notes.change(|notes| {
        // An older note with this address is of a gatelet that has ended.
        notes.gates.retain(|other| other.url != note.url);
        notes.gates.push(note.clone());
        let n_old = notes.gates.len().saturating_sub(MAX_NOTES);
        notes.gates.drain(..n_old);
    }));
    if let Err(error) = added {
        let error = error.to_string();
        tracing::error!(error, "commands do not find this gate: its note cannot be written");
        return None;
    }
    Some(NoteGuard { notes, key })
}

/// The notes of a state directory.
fn notes(state: &Path) -> JsonDocument<Notes> {
    JsonDocument::new(Arc::new(Files::at(state)), "gate.json", IfDamaged::StartOver)
}

impl Drop for NoteGuard {
    fn drop(&mut self) {
        let taken =
            wait(self.notes.change(|notes| notes.gates.retain(|note| note.key != self.key)));
        if let Err(error) = taken {
            tracing::warn!("the note of this gate stays: {error}");
        }
    }
}

/// Sends a request to the admin API of the gatelet of a state directory; `None` when none
/// runs.
pub(crate) async fn ask(
    state: &Path,
    method: Method,
    path: &str,
    body: &Value,
) -> anyhow::Result<Option<AdminAnswer>> {
    rustls::crypto::ring::default_provider().install_default().ok();
    // The certificate is for gatelet's public name, but this is loopback. Another program
    // that listens there would learn only a key of a gatelet that has ended.
    let client = Client::builder()
        .no_proxy()
        .timeout(TIMEOUT)
        .tls_danger_accept_invalid_certs(true)
        .build()?;
    for note in notes(state).read().await?.gates.into_iter().rev() {
        let request = client
            .request(method.clone(), format!("{}/admin{path}", note.url))
            .header("x-api-key", note.key)
            .json(body);
        let response = match request.send().await {
            Ok(response) => response,
            // A note of a gatelet that was killed.
            Err(error) if error.is_connect() => continue,
            Err(error) => return Err(error).context("the gate does not answer"),
        };
        let status = response.status().as_u16();
        let body = response.json().await.context("the gate's answer cannot be read")?;
        return Ok(Some(AdminAnswer { status, body }));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_goes_takes_its_own_note_and_leaves_the_others() {
        let state = tempfile::tempdir().unwrap();
        let leave = |port: u16, key: &str| {
            let address = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port);
            write_note(state.path(), "http", address, key.to_owned()).unwrap()
        };
        let urls = || -> Vec<String> {
            let notes = wait(notes(state.path()).read()).unwrap();
            notes.gates.into_iter().map(|note| note.url).collect()
        };
        let first = leave(1, "a");
        let second = leave(2, "b");
        assert_eq!(urls(), ["http://127.0.0.1:1", "http://127.0.0.1:2"]);
        drop(second);
        assert_eq!(urls(), ["http://127.0.0.1:1"]);
        // The port of one that was killed is somebody else's now.
        std::mem::forget(first);
        let again = leave(1, "c");
        assert_eq!(urls(), ["http://127.0.0.1:1"]);
        drop(again);
        assert!(!state.path().join("gate.json").exists());
    }

    #[test]
    fn a_gate_whose_note_cannot_be_written_starts_all_the_same() {
        let state = tempfile::tempdir().unwrap();
        std::fs::write(state.path().join("file"), "").unwrap();
        let address = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 1);
        let missing = state.path().join("file/state");
        assert!(write_note(&missing, "http", address, "k".to_owned()).is_none());
    }
}
