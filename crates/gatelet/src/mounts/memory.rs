//! What is remembered of mounts between runs.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use reqwest::Url;
use serde::{Deserialize, Serialize};
use store::document::{IfDamaged, JsonDocument};
use store::files::Files;
use store::state::wait;

use config::RawMount;

/// What was mounted by command, and what every manifest said last.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Memory {
    #[serde(default)]
    pub(crate) mounts: Vec<RawMount>,
    /// By the address of the manifest.
    #[serde(default)]
    pub(crate) known: BTreeMap<String, RememberedManifest>,
}

/// What is remembered of one mount.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RememberedManifest {
    pub(crate) label: String,
    /// As it was written. Believed again only if it would be believed now;
    /// empty when there is none.
    pub(crate) manifest: String,
    /// Seconds since 1970.
    pub(crate) fetched: u64,
}

/// What is remembered in a state directory. Headers may hold secrets, so only
/// the owner reads it. A file that is damaged counts as empty, and is told of.
pub(crate) fn document(state: &Path) -> JsonDocument<Memory> {
    JsonDocument::new(Arc::new(Files::at(state)), "mounts.json", IfDamaged::StartOver)
}

/// What is in the document now; nothing when it cannot be read, which is told.
pub(crate) fn load(document: &JsonDocument<Memory>) -> Memory {
    wait(document.read()).unwrap_or_else(|error| {
        tracing::error!(%error, "the mounts cannot be read");
        Memory::default()
    })
}

impl Memory {
    /// Adds what somebody mounted.
    pub(crate) fn add(&mut self, raw: RawMount, manifest: &Url) {
        self.remove(manifest);
        self.mounts.push(raw);
    }

    /// Forgets what somebody mounted.
    pub(crate) fn remove(&mut self, manifest: &Url) {
        let is_it = |raw: &RawMount| Url::parse(&raw.manifest).is_ok_and(|url| url == *manifest);
        self.mounts.retain(|raw| !is_it(raw));
    }
}
