//! Loads the configuration that the command line points to, and resolves the secrets and
//! commands that an operator's own file may refer to.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use config::{Environment, LoadError, Loaded, NamedSecrets, ProcessEnvironment};
use parking_lot::Mutex;

use crate::paths::Paths;
use crate::secrets::{Secrets, run_shell_line};

/// Loads the configuration that the command line names, or the first one that is found,
/// or the embedded default.
pub(crate) fn load(paths: &Paths) -> Result<Loaded, LoadError> {
    load_for(paths, None)
}

/// The same for a gatelet that serves at the address `listen`, if `--listen` was given.
pub(crate) fn load_for(paths: &Paths, listen: Option<SocketAddr>) -> Result<Loaded, LoadError> {
    let found = paths.config_file();
    if let Some(file) = &found
        && let Some(source) = paths.why_unreadable(file)
    {
        return Err(LoadError::Unreadable { file: file.display().to_string(), source });
    }
    config::load(found, &environment(paths), listen)
}

/// Resolves the references of the operator's own configuration.
pub(crate) fn environment(paths: &Paths) -> OperatorEnvironment {
    OperatorEnvironment::new(paths.state_directory().ok())
}

/// Resolves references in a configuration: variables of this process, secrets of a state
/// directory, and the output of commands. Only for files that the operator wrote.
pub(crate) struct OperatorEnvironment {
    /// The state directory.
    state: Option<PathBuf>,
    /// What was resolved while this file is read: a password manager may ask its user
    /// every time.
    resolved: Mutex<HashMap<String, Result<String, String>>>,
    /// Every secret that was resolved, to be masked later.
    secrets: Mutex<NamedSecrets>,
}

impl OperatorEnvironment {
    pub(crate) fn new(state: Option<PathBuf>) -> OperatorEnvironment {
        OperatorEnvironment { state, resolved: Mutex::default(), secrets: Mutex::default() }
    }

    fn resolve_once(
        &self,
        key: String,
        resolve: impl FnOnce() -> Result<String, String>,
    ) -> Result<String, String> {
        if let Some(resolved) = self.resolved.lock().get(&key) {
            return resolved.clone();
        }
        let value = resolve();
        self.resolved.lock().insert(key, value.clone());
        value
    }
}

impl Environment for OperatorEnvironment {
    fn get(&self, name: &str) -> Option<String> {
        ProcessEnvironment.get(name)
    }

    fn secret(&self, name: &str) -> Result<String, String> {
        let state = self.state.as_deref().ok_or("there is no state directory")?;
        self.resolve_once(format!("keyring:{name}"), || {
            Secrets::at(state).get(name).map_err(|error| error.to_string())
        })
    }

    fn command(&self, line: &str) -> Result<String, String> {
        self.resolve_once(format!("cmd:{line}"), || run_shell_line(line))
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
    use crate::secrets::SecretLocation;

    #[test]
    fn secrets_are_looked_up_and_commands_are_run_once() {
        let state = tempfile::tempdir().unwrap();
        Secrets::at(state.path()).set("a/KEY", "s3cret", SecretLocation::File).unwrap();
        let machine = OperatorEnvironment::new(Some(state.path().to_owned()));
        assert_eq!(machine.secret("a/KEY").as_deref(), Ok("s3cret"));
        assert_eq!(machine.command("printf '%s' a-b").as_deref(), Ok("a-b"));
        let missing = machine.secret("other").unwrap_err();
        assert!(missing.contains("gatelet secret set other"), "{missing}");
        // A command is run once for a file, however often it stands there.
        let counter = state.path().join("n");
        let line = format!("echo x >> {0}; wc -l < {0}", counter.display());
        assert_eq!(machine.command(&line), machine.command(&line));
        let none = OperatorEnvironment::new(None);
        assert!(none.secret("a/KEY").is_err(), "no state directory, no secrets");
    }
}
