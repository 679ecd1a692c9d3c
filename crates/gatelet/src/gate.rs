//! The gate that runs on this machine, for commands that talk to it.
//!
//! A gate that serves over HTTP leaves a note in its state directory: where it
//! is, and a key with which its operator is let in. Only the owner can read it,
//! and it is taken away when the gate closes.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use reqwest::{Client, Method};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::secret;

/// How long a gate may take to answer, which includes fetching a manifest.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where a gate is.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Note {
    url: String,
    key: String,
}

/// The note on disk; taken away when dropped.
pub(crate) struct Left(PathBuf);

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
    let note = Note { url: format!("{scheme}://{here}"), key };
    secret::write(&file(state), &serde_json::to_string(&note)?)?;
    Ok(Left(file(state)))
}

impl Drop for Left {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Asks the gate of a state directory; `None` when none runs.
pub(crate) async fn ask(
    state: &Path,
    method: Method,
    path: &str,
    body: &Value,
) -> anyhow::Result<Option<Answer>> {
    let Ok(text) = std::fs::read_to_string(file(state)) else { return Ok(None) };
    let Ok(note) = serde_json::from_str::<Note>(&text) else { return Ok(None) };
    rustls::crypto::ring::default_provider().install_default().ok();
    // The certificate is for the gate's public name, and this is loopback; who
    // else might listen there learns a key that is good for nothing.
    let client = Client::builder()
        .no_proxy()
        .timeout(PATIENCE)
        .tls_danger_accept_invalid_certs(true)
        .build()?;
    let request = client
        .request(method, format!("{}/admin{path}", note.url))
        .header("x-api-key", note.key)
        .json(body);
    let response = match request.send().await {
        Ok(response) => response,
        // A note of a gate that was killed.
        Err(error) if error.is_connect() => return Ok(None),
        Err(error) => return Err(error).context("the gate does not answer"),
    };
    let status = response.status().as_u16();
    let told = response.json().await.context("the gate's answer cannot be read")?;
    Ok(Some(Answer { status, told }))
}
