//! What is remembered of mounts between runs.

use std::collections::BTreeMap;
use std::path::Path;

use reqwest::Url;
use serde::{Deserialize, Serialize};
use store::file::Alone;

use crate::config::RawMount;
use crate::secret;

/// The file: what was mounted by command, and what every manifest said last.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Memory {
    #[serde(default)]
    pub(crate) mounts: Vec<RawMount>,
    /// By the address of the manifest.
    #[serde(default)]
    pub(crate) known: BTreeMap<String, Known>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Known {
    pub(crate) label: String,
    /// As it was written. Believed again only if it would be believed now;
    /// empty when there is none.
    pub(crate) manifest: String,
    /// Seconds since 1970.
    pub(crate) fetched: u64,
}

impl Memory {
    /// What is in the file; nothing when it is missing or damaged.
    pub(crate) fn load(file: &Path) -> Memory {
        let Ok(text) = std::fs::read_to_string(file) else { return Memory::default() };
        serde_json::from_str(&text).unwrap_or_else(|error| {
            tracing::error!(file = %file.display(), %error, "the mounts are forgotten");
            Memory::default()
        })
    }

    /// Changes what is in the file, while nobody else does. Headers may hold
    /// secrets, so only the owner reads it.
    pub(crate) fn change(file: &Path, change: impl FnOnce(&mut Memory)) -> anyhow::Result<()> {
        let _alone = Alone::with(file)?;
        let mut memory = Memory::load(file);
        change(&mut memory);
        secret::write(file, &serde_json::to_string_pretty(&memory)?)
    }

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
