//! The configuration that the command line points to, with the secrets and
//! commands that a file of the operator's own may name.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use config::{Environment, LoadError, Loaded, NamedSecrets, Process};
use parking_lot::Mutex;

use crate::paths::Paths;
use crate::secrets::{Secrets, run_line};

/// Reads the configuration that the command line points to, or the first one
/// that is found, or the embedded default.
pub(crate) fn load(paths: &Paths) -> Result<Loaded, LoadError> {
    load_for(paths, None)
}

/// Reads the configuration of a gatelet that listens where the command line says.
pub(crate) fn load_for(paths: &Paths, listen: Option<SocketAddr>) -> Result<Loaded, LoadError> {
    let found = paths.config_file();
    if let Some(file) = &found
        && let Some(source) = paths.unreadable(file)
    {
        return Err(LoadError::Unreadable { file: file.display().to_string(), source });
    }
    config::load(found, &environment(paths), listen)
}

/// Where the variables of the operator's own configuration come from.
pub(crate) fn environment(paths: &Paths) -> Machine {
    Machine::new(paths.state_directory().ok())
}

/// The environment of this process, with the secrets of a state directory, and
/// commands. Only for files that the operator wrote.
pub(crate) struct Machine {
    state: Option<PathBuf>,
    /// What was asked for in this reading of a file; a password manager may ask
    /// its user every time.
    known: Mutex<HashMap<String, Result<String, String>>>,
    secrets: Mutex<NamedSecrets>,
}

impl Machine {
    pub(crate) fn new(state: Option<PathBuf>) -> Machine {
        Machine { state, known: Mutex::default(), secrets: Mutex::default() }
    }

    fn once(
        &self,
        key: String,
        ask: impl FnOnce() -> Result<String, String>,
    ) -> Result<String, String> {
        if let Some(known) = self.known.lock().get(&key) {
            return known.clone();
        }
        let told = ask();
        self.known.lock().insert(key, told.clone());
        told
    }
}

impl Environment for Machine {
    fn get(&self, name: &str) -> Option<String> {
        Process.get(name)
    }

    fn secret(&self, name: &str) -> Result<String, String> {
        let state = self.state.as_deref().ok_or("there is no state directory")?;
        self.once(format!("keyring:{name}"), || {
            Secrets::at(state).get(name).map_err(|error| error.to_string())
        })
    }

    fn command(&self, line: &str) -> Result<String, String> {
        self.once(format!("cmd:{line}"), || run_line(line))
    }

    fn note_secret(&self, value: &str) {
        self.secrets.lock().0.insert(value.to_owned());
    }

    fn noted_secrets(&self) -> NamedSecrets {
        self.secrets.lock().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secrets::Place;

    #[test]
    fn secrets_are_looked_up_and_commands_are_run_once() {
        let state = tempfile::tempdir().unwrap();
        Secrets::at(state.path()).set("a/KEY", "s3cret", Place::File).unwrap();
        let machine = Machine::new(Some(state.path().to_owned()));
        assert_eq!(machine.secret("a/KEY").as_deref(), Ok("s3cret"));
        assert_eq!(machine.command("printf '%s' a-b").as_deref(), Ok("a-b"));
        let missing = machine.secret("other").unwrap_err();
        assert!(missing.contains("gatelet secret set other"), "{missing}");
        // A command is run once for a file, however often it stands there.
        let counter = state.path().join("n");
        let line = format!("echo x >> {0}; wc -l < {0}", counter.display());
        assert_eq!(machine.command(&line), machine.command(&line));
        let none = Machine::new(None);
        assert!(none.secret("a/KEY").is_err(), "no state directory, no secrets");
    }
}
