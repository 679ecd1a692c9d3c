//! What is remembered of mounts between runs.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::place::{Origin, Place};
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
    /// As JSON. Believed again only if it would be believed now.
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

    pub(crate) fn of(places: &[Place]) -> Memory {
        let mut memory = Memory::default();
        for place in places {
            if let Origin::Command(raw) = &place.origin {
                memory.mounts.push(raw.clone());
            }
            if let (Some((manifest, _)), Some(fetched)) = (&place.manifest, place.fetched) {
                let known =
                    Known { label: place.label.clone(), manifest: manifest.to_json(), fetched };
                memory.known.insert(place.mount.source.manifest.to_string(), known);
            }
        }
        memory
    }

    /// Headers may hold secrets, so only the owner reads the file.
    pub(crate) fn save(&self, file: &Path) -> anyhow::Result<()> {
        secret::write(file, &serde_json::to_string_pretty(self)?)
    }
}
