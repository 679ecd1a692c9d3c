//! Remembers the handle of a script that `gatelet run` could not finish, to resume it later.
//!
//! Each command is a new caller to the running gatelet, so only the handle leads back to
//! the script. It is stored in the state directory, by the code and inputs of the script.

use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest, Sha256};
use store::file::{Safety, create_private_dir, replace};
use tool::hex;

/// The file with the handle of one script and its inputs.
pub(super) struct UnfinishedRun(PathBuf);

impl UnfinishedRun {
    pub(super) fn new(state: &Path, code: &str, inputs: &Value) -> UnfinishedRun {
        let digest = Sha256::digest(format!("{code}\u{1f}{inputs}").as_bytes());
        UnfinishedRun(state.join("runs").join(hex::encode(&digest[..16])))
    }

    pub(super) fn handle(&self) -> Option<String> {
        std::fs::read_to_string(&self.0).ok().filter(|handle| !handle.is_empty())
    }

    pub(super) fn store(&self, handle: &str) -> std::io::Result<()> {
        create_private_dir(self.0.parent().unwrap_or(Path::new(".")))?;
        replace(&self.0, handle.as_bytes(), Safety::Synced)
    }

    /// The script has ended, or is started over.
    pub(super) fn forget(&self) {
        // A handle that stays is of a run that has ended, which is noticed later.
        let _ = std::fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_handle_is_found_by_code_and_inputs_until_it_is_forgotten() {
        let state = tempfile::tempdir().unwrap();
        let of = |code: &str, inputs: Value| UnfinishedRun::new(state.path(), code, &inputs);
        of("return 1", json!({"n": 1})).store("r-1").unwrap();
        assert_eq!(of("return 1", json!({"n": 1})).handle().as_deref(), Some("r-1"));
        assert_eq!(of("return 1", json!({"n": 2})).handle(), None);
        assert_eq!(of("return 2", json!({"n": 1})).handle(), None);
        of("return 1", json!({"n": 1})).forget();
        assert_eq!(of("return 1", json!({"n": 1})).handle(), None);
    }
}
