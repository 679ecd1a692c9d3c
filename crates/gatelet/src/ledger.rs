//! The trust ledger on disk: signed with a key that only its owner reads.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use anyhow::Context;
use gateway::trust::{Book, Ledger, Tampered};

use crate::secret;
use crate::stamp::Glance;

/// The ledger of a state directory.
pub(crate) struct File {
    key: Vec<u8>,
    state: Mutex<Known>,
}

/// The file, and what was read of it last, unless that is not to be believed.
struct Known {
    glance: Glance,
    ledger: Option<Arc<Ledger>>,
}

impl File {
    /// Opens the ledger; makes its key, and an empty ledger, when there is none.
    pub(crate) fn open(state: &Path) -> anyhow::Result<File> {
        let (ledger, key_file) = (state.join("trust.json"), state.join("trust.key"));
        let key = match std::fs::read_to_string(&key_file) {
            Ok(text) => unhex(text.trim()).with_context(|| {
                format!("`{}` is no key; `gatelet trust reset` makes one", key_file.display())
            })?,
            Err(_) => make_key(&key_file)?,
        };
        Ok(File::of(ledger, key))
    }

    /// Starts over: a new key and an empty ledger.
    pub(crate) fn reset(state: &Path) -> anyhow::Result<File> {
        let key = make_key(&state.join("trust.key"))?;
        let file = File::of(state.join("trust.json"), key);
        file.save(&Ledger::default())?;
        Ok(file)
    }

    fn of(ledger: PathBuf, key: Vec<u8>) -> File {
        let known = Known { glance: Glance::at(ledger), ledger: None };
        File { key, state: Mutex::new(known) }
    }

    pub(crate) fn save(&self, ledger: &Ledger) -> anyhow::Result<()> {
        let mut known = self.state.lock().expect("nothing panics while it holds this");
        known.ledger = None;
        secret::write(known.glance.file(), &ledger.write(&self.key))
    }

    fn load(&self) -> Result<Arc<Ledger>, Tampered> {
        let mut known = self.state.lock().expect("nothing panics while it holds this");
        let due = known.glance.is_due();
        if let Some(ledger) = known.ledger.take().filter(|_| !due) {
            return Ok(Arc::clone(known.ledger.insert(ledger)));
        }
        let text = std::fs::read_to_string(known.glance.file());
        let text = text.map_err(|_| Tampered::Unreadable)?;
        let ledger = Arc::new(Ledger::read(&text, &self.key)?);
        Ok(Arc::clone(known.ledger.insert(ledger)))
    }
}

impl Book for File {
    fn read(&self) -> Result<Arc<Ledger>, Tampered> {
        self.load()
    }

    fn write(&self, ledger: &Ledger) {
        if let Err(error) = self.save(ledger) {
            tracing::error!(%error, "the trust ledger cannot be written");
        }
    }
}

/// A key without a ledger means that somebody took the ledger away, so both
/// are made together.
fn make_key(file: &Path) -> anyhow::Result<Vec<u8>> {
    let key: [u8; 32] = secret::random();
    let text: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    let ledger = file.with_file_name("trust.json");
    if !ledger.exists() {
        secret::write(&ledger, &Ledger::default().write(&key))?;
    }
    secret::write(file, &text)?;
    Ok(key.to_vec())
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if text.len() != 64 {
        return None;
    }
    let pair = |at: usize| text.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
    (0..64).step_by(2).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use gateway::trust::State;
    use tool::{Json, Tool};

    use super::*;

    fn some_tool() -> Tool {
        Tool::read(Json::parse(r#"{"name":"t"}"#).unwrap()).unwrap()
    }

    #[test]
    fn what_is_written_is_read_by_who_has_the_key_and_only_by_the_owner() {
        let state = tempfile::tempdir().unwrap();
        let file = File::open(state.path()).unwrap();
        let mut ledger = Arc::unwrap_or_clone(file.read().unwrap());
        ledger.set("up/t", &some_tool(), State::Trusted, 1);
        file.write(&ledger);
        assert_eq!(File::open(state.path()).unwrap().read(), Ok(Arc::new(ledger)));
        for name in ["trust.json", "trust.key"] {
            let mode = std::fs::metadata(state.path().join(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
    }

    #[test]
    fn a_ledger_that_was_edited_or_taken_away_is_not_believed() {
        let state = tempfile::tempdir().unwrap();
        let file = File::open(state.path()).unwrap();
        let mut ledger = Ledger::default();
        ledger.set("up/t", &some_tool(), State::Verified, 1);
        file.write(&ledger);
        let path = state.path().join("trust.json");
        let text = std::fs::read_to_string(&path).unwrap().replace("verified", "trusted");
        std::fs::write(&path, text).unwrap();
        assert_eq!(File::open(state.path()).unwrap().read(), Err(Tampered::Forged));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(File::open(state.path()).unwrap().read(), Err(Tampered::Unreadable));
        assert_eq!(File::reset(state.path()).unwrap().read(), Ok(Arc::default()));
    }
}
