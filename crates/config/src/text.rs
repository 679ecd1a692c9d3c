//! Parses values that are written as text: durations, paths, environment files, and
//! text with placeholders such as `${env:NAME}`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Looks up the values of placeholders. It is a parameter, so that parsing a
/// configuration depends on nothing else.
pub trait Environment {
    /// Returns an environment variable, for `${env:NAME}`.
    fn get(&self, name: &str) -> Option<String>;

    /// Returns a stored secret, for `${keyring:NAME}`.
    fn secret(&self, _name: &str) -> Result<String, String> {
        Err("secrets are only looked up for gatelet's own configuration file".to_owned())
    }

    /// Runs a command and returns its output, for `${cmd:LINE}`.
    fn command(&self, _line: &str) -> Result<String, String> {
        Err("commands are only run for gatelet's own configuration file".to_owned())
    }

    /// Remembers a value that came from a file, a keyring or a command.
    fn note_secret(&self, _value: &str) {}

    /// Returns all values that `note_secret` remembered.
    fn noted_secrets(&self) -> NamedSecrets {
        NamedSecrets::default()
    }
}

/// The values that a configuration takes from files, keyrings and commands. All of them
/// are treated as secrets, whatever they are used for.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct NamedSecrets(pub BTreeSet<String>);

impl std::fmt::Debug for NamedSecrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NamedSecrets({})", self.0.len())
    }
}

/// The environment of this process.
pub struct ProcessEnvironment;

impl Environment for ProcessEnvironment {
    fn get(&self, name: &str) -> Option<String> {
        #[expect(clippy::disallowed_methods, reason = "this is where the environment is read")]
        std::env::var(name).ok()
    }
}

/// Why a placeholder has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PlaceholderError {
    #[error("the environment variable `{0}` is not set")]
    Unset(String),
    #[error("the secret file `{path}` cannot be read: {reason}")]
    File { path: String, reason: String },
    #[error("the secret `{name}` is not at hand: {reason}")]
    Secret { name: String, reason: String },
    #[error("the command `{line}` gives no value: {reason}")]
    Command { line: String, reason: String },
    #[error(
        "`${{{0}}}` is not known here; `${{env:NAME}}`, `${{file:PATH}}`, `${{keyring:NAME}}` and \
         `${{cmd:LINE}}` are"
    )]
    Unknown(String),
    #[error("`${{` is never closed")]
    Open,
}

impl PlaceholderError {
    /// Returns how to fix it.
    pub(crate) fn hint(&self) -> &'static str {
        match self {
            PlaceholderError::Unset(_) => "set it, or give a default: ${env:NAME:-default}",
            PlaceholderError::File { .. } => "it is looked for beside this file; `~` is your home",
            PlaceholderError::Secret { .. } => {
                "`gatelet secret list` shows what is kept, `gatelet secret set NAME` keeps one"
            }
            PlaceholderError::Command { .. } => "run it in a shell to see what it prints",
            PlaceholderError::Unknown(_) | PlaceholderError::Open => {
                "write `$${` where `${` is meant as it is"
            }
        }
    }
}

/// Replaces `${env:NAME}`, `${env:NAME:-default}`, `${file:PATH}`, `${keyring:NAME}` and
/// `${cmd:LINE}` by their values; `$${` stands for `${` itself. File paths are relative to
/// `base`.
pub(crate) fn fill_placeholders(
    text: &str,
    base: &Path,
    environment: &dyn Environment,
) -> Result<String, PlaceholderError> {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        if let Some(before) = rest[..at].strip_suffix('$') {
            filled.push_str(before);
            filled.push_str("${");
            rest = &rest[at + 2..];
            continue;
        }
        filled.push_str(&rest[..at]);
        let end = rest[at..].find('}').ok_or(PlaceholderError::Open)? + at;
        filled.push_str(&expand_placeholder(&rest[at + 2..end], base, environment)?);
        rest = &rest[end + 1..];
    }
    filled.push_str(rest);
    Ok(filled)
}

/// Returns the value of a placeholder such as `env:NAME`; one that may be secret is noted.
fn expand_placeholder(
    placeholder: &str,
    base: &Path,
    environment: &dyn Environment,
) -> Result<String, PlaceholderError> {
    let value = look_up(placeholder, base, environment)?;
    if !placeholder.starts_with("env:") {
        environment.note_secret(&value);
    }
    Ok(value)
}

fn look_up(
    placeholder: &str,
    base: &Path,
    environment: &dyn Environment,
) -> Result<String, PlaceholderError> {
    match placeholder.split_once(':') {
        Some(("env", name)) => {
            let (name, default) = match name.split_once(":-") {
                Some((name, default)) => (name, Some(default.to_owned())),
                None => (name, None),
            };
            environment
                .get(name)
                .or(default)
                .ok_or_else(|| PlaceholderError::Unset(name.to_owned()))
        }
        Some(("file", path)) => {
            let file = resolve_path(PathBuf::from(path), base, environment);
            let text = std::fs::read_to_string(&file).map_err(|error| {
                let path = file.display().to_string();
                PlaceholderError::File { path, reason: error.to_string() }
            })?;
            Ok(text.trim_end_matches(['\r', '\n']).to_owned())
        }
        Some(("keyring", name)) => environment
            .secret(name)
            .map_err(|reason| PlaceholderError::Secret { name: name.to_owned(), reason }),
        Some(("cmd", line)) => environment
            .command(line)
            .map_err(|reason| PlaceholderError::Command { line: line.to_owned(), reason }),
        Some(_) | None => Err(PlaceholderError::Unknown(placeholder.to_owned())),
    }
}

