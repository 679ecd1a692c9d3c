//! The keyring of the system, through the program that comes with it:
//! `secret-tool` of libsecret on Linux, `security` on macOS.
//!
//! A library for the same would bring a hundred crates, most of them a D-Bus
//! client. Secrets go over pipes, never over a command line.

use std::path::PathBuf;
use std::process::Command;

use super::error::SecretError;
use super::external::{self, ProgramOutput};
use crate::paths;

/// A keyring, with the path of the program that accesses it.
#[derive(Clone, Debug)]
pub(super) enum Keyring {
    SecretTool(PathBuf),
    Security(PathBuf),
}

impl Keyring {
    /// The keyring of this session, or why there is none.
    pub(super) fn find() -> Result<Keyring, &'static str> {
        if cfg!(target_os = "macos") {
            let program = paths::program("/usr/bin/security");
            return program.map(Keyring::Security).ok_or("`security` is not there");
        }
        #[expect(clippy::disallowed_methods, reason = "whether there is a desktop session")]
        let bus = std::env::var_os("DBUS_SESSION_BUS_ADDRESS");
        if bus.is_none_or(|bus| bus.is_empty()) {
            return Err("no desktop session");
        }
        let program = paths::program("secret-tool");
        program
            .map(Keyring::SecretTool)
            .ok_or("`secret-tool` is not installed (package libsecret-tools)")
    }

    pub(super) fn get(&self, name: &str) -> Result<Option<String>, SecretError> {
        let output = match self {
            Keyring::SecretTool(_) => {
                self.run(&["lookup", "service", "gatelet", "account", name], "")?
            }
            Keyring::Security(_) => {
                self.run(&["find-generic-password", "-s", "gatelet", "-a", name, "-w"], "")?
            }
        };
        // `security` ends with 44 when there is no such item.
        let is_missing = matches!(self, Keyring::Security(_)) && output.code == Some(44)
            || matches!(self, Keyring::SecretTool(_))
                && output.stderr.trim().is_empty()
                && !output.is_success;
        match output {
            ProgramOutput { is_success: true, stdout, .. } => {
                let secret = match self {
                    Keyring::SecretTool(_) => stdout,
                    Keyring::Security(_) => stdout.trim_end_matches('\n').to_owned(),
                };
                Ok(Some(secret).filter(|secret| !secret.is_empty()))
            }
            _ if is_missing => Ok(None),
            output => Err(keyring_error(&output)),
        }
    }

    pub(super) fn set(&self, name: &str, secret: &str) -> Result<(), SecretError> {
        let output = match self {
            Keyring::SecretTool(_) => {
                let label = format!("--label=gatelet {name}");
                self.run(&["store", &label, "service", "gatelet", "account", name], secret)?
            }
            Keyring::Security(_) => {
                let hex = tool::hex::encode(secret.as_bytes());
                let line = format!("add-generic-password -U -s gatelet -a {name} -X {hex}\n");
                self.run(&["-i"], &line)?
            }
        };
        if output.is_success { Ok(()) } else { Err(keyring_error(&output)) }
    }

    pub(super) fn remove(&self, name: &str) -> Result<bool, SecretError> {
        let words = match self {
            Keyring::SecretTool(_) => ["clear", "service", "gatelet", "account", name],
            Keyring::Security(_) => ["delete-generic-password", "-s", "gatelet", "-a", name],
        };
        Ok(self.run(&words, "")?.is_success)
    }

    fn run(&self, args: &[&str], input: &str) -> Result<ProgramOutput, SecretError> {
        let (Keyring::SecretTool(program) | Keyring::Security(program)) = self;
        let mut command = Command::new(program);
        command.args(args);
        external::run(command, input).map_err(SecretError::Keyring)
    }
}

/// The last line of the program's error message.
fn keyring_error(output: &ProgramOutput) -> SecretError {
    let last = output.stderr.lines().next_back().unwrap_or("it gave no reason");
    SecretError::Keyring(last.chars().take(200).collect())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A program that behaves as `secret-tool` does, and notes its command lines.
    fn fake(directory: &std::path::Path) -> Keyring {
        let path = directory.join("secret-tool");
        let script = "#!/bin/sh\ncd \"$(dirname \"$0\")\"\necho \"$@\" >> lines\n\
                      for last; do :; done\nfile=\"kept-$(echo \"$last\" | tr / _)\"\n\
                      case $1 in store) cat > \"$file\";; lookup) [ -f \"$file\" ] && cat \"$file\" || exit 1;;\n\
                      clear) rm \"$file\";; esac\n";
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        Keyring::SecretTool(path)
    }

    #[test]
    fn a_secret_goes_over_a_pipe_and_comes_back_whole() {
        let directory = tempfile::tempdir().unwrap();
        let keyring = fake(directory.path());
        assert_eq!(keyring.get("a/b").unwrap(), None);
        let secret = "p\"4$$ w\u{f6}rd\nline two";
        keyring.set("a/b", secret).unwrap();
        assert_eq!(keyring.get("a/b").unwrap().as_deref(), Some(secret));
        assert!(keyring.remove("a/b").unwrap());
        assert_eq!(keyring.get("a/b").unwrap(), None);
        let lines = std::fs::read_to_string(directory.path().join("lines")).unwrap();
        assert!(!lines.contains("4$$"), "never on a command line: {lines}");
    }

    #[test]
    fn a_keyring_that_is_locked_says_so() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secret-tool");
        std::fs::write(&path, "#!/bin/sh\necho 'Cannot unlock' >&2\nexit 1\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let told = Keyring::SecretTool(path).get("a").unwrap_err().to_string();
        assert!(told.contains("Cannot unlock"), "{told}");
    }
}
