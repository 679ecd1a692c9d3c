//! Secrets that are kept while a server is added, and taken back when it is not.
//!
//! The entry and its secrets come together or not at all: a secret whose entry was
//! never written would be a leftover that nobody looks for, and one that took the
//! place of another would break the entry that is in force.

use std::cell::RefCell;
use std::path::Path;

use crate::secrets::{SecretError, Secrets};

pub(super) struct KeptSecrets {
    store: Secrets,
    /// Every name that was set, and its secret of before.
    before: RefCell<Vec<(String, Option<String>)>>,
}

impl KeptSecrets {
    pub(super) fn at(state: &Path) -> KeptSecrets {
        KeptSecrets { store: Secrets::at(state), before: RefCell::default() }
    }

    pub(super) fn set(&self, name: &str, secret: &str) -> Result<(), SecretError> {
        let before = match self.store.get(name) {
            Ok(before) => Some(before),
            Err(SecretError::Missing(_)) => None,
            Err(error) => return Err(error),
        };
        self.before.borrow_mut().push((name.to_owned(), before));
        self.store.set(name, secret, self.store.usual())
    }

    /// Makes everything as it was; the latest first, as a name may come twice.
    pub(super) fn take_back(&self) -> Result<(), SecretError> {
        while let Some((name, before)) = self.before.borrow_mut().pop() {
            match before {
                Some(secret) => self.store.set(&name, &secret, self.store.usual())?,
                None => self.store.remove(&name).map(drop)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_kept_before_is_there_again_and_nothing_else() {
        let state = tempfile::tempdir().unwrap();
        let store = Secrets::at(state.path());
        store.set("a/OLD", "before", store.usual()).unwrap();
        let kept = KeptSecrets::at(state.path());
        for (name, secret) in [("a/OLD", "first"), ("a/OLD", "second"), ("a/NEW", "third")] {
            kept.set(name, secret).unwrap();
        }
        assert_eq!(store.get("a/OLD").unwrap(), "second");
        kept.take_back().unwrap();
        assert_eq!(store.get("a/OLD").unwrap(), "before");
        assert_eq!(store.list().unwrap().into_keys().collect::<Vec<_>>(), ["a/OLD"]);
    }
}
