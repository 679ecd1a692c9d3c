//! The API keys of a state directory, in a file that commands change while a gatelet runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use store::document::{IfDamaged, JsonDocument};
use store::files::Files;
use store::state::wait;
use web::identity::key::{KeyError, KeyRing};

use crate::exit::CliError;

/// The file's name.
const NAME: &str = "keys.json";

/// Changes the keys under a lock. If `change` fails, nothing changes.
pub(crate) fn change<T: Send>(
    state: &Path,
    change: impl Fn(&mut KeyRing) -> Result<T, KeyError> + Sync,
) -> anyhow::Result<T> {
    let document = JsonDocument::new(Arc::new(Files::at(state)), NAME, IfDamaged::Fail);
    let mut outcome = None;
    let changed = wait(document.change(|ring: &mut KeyRing| {
        let before = ring.clone();
        let done = change(ring);
        if done.is_err() {
            *ring = before;
        }
        outcome = Some(done);
    }));
    match (changed, outcome) {
        (Err(error), _) => {
            let shown = file(state);
            Err(error).with_context(|| format!("cannot change `{}`", shown.display()))
        }
        (Ok(_), Some(done)) => Ok(done.map_err(|error| CliError::Usage(error.to_string()))?),
        (Ok(_), None) => unreachable!("a change that succeeds was asked for"),
    }
}

/// Where the keys of a state directory are kept.
pub(crate) fn file(state: &Path) -> PathBuf {
    state.join(NAME)
}

/// The keys in a file; none when there is no file.
pub(crate) fn load(file: &Path) -> anyhow::Result<KeyRing> {
    match std::fs::read_to_string(file) {
        Ok(text) => serde_json::from_str(&text)
            .with_context(|| format!("`{}` is damaged: mend it or remove it", file.display())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(KeyRing::default()),
        Err(error) => Err(error).with_context(|| format!("cannot read `{}`", file.display())),
    }
}
