//! Stores the secrets of a server that is being added, and rolls them back if it is not.
//!
//! Entry and secrets are written together or not at all: a secret without an entry would be
//! a leftover, and one that replaced another would break the entry that is in force.

use std::cell::RefCell;
use std::path::Path;

use crate::secrets::{SecretError, Secrets};

/// The secret store, with the values to roll back to.
pub(super) struct NewSecrets {
    store: Secrets,
    /// Every name that was set, and its secret before that.
    before: RefCell<Vec<(String, Option<String>)>>,
}

impl NewSecrets {
    pub(super) fn at(state: &Path) -> NewSecrets {
        NewSecrets { store: Secrets::at(state), before: RefCell::default() }
    }

    pub(super) fn set(&self, name: &str, secret: &str) -> Result<(), SecretError> {
        let before = match self.store.get(name) {
            Ok(before) => Some(before),
            Err(SecretError::Missing(_)) => None,
            Err(error) => return Err(error),
        };
        self.before.borrow_mut().push((name.to_owned(), before));
        self.store.set(name, secret, self.store.default_location())
    }

    /// Restores the old secrets; the latest change first, because a name may come twice.
    pub(super) fn roll_back(&self) -> Result<(), SecretError> {
        while let Some((name, before)) = self.before.borrow_mut().pop() {
            match before {
                Some(secret) => self.store.set(&name, &secret, self.store.default_location())?,
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
        store.set("a/OLD", "before", store.default_location()).unwrap();
        let secrets = NewSecrets::at(state.path());
        for (name, secret) in [("a/OLD", "first"), ("a/OLD", "second"), ("a/NEW", "third")] {
            secrets.set(name, secret).unwrap();
        }
        assert_eq!(store.get("a/OLD").unwrap(), "second");
        secrets.roll_back().unwrap();
        assert_eq!(store.get("a/OLD").unwrap(), "before");
        assert_eq!(store.list().unwrap().into_keys().collect::<Vec<_>>(), ["a/OLD"]);
    }
}
