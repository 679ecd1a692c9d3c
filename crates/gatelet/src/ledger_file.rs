//! The trust ledger on disk, signed with a key that only its owner can read.
//!
//! Several gatelets may share one state directory, and `gatelet trust` changes the ledger
//! while they run. So writers hold a lock, and a reader that cannot verify the file reads
//! ledger and key once more, under the lock.

use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use policy::trust::{Ledger, LedgerError, LedgerStore};
use store::files::Files;
use tool::hex;

use crate::polled_file::PolledFile;
use crate::secret;

const LEDGER: &str = "trust.json";
/// How long a command may wait for the lock.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a call may wait for the lock: it is short, because other calls wait too. What
/// cannot be recorded in time is recorded by the next call.
const CALL_TIMEOUT: Duration = Duration::from_millis(30);

/// The ledger of a state directory. Created, with its key, at its first use.
pub(crate) struct LedgerFile {
    documents: Files,
    lock_timeout: Duration,
    key_file: PathBuf,
    cached: Mutex<Cached>,
}

/// The last key and ledger that could be verified.
struct Cached {
    file: PolledFile,
    key: Option<Vec<u8>>,
    ledger: Option<Arc<Ledger>>,
}

impl LedgerFile {
    pub(crate) fn at(state: &Path) -> LedgerFile {
        let file = PolledFile::at(LedgerFile::file(state));
        let cached = Mutex::new(Cached { file, key: None, ledger: None });
        let (documents, key_file) = (Files::at(state), state.join("trust.key"));
        LedgerFile { documents, lock_timeout: COMMAND_TIMEOUT, key_file, cached }
    }

    /// Where the ledger of a state directory is.
    pub(crate) fn file(state: &Path) -> PathBuf {
        state.join(LEDGER)
    }

    /// The ledger for a gatelet that serves, where calls must not wait long.
    pub(crate) fn for_calls(state: &Path) -> LedgerFile {
        LedgerFile { lock_timeout: CALL_TIMEOUT, ..LedgerFile::at(state) }
    }

    /// Starts over: a new key and an empty ledger.
    pub(crate) fn reset(state: &Path) -> anyhow::Result<()> {
        let file = LedgerFile::at(state);
        file.documents.with_lock(LEDGER, COMMAND_TIMEOUT, |ledger| {
            let key = file.make_key()?;
            secret::write(ledger, &Ledger::default().to_signed_text(&key))
        })?
    }

    fn cached(&self) -> MutexGuard<'_, Cached> {
        self.cached.lock()
    }

    /// Reads key and ledger from disk, or creates them. The caller holds the lock.
    fn read_locked(&self, cached: &mut Cached) -> Result<Arc<Ledger>, LedgerError> {
        if is_open(&self.key_file) {
            return Err(LedgerError::OpenKey(self.key_file.display().to_string()));
        }
        let key = match std::fs::read_to_string(&self.key_file) {
            Ok(text) => hex::decode(text.trim())
                .filter(|key| key.len() == 32)
                .ok_or(LedgerError::Unreadable)?,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let key = self.make_key().map_err(no_state_directory)?;
                // Both are created together: a key without a ledger means that somebody
                // removed the ledger.
                if !cached.file.file().exists() {
                    let empty = Ledger::default().to_signed_text(&key);
                    secret::write(cached.file.file(), &empty).map_err(no_state_directory)?;
                }
                key
            }
            Err(error) => return Err(no_state_directory(error)),
        };
        let text = std::fs::read_to_string(cached.file.file());
        let ledger = Ledger::parse_signed(&text.map_err(|_| LedgerError::Unreadable)?, &key)?;
        cached.key = Some(key);
        Ok(Arc::clone(cached.ledger.insert(Arc::new(ledger))))
    }

    fn make_key(&self) -> anyhow::Result<Vec<u8>> {
        let key: [u8; 32] = secret::random();
        secret::write(&self.key_file, &hex::encode(&key))?;
        Ok(key.to_vec())
    }
}

impl LedgerStore for LedgerFile {
    fn read(&self) -> Result<Arc<Ledger>, LedgerError> {
        let mut cached = self.cached();
        let due = cached.file.has_changed();
        if let Some(ledger) = cached.ledger.take().filter(|_| !due) {
            return Ok(Arc::clone(cached.ledger.insert(ledger)));
        }
        let text = std::fs::read_to_string(cached.file.file()).ok();
        let read = |(text, key): (String, &Vec<u8>)| Ledger::parse_signed(&text, key).ok();
        if let Some(ledger) = text.zip(cached.key.as_ref()).and_then(read) {
            return Ok(Arc::clone(cached.ledger.insert(Arc::new(ledger))));
        }
        self.documents
            .with_lock(LEDGER, self.lock_timeout, |_| self.read_locked(&mut cached))
            .map_err(no_state_directory)?
    }

    fn change(&self, change: &mut dyn FnMut(&mut Ledger)) -> Result<Arc<Ledger>, LedgerError> {
        let mut cached = self.cached();
        let changed = self.documents.with_lock(LEDGER, self.lock_timeout, |file| {
            let mut ledger = Arc::unwrap_or_clone(self.read_locked(&mut cached)?);
            change(&mut ledger);
            let key = cached.key.as_ref().ok_or(LedgerError::Unreadable)?;
            secret::write(file, &ledger.to_signed_text(key)).map_err(no_state_directory)?;
            Ok(Arc::clone(cached.ledger.insert(Arc::new(ledger))))
        });
        changed.map_err(no_state_directory)?
    }
}