/// Parses a file of `NAME=value` lines into names and values; `#` comments, `export` and
/// quotes around the value are allowed.
pub(crate) fn parse_env_file(text: &str) -> impl Iterator<Item = (String, String)> {
    text.lines().filter_map(|line| {
        let line = line.trim();
        let line = line.strip_prefix("export ").unwrap_or(line);
        let (name, value) = line.split_once('=').filter(|_| !line.starts_with('#'))?;
        let value = value.trim();
        let quoted = ['"', '\'']
            .into_iter()
            .find_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote));
        Some((name.trim().to_owned(), quoted.unwrap_or(value).to_owned()))
    })
}

/// Resolves a path of the configuration: below the home directory when it begins with
/// `~`, else relative to `base`.
pub(crate) fn resolve_path(path: PathBuf, base: &Path, environment: &dyn Environment) -> PathBuf {
    let home = environment.get("HOME").map(PathBuf::from);
    match (path.strip_prefix("~"), home) {
        (Ok(below), Some(home)) => home.join(below),
        (Ok(_), None) | (Err(_), _) => base.join(path),
    }
}

/// Reads a file of certificates in PEM.
pub(crate) fn read_pem(file: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(file).map_err(|error| format!("cannot read `{}`: {error}", file.display()))
}

/// Parses `500ms`, `30s`, `5m`, `1h 30m`.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let example = "write it like `500ms`, `30s`, `5m` or `1h 30m`";
    let wrong = || format!("`{text}` is not a duration: {example}");
    let signed: jiff::SignedDuration = text.parse().map_err(|_| wrong())?;
    let duration = Duration::try_from(signed).map_err(|_| wrong())?;
    if duration.is_zero() { Err("must be longer than nothing".to_owned()) } else { Ok(duration) }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed;

    impl Environment for Fixed {
        fn get(&self, name: &str) -> Option<String> {
            (name == "TOKEN").then(|| "s3cret".to_owned())
        }
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let filled = fill_placeholders(text, Path::new("/nowhere"), &Fixed)
            .unwrap_or_else(|placeholder| format!("error: {placeholder}"));
        assert_eq!(filled, expected);
    }

    #[test]
    fn holes_are_filled_from_the_environment() {
        check("Bearer ${env:TOKEN}!", "Bearer s3cret!");
        check("${env:NOPE:-none} ${env:TOKEN:-none}", "none s3cret");
        check("no holes, $5 and {x}", "no holes, $5 and {x}");
        check("$${env:TOKEN}", "${env:TOKEN}");
    }

    #[test]
    fn a_hole_that_cannot_be_filled_says_why() {
        check("${env:NOPE}", "error: the environment variable `NOPE` is not set");
        check(
            "${input:key}",
            "error: `${input:key}` is not known here; `${env:NAME}`, `${file:PATH}`, `${keyring:NAME}` and \
             `${cmd:LINE}` are",
        );
        check("${env:TOKEN", "error: `${` is never closed");
    }

    #[test]
    fn secrets_and_commands_come_from_who_has_them() {
        check(
            "${cmd:id}",
            "error: the command `id` gives no value: commands are only run for gatelet's own configuration file",
        );
        struct Given;
        impl Environment for Given {
            fn get(&self, _: &str) -> Option<String> {
                None
            }

            fn secret(&self, name: &str) -> Result<String, String> {
                Ok(format!("<{name}>"))
            }

            fn command(&self, line: &str) -> Result<String, String> {
                Err(format!("{line} is not here"))
            }
        }
        let filled = |text: &str| fill_placeholders(text, Path::new("/nowhere"), &Given);
        assert_eq!(filled("Bearer ${keyring:a/KEY}").as_deref(), Ok("Bearer <a/KEY>"));
        let error = filled("${cmd:pass show x}").unwrap_err();
        assert!(error.to_string().contains("pass show x is not here"), "{error}");
    }

    proptest::proptest! {
        #[test]
        fn what_a_stranger_wrote_means_itself_once_it_is_quoted(text in "[$.{}a:envcmd ]{0,40}") {
            let quoted = packages::recipe::escape_placeholders(&text);
            proptest::prop_assert_eq!(fill_placeholders(&quoted, Path::new("/"), &Fixed), Ok(text));
        }
    }

    #[test]
    fn a_secret_file_is_looked_for_beside_the_configuration_and_at_home() {
        struct Home(String);
        impl Environment for Home {
            fn get(&self, name: &str) -> Option<String> {
                (name == "HOME").then(|| self.0.clone())
            }
        }
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("token"), "s3cret\n").unwrap();
        let home = Home(directory.path().display().to_string());
        let beside = fill_placeholders("${file:token}", directory.path(), &home);
        assert_eq!(beside.as_deref(), Ok("s3cret"));
        let at_home = fill_placeholders("${file:~/token}", Path::new("/nowhere"), &home);
        assert_eq!(at_home.as_deref(), Ok("s3cret"));
        let missing = fill_placeholders("${file:token}", Path::new("/nowhere"), &home).unwrap_err();
        assert!(missing.to_string().contains("`/nowhere/token`"), "{missing}");
        assert!(missing.hint().contains("beside this file"));
    }

    #[test]
    fn an_environment_file_is_read_as_shells_read_it() {
        let text = "# secret\nexport A=1\nB = \"two words\"\n\nnonsense\nC='x=y'";
        let found: Vec<String> =
            parse_env_file(text).map(|(name, value)| format!("{name}:{value}")).collect();
        assert_eq!(found, ["A:1", "B:two words", "C:x=y"]);
    }

    #[test]
    fn durations_are_written_as_people_write_them() {
        assert_eq!(parse_duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_duration("1h 30m"), Ok(Duration::from_secs(5400)));
        assert!(parse_duration("-3s").is_err());
        assert!(parse_duration("0s").is_err());
        assert!(parse_duration("soon").unwrap_err().contains("30s"));
    }
}
