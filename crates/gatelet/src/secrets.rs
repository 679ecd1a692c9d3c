//! Secrets that a configuration names by `${keyring:NAME}`.
//!
//! They are kept in the keyring of the system where there is one, else in the
//! encrypted files of the state directory. Which secret is where is noted in
//! `secrets.json`, which holds names only. Nothing here knows what a secret is
//! for.

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
pub(crate) use external::run_line;
use system::Keyring;

/// Where a secret is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Place {
    /// The keyring of the system.
    Keyring,
    /// Encrypted, in the state directory.
    File,
}

const INDEX: &str = "secrets.json";
const WITHIN: Duration = Duration::from_secs(5);

/// The secrets of a state directory.
pub(crate) struct Secrets {
    index: Files,
    vault: Vault,
    keyring: Result<Keyring, &'static str>,
}

/// Every name and where its secret is.
pub(crate) type Names = BTreeMap<String, Place>;

impl Secrets {
    pub(crate) fn at(state: &Path) -> Secrets {
        Secrets { index: Files::at(state), vault: secret::vault(state), keyring: Keyring::find() }
    }

    /// Where new secrets go.
    pub(crate) fn usual(&self) -> Place {
        if self.keyring.is_ok() { Place::Keyring } else { Place::File }
    }

    pub(crate) fn list(&self) -> Result<Names, SecretError> {
        match std::fs::read(self.index.path().join(INDEX)) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| broken(&error)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Names::new()),
            Err(error) => Err(broken(&error)),
        }
    }

    pub(crate) fn get(&self, name: &str) -> Result<String, SecretError> {
        let missing = || SecretError::Missing(name.to_owned());
        let place = self.list()?.get(checked(name)?).copied().ok_or_else(missing)?;
        let secret = match place {
            Place::Keyring => self.keyring()?.get(name)?,
            Place::File => self
                .vault
                .load(&entry(name))?
                .map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
        };
        secret.ok_or_else(missing)
    }

    /// Keeps a secret, in the place of one that has the name.
    pub(crate) fn set(&self, name: &str, secret: &str, place: Place) -> Result<(), SecretError> {
        checked(name)?;
        match place {
            Place::Keyring => self.keyring()?.set(name, secret)?,
            Place::File => self.vault.save(&entry(name), secret.as_bytes())?,
        }
        let before = self.note(|names| names.insert(name.to_owned(), place))?;
        // It must not stay where nobody looks any more.
        match before.filter(|before| *before != place) {
            Some(before) => self.erase(name, before).map(drop),
            None => Ok(()),
        }
    }

    /// Forgets a secret. Whether there was one.
    pub(crate) fn remove(&self, name: &str) -> Result<bool, SecretError> {
        let Some(place) = self.list()?.get(checked(name)?).copied() else { return Ok(false) };
        self.erase(name, place)?;
        self.note(|names| names.remove(name))?;
        Ok(true)
    }

    fn erase(&self, name: &str, place: Place) -> Result<bool, SecretError> {
        match place {
            Place::Keyring => self.keyring()?.remove(name),
            Place::File => Ok(self.vault.remove(&entry(name))?),
        }
    }

    fn keyring(&self) -> Result<&Keyring, SecretError> {
        self.keyring.as_ref().map_err(|why| SecretError::NoKeyring(why))
    }

    fn note<T>(&self, change: impl FnOnce(&mut Names) -> T) -> Result<T, SecretError> {
        let noted = self.index.alone(INDEX, WITHIN, |file| {
            let mut names = self.list()?;
            let told = change(&mut names);
            let bytes = serde_json::to_vec_pretty(&names).map_err(|error| broken(&error))?;
            replace(file, &bytes, Safety::Synced).map_err(|error| broken(&error))?;
            Ok(told)
        });
        noted.map_err(|error| broken(&error))?
    }
}

fn entry(name: &str) -> String {
    format!("secret:{name}")
}

/// A name that a secret can have.
pub(crate) fn legal(name: &str) -> String {
    let legal = |c: char| if is_legal(c) { c } else { '-' };
    name.chars().map(legal).take(128).collect()
}

fn is_legal(c: char) -> bool {
    c.is_ascii_alphanumeric() || "._-/".contains(c)
}

fn checked(name: &str) -> Result<&str, SecretError> {
    let fits =
        (1..=128).contains(&name.len()) && name.chars().all(is_legal) && !name.starts_with('-');
    fits.then_some(name).ok_or_else(|| SecretError::BadName(name.chars().take(80).collect()))
}

fn broken(error: &dyn std::fmt::Display) -> SecretError {
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
        assert_eq!(secrets.usual(), Place::File);
        assert!(matches!(secrets.get("a/KEY"), Err(SecretError::Missing(_))));
        secrets.set("a/KEY", "s3cret-value", Place::File).unwrap();
        secrets.set("a/KEY", "another-value", Place::File).unwrap();
        assert_eq!(secrets.get("a/KEY").unwrap(), "another-value");
        assert_eq!(secrets.list().unwrap().into_keys().collect::<Vec<_>>(), ["a/KEY"]);
        for entry in walk(state.path()) {
            let bytes = std::fs::read(&entry).unwrap();
            let text = String::from_utf8_lossy(&bytes);
            assert!(!text.contains("another-value"), "{}", entry.display());
        }
        assert!(matches!(secrets.set("b", "x", Place::Keyring), Err(SecretError::NoKeyring(_))));
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
                matches!(secrets.set(name, "x", Place::File), Err(SecretError::BadName(_))),
                "{name:?}"
            );
            assert!(secrets.get(name).is_err() && secrets.remove(name).is_err(), "{name:?}");
        }
    }
}
