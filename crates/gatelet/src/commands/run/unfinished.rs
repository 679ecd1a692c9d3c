//! The handle of a script from the shell that stopped before its end.
//!
//! Every command of the shell is a caller of its own to the gatelet that runs, so
//! the handle is all that leads back to what the script has done. It is kept in the
//! state directory, by the code and the inputs of the script.

use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest, Sha256};
use store::file::{Safety, private, replace};
use tool::hex;

pub(super) struct Unfinished(PathBuf);

impl Unfinished {
    pub(super) fn of(state: &Path, code: &str, inputs: &Value) -> Unfinished {
        let digest = Sha256::digest(format!("{code}\u{1f}{inputs}").as_bytes());
        Unfinished(state.join("runs").join(hex::encode(&digest[..16])))
    }

    pub(super) fn handle(&self) -> Option<String> {
        std::fs::read_to_string(&self.0).ok().filter(|handle| !handle.is_empty())
    }

    pub(super) fn keep(&self, handle: &str) -> std::io::Result<()> {
        private(self.0.parent().unwrap_or(Path::new(".")))?;
        replace(&self.0, handle.as_bytes(), Safety::Synced)
    }

    /// The script has ended, or is started over.
    pub(super) fn forget(&self) {
        // One that stays leads to a script that has ended, which is seen then.
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
        let of = |code: &str, inputs: Value| Unfinished::of(state.path(), code, &inputs);
        of("return 1", json!({"n": 1})).keep("r-1").unwrap();
        assert_eq!(of("return 1", json!({"n": 1})).handle().as_deref(), Some("r-1"));
        assert_eq!(of("return 1", json!({"n": 2})).handle(), None);
        assert_eq!(of("return 2", json!({"n": 1})).handle(), None);
        of("return 1", json!({"n": 1})).forget();
        assert_eq!(of("return 1", json!({"n": 1})).handle(), None);
    }
}
