//! Validates names and versions of packages, and builds the command lines that run them.
//!
//! A package runner also accepts options, repository URLs and paths in place of a name.
//! Only names of its registry are allowed here.

use crate::recipe::Argument;

/// A package registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PackageKind {
    Npm,
    Pypi,
    Nuget,
    Oci,
}

/// A text that is not a valid name or version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is no {what}")]
pub struct InvalidName {
    pub name: String,
    /// What it should be, such as `name of an npm package`.
    pub what: &'static str,
}

const MAX_NAME_BYTES: usize = 214;

fn invalid(name: &str, what: &'static str) -> InvalidName {
    InvalidName { name: name.chars().take(80).collect(), what }
}

fn is_word(text: &str, more: &str) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || more.contains(c);
    text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.chars().all(legal)
}

impl PackageKind {
    /// Returns the name if it is valid in this registry.
    pub(crate) fn check_name(self, name: &str) -> Result<&str, InvalidName> {
        let (fits, what) = match self {
            PackageKind::Npm => {
                let inner = match name.strip_prefix('@') {
                    Some(scoped) => scoped.split_once('/'),
                    None => Some(("x", name)),
                };
                let fits = |(scope, name)| is_word(scope, "-._~") && is_word(name, "-._~");
                (inner.is_some_and(fits), "name of an npm package")
            }
            PackageKind::Pypi => (is_word(name, "-._"), "name of a PyPI package"),
            PackageKind::Nuget => (is_word(name, "-._"), "name of a NuGet package"),
            PackageKind::Oci => (is_word(name, "-._/:@"), "name of a container image"),
        };
        if fits && name.len() <= MAX_NAME_BYTES { Ok(name) } else { Err(invalid(name, what)) }
    }

    /// Returns the program that runs packages of this registry.
    pub(crate) fn runner(self) -> &'static str {
        match self {
            PackageKind::Npm => "npx",
            PackageKind::Pypi => "uvx",
            PackageKind::Nuget => "dnx",
            PackageKind::Oci => "docker",
        }
    }

    /// Returns the runner's arguments up to the name of the package. `runtime` are arguments
    /// that the publisher adds for the runner, `env` names of variables for a container.
    pub(crate) fn runner_arguments(
        self,
        name: &str,
        version: Option<&str>,
        runtime: Vec<Argument>,
        env: impl Iterator<Item = String>,
    ) -> Result<Vec<Argument>, InvalidName> {
        let name = self.check_name(name)?;
        let version = version.map(check_version).transpose()?;
        let has = |word: &str| runtime.iter().any(|one| one.flag.as_deref() == Some(word));
        let mut words: Vec<Argument> = Vec::new();
        match self {
            PackageKind::Npm if !has("-y") && !has("--yes") => words.push(Argument::word("-y")),
            PackageKind::Nuget if !has("--yes") => words.push(Argument::word("--yes")),
            PackageKind::Oci => {
                words.extend(["run", "-i", "--rm"].map(Argument::word));
                words.extend(env.flat_map(|name| [Argument::word("-e"), Argument::word(&name)]));
            }
            PackageKind::Npm | PackageKind::Pypi | PackageKind::Nuget => {}
        }
        words.extend(runtime);
        let tagged = self == PackageKind::Oci
            && name.rsplit('/').next().is_some_and(|last| last.contains([':', '@']));
        words.push(match version {
            Some(version) if self == PackageKind::Oci && !tagged => {
                Argument::word(&format!("{name}:{version}"))
            }
            Some(version) if self != PackageKind::Oci => {
                Argument::word(&format!("{name}@{version}"))
            }
            Some(_) | None => Argument::word(name),
        });
        if self == PackageKind::Nuget {
            words.push(Argument::word("--"));
        }
        Ok(words)
    }
}

/// Returns the version if it is valid.
pub(crate) fn check_version(version: &str) -> Result<&str, InvalidName> {
    let fits = is_word(version, "-._+!") && version.len() <= 64;
    fits.then_some(version).ok_or_else(|| invalid(version, "version"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_pass_and_what_a_runner_would_take_otherwise_does_not() {
        for name in ["@modelcontextprotocol/server-filesystem", "mcp", "a.b_c~d"] {
            assert!(PackageKind::Npm.check_name(name).is_ok(), "{name}");
        }
        let hostile = [
            "",
            "-y",
            "--registry=http://evil.example",
            "git+https://evil.example/x",
            "https://evil.example/x.tgz",
            "../x",
            "./x",
            "/etc",
            "a b",
            "a;b",
            "a$(b)",
            "@scope",
            "@scope/",
            "@/x",
            "@scope/-x",
            "file:x",
            "npm:x",
            "x@1",
            "x/y",
            "a\nb",
        ];
        for name in hostile {
            assert!(PackageKind::Npm.check_name(name).is_err(), "{name:?}");
            assert!(PackageKind::Pypi.check_name(name).is_err(), "{name:?}");
        }
        assert!(PackageKind::Oci.check_name("ghcr.io/a/b:1@sha256:00ff").is_ok());
        assert!(PackageKind::Oci.check_name("--privileged").is_err());
        assert!(PackageKind::Npm.check_name(&"a".repeat(300)).is_err());
        for wrong in ["", "-1", "1 2", "latest;x", "1@2", "../1"] {
            assert!(check_version(wrong).is_err(), "{wrong:?}");
        }
        assert!(check_version("1.2.3-rc.1+x").is_ok());
    }
}
