//! Remembers with which `PATH` gatelet was started, and by which program.
//!
//! A host that was started from a desktop often has a shorter `PATH` than a shell, and finds
//! no `npx` there. `gatelet doctor` looks into the paths of hosts for the programs of
//! upstreams. A note that cannot be written or read is none: nothing else depends on it.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::Path;

use store::file::{Safety, replace};

use crate::paths;

/// The file in the state directory.
const FILE: &str = "search-paths.json";

/// How many programs are remembered.
const MAX_STARTERS: usize = 16;

/// A longer `PATH`, or one of a longer file, is not looked at.
const MAX_BYTES: usize = 64 << 10;

/// Notes the `PATH` of this process, unless somebody at a terminal started it.
pub(crate) fn note(state: &Path) {
    if std::io::stdin().is_terminal() {
        return;
    }
    let (starter, path) = (starter(), paths::search_path());
    let mut known = known(state);
    if MAX_BYTES < path.len() || known.get(&starter) == Some(&path) {
        return;
    }
    if MAX_STARTERS <= known.len() && !known.contains_key(&starter) {
        known.pop_first();
    }
    known.insert(starter, path);
    let written = serde_json::to_vec(&known).map_err(std::io::Error::from).and_then(|bytes| {
        store::file::create_private_dir(state)?;
        replace(&state.join(FILE), &bytes, Safety::Unsynced)
    });
    if let Err(error) = written {
        tracing::debug!(%error, "the PATH of this start is not remembered");
    }
}

/// Every `PATH` that is known, by the name of the program that started gatelet with it.
pub(crate) fn known(state: &Path) -> BTreeMap<String, String> {
    let bytes = std::fs::read(state.join(FILE)).unwrap_or_default();
    if MAX_STARTERS * MAX_BYTES < bytes.len() {
        return BTreeMap::new();
    }
    serde_json::from_slice(&bytes).unwrap_or_default()
}

/// The name of the program that started this one, where the system tells.
fn starter() -> String {
    let parent = rustix::process::getppid().map(|parent| parent.as_raw_nonzero());
    let name = parent.and_then(|id| std::fs::read_to_string(format!("/proc/{id}/comm")).ok());
    let name = name.map(|name| tool::text::cut(name.trim(), 40)).filter(|name| !name.is_empty());
    name.unwrap_or_else(|| "a host".to_owned())
}
