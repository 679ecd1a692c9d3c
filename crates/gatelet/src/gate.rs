//! The gate that runs on this machine, for commands that talk to it.
//!
//! A gate that serves over HTTP leaves a note in its state directory: where it
//! is, and a key with which its operator is let in. Only the owner can read it,
//! and it is taken away when the gate closes. Of several gates with the same
//! state directory, the one that came last is asked first.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use reqwest::{Client, Method};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::file::Alone;

use crate::secret;

/// How long a gate may take to answer, which includes fetching a manifest.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where a gate is.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Note {
    url: String,
    key: String,
}

/// All notes, oldest first.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Notes {
    gates: Vec<Note>,
}

/// So many notes of gates that were killed may lie around.
const MOST: usize = 8;

/// A note on disk; taken away when dropped.
pub(crate) struct Left {
    file: PathBuf,
    key: String,
}

/// What the gate answered.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) told: Value,
}

fn file(state: &Path) -> PathBuf {
    state.join("gate.json")
}

/// Leaves the note of a gate that listens at `address`.
pub(crate) fn leave(
    state: &Path,
    scheme: &str,
    address: SocketAddr,
    key: String,
) -> anyhow::Result<Left> {
    // Everywhere includes here.
    let here = match address.ip().is_unspecified() {
        true => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), address.port()),
        false => address,
    };
    let note = Note { url: format!("{scheme}://{here}"), key: key.clone() };
    let file = file(state);
    let _alone = Alone::with(&file)?;
    let mut notes = read(&file);
    // Whoever was there before is not there any more.
    notes.gates.retain(|other| other.url != note.url);
    notes.gates.push(note);
    let n_old = notes.gates.len().saturating_sub(MOST);
    notes.gates.drain(..n_old);
    secret::write(&file, &serde_json::to_string(&notes)?)?;
    Ok(Left { file, key })
}

fn read(file: &Path) -> Notes {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

impl Drop for Left {
    fn drop(&mut self) {
        if let Err(error) = self.take_away() {
            tracing::warn!("the note of this gate stays: {error:#}");
        }
    }
}

impl Left {
    fn take_away(&self) -> anyhow::Result<()> {
        let _alone = Alone::with(&self.file)?;
        let mut notes = read(&self.file);
        notes.gates.retain(|note| note.key != self.key);
        if notes.gates.is_empty() {
            return std::fs::remove_file(&self.file).context("cannot remove it");
        }
        secret::write(&self.file, &serde_json::to_string(&notes)?)
    }
}

/// Asks the gate of a state directory; `None` when none runs.
pub(crate) async fn ask(
    state: &Path,
    method: Method,
    path: &str,
    body: &Value,
) -> anyhow::Result<Option<Answer>> {
    rustls::crypto::ring::default_provider().install_default().ok();
    // The certificate is for the gate's public name, and this is loopback; who
    // else might listen there learns a key that is good for nothing.
    let client = Client::builder()
        .no_proxy()
        .timeout(PATIENCE)
        .tls_danger_accept_invalid_certs(true)
        .build()?;
    for note in read(&file(state)).gates.into_iter().rev() {
        let request = client
            .request(method.clone(), format!("{}/admin{path}", note.url))
            .header("x-api-key", note.key)
            .json(body);
        let response = match request.send().await {
            Ok(response) => response,
            // A note of a gate that was killed.
            Err(error) if error.is_connect() => continue,
            Err(error) => return Err(error).context("the gate does not answer"),
        };
        let status = response.status().as_u16();
        let told = response.json().await.context("the gate's answer cannot be read")?;
        return Ok(Some(Answer { status, told }));
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
            leave(state.path(), "http", address, key.to_owned()).unwrap()
        };
        let urls = || -> Vec<String> {
            read(&file(state.path())).gates.into_iter().map(|note| note.url).collect()
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
        assert!(!file(state.path()).exists());
    }
}
