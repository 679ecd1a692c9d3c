//! Stores the secrets that a configuration refers to by `${keyring:NAME}`.
//!
//! A secret is in the keyring of the system where there is one, else in an encrypted file
//! of the state directory. `secrets.json` holds the names and locations of all secrets.
//! Nothing here knows what a secret is for.

mod error;
mod external;
mod system;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use store::file::{Safety, replace};
use store::files::Files;
use store::vault::Vault;

use crate::secret;
pub(crate) use error::SecretError;
pub(crate) use external::run_shell_line;
use system::Keyring;

/// Where a secret is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SecretLocation {
    /// The keyring of the system.
    Keyring,
    /// Encrypted, in the state directory.
    File,
}

/// The file with the names and locations of all secrets.
const INDEX: &str = "secrets.json";
/// How long to wait for the lock of that file.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// The secrets of a state directory.
pub(crate) struct Secrets {
    index: Files,
    vault: Vault,
    /// The keyring of the system, or why there is none.
    keyring: Result<Keyring, &'static str>,
}

/// The location of every secret, by name.
pub(crate) type Locations = BTreeMap<String, SecretLocation>;

impl Secrets {
    pub(crate) fn at(state: &Path) -> Secrets {
        Secrets { index: Files::at(state), vault: secret::vault(state), keyring: Keyring::find() }
    }

    /// The location for new secrets.
    pub(crate) fn default_location(&self) -> SecretLocation {
        if self.keyring.is_ok() { SecretLocation::Keyring } else { SecretLocation::File }
    }

    pub(crate) fn list(&self) -> Result<Locations, SecretError> {
        match std::fs::read(self.index.path().join(INDEX)) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| index_error(&error)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Locations::new()),
            Err(error) => Err(index_error(&error)),
        }
    }

    pub(crate) fn get(&self, name: &str) -> Result<String, SecretError> {
        let missing = || SecretError::Missing(name.to_owned());
        let location = self.list()?.get(check_name(name)?).copied().ok_or_else(missing)?;
        let secret = match location {
            SecretLocation::Keyring => self.keyring()?.get(name)?,
            SecretLocation::File => self
                .vault
                .load(&vault_entry(name))?
                .map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
        };
        secret.ok_or_else(missing)
    }

    /// Stores a secret; replaces one of the same name.
    pub(crate) fn set(
        &self,
        name: &str,
        secret: &str,
        location: SecretLocation,
    ) -> Result<(), SecretError> {
        check_name(name)?;
        match location {
            SecretLocation::Keyring => self.keyring()?.set(name, secret)?,
            SecretLocation::File => self.vault.save(&vault_entry(name), secret.as_bytes())?,
        }
        let before = self.change_index(|names| names.insert(name.to_owned(), location))?;
        // The old secret must not stay at another location.
        match before.filter(|before| *before != location) {
            Some(before) => self.erase(name, before).map(drop),
            None => Ok(()),
        }
    }

    /// Removes a secret. Returns whether there was one.
    pub(crate) fn remove(&self, name: &str) -> Result<bool, SecretError> {
        let Some(location) = self.list()?.get(check_name(name)?).copied() else { return Ok(false) };
        self.erase(name, location)?;
        self.change_index(|names| names.remove(name))?;
        Ok(true)
    }

    fn erase(&self, name: &str, location: SecretLocation) -> Result<bool, SecretError> {
        match location {
            SecretLocation::Keyring => self.keyring()?.remove(name),
            SecretLocation::File => Ok(self.vault.remove(&vault_entry(name))?),
        }
    }

    fn keyring(&self) -> Result<&Keyring, SecretError> {
        self.keyring.as_ref().map_err(|why| SecretError::NoKeyring(why))
    }

    fn change_index<T>(&self, change: impl FnOnce(&mut Locations) -> T) -> Result<T, SecretError> {
        let changed = self.index.with_lock(INDEX, LOCK_TIMEOUT, |file| {
            let mut names = self.list()?;
            let outcome = change(&mut names);
            let bytes = serde_json::to_vec_pretty(&names).map_err(|error| index_error(&error))?;
            replace(file, &bytes, Safety::Synced).map_err(|error| index_error(&error))?;
            Ok(outcome)
        });
        changed.map_err(|error| index_error(&error))?
    }
}

/// The name of a secret's entry in the vault.
fn vault_entry(name: &str) -> String {
    format!("secret:{name}")
}

/// Makes a legal name of a secret out of any text.
pub(crate) fn legal_name(name: &str) -> String {
    let legal = |c: char| if is_legal(c) { c } else { '-' };
    name.chars().map(legal).take(128).collect()
}

fn is_legal(c: char) -> bool {
    c.is_ascii_alphanumeric() || "._-/".contains(c)
}

fn check_name(name: &str) -> Result<&str, SecretError> {
    let fits =
        (1..=128).contains(&name.len()) && name.chars().all(is_legal) && !name.starts_with('-');
    fits.then_some(name).ok_or_else(|| SecretError::BadName(name.chars().take(80).collect()))
}

fn index_error(error: &dyn std::fmt::Display) -> SecretError {
    SecretError::Index(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn without_keyring(state: &Path) -> Secrets {
        Secrets { keyring: Err("a test"), ..Secrets::at(state) }
    }

    #[test]
    fn without_a_keyring_secrets_are_encrypted_files_and_names_are_listed() {
        let state = tempfile::tempdir().unwrap();
        let secrets = without_keyring(state.path());
        assert_eq!(secrets.default_location(), SecretLocation::File);
        assert!(matches!(secrets.get("a/KEY"), Err(SecretError::Missing(_))));
        secrets.set("a/KEY", "s3cret-value", SecretLocation::File).unwrap();
        secrets.set("a/KEY", "another-value", SecretLocation::File).unwrap();
        assert_eq!(secrets.get("a/KEY").unwrap(), "another-value");
        assert_eq!(secrets.list().unwrap().into_keys().collect::<Vec<_>>(), ["a/KEY"]);
        for entry in walk(state.path()) {
            let bytes = std::fs::read(&entry).unwrap();
            let text = String::from_utf8_lossy(&bytes);
            assert!(!text.contains("another-value"), "{}", entry.display());
        }
        assert!(matches!(
            secrets.set("b", "x", SecretLocation::Keyring),
            Err(SecretError::NoKeyring(_))
        ));
        assert!(secrets.remove("a/KEY").unwrap() && !secrets.remove("a/KEY").unwrap());
        assert!(secrets.get("a/KEY").is_err());
    }

    fn walk(directory: &Path) -> Vec<std::path::PathBuf> {
        let entries = std::fs::read_dir(directory).unwrap().flatten().map(|entry| entry.path());
        entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
    }

    #[test]
    fn odd_names_are_refused() {
        let state = tempfile::tempdir().unwrap();
        let secrets = without_keyring(state.path());
        for name in ["", "a b", "a}b", "${x}", "--label", "a:b", "a\nb", &"x".repeat(129)] {
            assert!(
                matches!(
                    secrets.set(name, "x", SecretLocation::File),
                    Err(SecretError::BadName(_))
                ),
                "{name:?}"
            );
            assert!(secrets.get(name).is_err() && secrets.remove(name).is_err(), "{name:?}");
        }
    }
}
