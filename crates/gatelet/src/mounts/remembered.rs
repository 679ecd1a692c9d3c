//! The mounts that a state directory remembers between runs, in `mounts.json`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use reqwest::Url;
use serde::{Deserialize, Serialize};
use store::document::{IfDamaged, JsonDocument};
use store::files::Files;
use store::state::wait;

use config::RawMount;

/// The mounts by command, and the last manifests of all mounts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct RememberedMounts {
    /// What was mounted by command.
    #[serde(default)]
    pub(crate) mounts: Vec<RawMount>,
    /// The last manifests of all mounts, by the URLs of the manifests.
    #[serde(default)]
    pub(crate) known: BTreeMap<String, RememberedManifest>,
}

/// The label and last manifest of one mount.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RememberedManifest {
    pub(crate) label: String,
    /// The text of the manifest, empty when there is none. It is checked again when it
    /// is loaded.
    pub(crate) manifest: String,
    /// When it was fetched, in seconds since 1970.
    pub(crate) fetched: u64,
}

/// The document of a state directory. Headers may hold secrets, so only its owner can
/// read the file. A damaged file counts as empty.
pub(crate) fn document(state: &Path) -> JsonDocument<RememberedMounts> {
    JsonDocument::new(Arc::new(Files::at(state)), "mounts.json", IfDamaged::StartOver)
}

/// Reads the document. If it cannot be read, logs an error and returns nothing.
pub(crate) fn load(document: &JsonDocument<RememberedMounts>) -> RememberedMounts {
    wait(document.read()).unwrap_or_else(|error| {
        tracing::error!(%error, "the mounts cannot be read");
        RememberedMounts::default()
    })
}

impl RememberedMounts {
    /// Adds a mount by command. `manifest` is its URL.
    pub(crate) fn add(&mut self, raw: RawMount, manifest: &Url) {
        self.remove(manifest);
        self.mounts.push(raw);
    }

    /// Removes the mount by command of this manifest.
    pub(crate) fn remove(&mut self, manifest: &Url) {
        let is_it = |raw: &RawMount| Url::parse(&raw.manifest).is_ok_and(|url| url == *manifest);
        self.mounts.retain(|raw| !is_it(raw));
    }
}