/// Whether others than its owner can read or write a file.
fn is_open(file: &Path) -> bool {
    std::fs::metadata(file).is_ok_and(|about| about.permissions().mode() & 0o077 != 0)
}

fn no_state_directory(error: impl Into<anyhow::Error>) -> LedgerError {
    LedgerError::NoStorage(format!("{:#}", error.into()))
}

#[cfg(test)]
mod tests {
    use policy::trust::TrustLevel;
    use tool::{Json, Tool};

    use super::*;

    fn some_tool() -> Tool {
        Tool::parse(Json::parse(r#"{"name":"t"}"#).unwrap()).unwrap()
    }

    fn granted(ledger: &mut Ledger) {
        ledger.set("up/t", &some_tool(), TrustLevel::Verified, 1);
    }

    #[test]
    fn what_is_written_is_read_by_who_has_the_key_and_only_by_the_owner() {
        let state = tempfile::tempdir().unwrap();
        let changed = LedgerFile::at(state.path()).change(&mut granted).unwrap();
        assert_eq!(LedgerFile::at(state.path()).read(), Ok(changed));
        for name in ["trust.json", "trust.key"] {
            let mode = std::fs::metadata(state.path().join(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
    }

    #[test]
    fn a_ledger_that_was_edited_or_taken_away_is_not_believed() {
        let state = tempfile::tempdir().unwrap();
        LedgerFile::at(state.path()).change(&mut granted).unwrap();
        let path = state.path().join("trust.json");
        let text = std::fs::read_to_string(&path).unwrap().replace("verified", "trusted");
        std::fs::write(&path, text).unwrap();
        assert_eq!(LedgerFile::at(state.path()).read(), Err(LedgerError::Forged));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(LedgerFile::at(state.path()).read(), Err(LedgerError::Unreadable));
        LedgerFile::reset(state.path()).unwrap();
        assert_eq!(LedgerFile::at(state.path()).read(), Ok(Arc::default()));
    }

    #[test]
    fn a_ledger_whose_key_others_can_read_is_not_believed() {
        let state = tempfile::tempdir().unwrap();
        LedgerFile::at(state.path()).change(&mut granted).unwrap();
        let key = state.path().join("trust.key");
        let set = |mode| std::fs::set_permissions(&key, PermissionsExt::from_mode(mode)).unwrap();
        for mode in [0o666, 0o640, 0o602] {
            set(mode);
            let told = LedgerFile::at(state.path()).read().unwrap_err();
            assert!(matches!(&told, LedgerError::OpenKey(path) if path.ends_with("trust.key")));
        }
        set(0o600);
        assert!(LedgerFile::at(state.path()).read().is_ok());
        set(0o666);
        LedgerFile::reset(state.path()).unwrap();
        assert_eq!(LedgerFile::at(state.path()).read(), Ok(Arc::default()));
    }

    #[test]
    fn a_gate_that_runs_goes_on_after_a_reset_and_after_the_directory_was_emptied() {
        let state = tempfile::tempdir().unwrap();
        let gate = LedgerFile::at(state.path());
        gate.change(&mut granted).unwrap();
        LedgerFile::reset(state.path()).unwrap();
        gate.cached().file.mark_changed();
        assert_eq!(gate.read(), Ok(Arc::default()));
        for name in ["trust.json", "trust.key"] {
            std::fs::remove_file(state.path().join(name)).unwrap();
        }
        gate.cached().file.mark_changed();
        assert_eq!(gate.read(), Ok(Arc::default()));
    }

    /// Each is a gatelet of its own: they share nothing but the directory.
    #[test]
    fn gates_that_start_together_on_a_new_directory_lose_nothing_of_each_other() {
        let state = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for gate in 0..8 {
                let file = LedgerFile::at(state.path());
                scope.spawn(move || {
                    for n in 0..5 {
                        let note = |ledger: &mut Ledger| {
                            let name = format!("gate{gate}/tool{n}");
                            ledger.set(&name, &some_tool(), TrustLevel::Verified, 1);
                        };
                        file.change(&mut { note }).unwrap();
                        file.read().unwrap();
                    }
                });
            }
        });
        assert_eq!(LedgerFile::at(state.path()).read().unwrap().iter().count(), 40);
    }

    #[test]
    fn where_nothing_can_be_kept_the_reason_is_told() {
        let state = tempfile::tempdir().unwrap();
        std::fs::write(state.path().join("file"), "").unwrap();
        let told = LedgerFile::at(&state.path().join("file/state")).read().unwrap_err().to_string();
        assert!(told.contains("cannot create") && told.contains("--state"), "{told}");
    }

    #[test]
    fn a_lock_that_another_process_holds_does_not_hold_a_call_up() {
        let state = tempfile::tempdir().unwrap();
        let gate = LedgerFile::for_calls(state.path());
        gate.change(&mut granted).unwrap();
        let held = Files::at(state.path()).with_lock(LEDGER, COMMAND_TIMEOUT, |_| {
            assert_eq!(gate.read().unwrap().iter().count(), 1, "who reads does not wait");
            gate.change(&mut granted)
        });
        assert!(matches!(held.unwrap(), Err(LedgerError::NoStorage(_))));
        gate.change(&mut granted).unwrap();
    }
}
