//! Names of packages, and the programs that run them.
//!
//! A package runner takes many things for a package: options, addresses of
//! repositories, paths. Only what is a name in its registry passes here.

use crate::recipe::Argument;

/// Where packages of a kind come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Npm,
    Pypi,
    Nuget,
    Oci,
}

/// A name that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is no {what}")]
pub struct BadName {
    pub name: String,
    pub what: &'static str,
}

const LONGEST: usize = 214;

fn bad(name: &str, what: &'static str) -> BadName {
    BadName { name: name.chars().take(80).collect(), what }
}

fn is_word(text: &str, more: &str) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || more.contains(c);
    text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.chars().all(legal)
}

impl Kind {
    pub(crate) fn name(self, name: &str) -> Result<&str, BadName> {
        let (fits, what) = match self {
            Kind::Npm => {
                let inner = match name.strip_prefix('@') {
                    Some(scoped) => scoped.split_once('/'),
                    None => Some(("x", name)),
                };
                let fits = |(scope, name)| is_word(scope, "-._~") && is_word(name, "-._~");
                (inner.is_some_and(fits), "name of an npm package")
            }
            Kind::Pypi => (is_word(name, "-._"), "name of a PyPI package"),
            Kind::Nuget => (is_word(name, "-._"), "name of a NuGet package"),
            Kind::Oci => (is_word(name, "-._/:@"), "name of a container image"),
        };
        if fits && name.len() <= LONGEST { Ok(name) } else { Err(bad(name, what)) }
    }

    /// The program that runs packages of this kind.
    pub(crate) fn runner(self) -> &'static str {
        match self {
            Kind::Npm => "npx",
            Kind::Pypi => "uvx",
            Kind::Nuget => "dnx",
            Kind::Oci => "docker",
        }
    }

    /// The words before a package's own arguments: `runtime` are those that its
    /// publisher adds for the runner, `env` the variables that it reads.
    pub(crate) fn words(
        self,
        name: &str,
        version: Option<&str>,
        runtime: Vec<Argument>,
        env: impl Iterator<Item = String>,
    ) -> Result<Vec<Argument>, BadName> {
        let name = self.name(name)?;
        let version = version.map(self::version).transpose()?;
        let has = |word: &str| runtime.iter().any(|one| one.flag.as_deref() == Some(word));
        let mut words: Vec<Argument> = Vec::new();
        match self {
            Kind::Npm if !has("-y") && !has("--yes") => words.push(Argument::word("-y")),
            Kind::Nuget if !has("--yes") => words.push(Argument::word("--yes")),
            Kind::Oci => {
                words.extend(["run", "-i", "--rm"].map(Argument::word));
                words.extend(env.flat_map(|name| [Argument::word("-e"), Argument::word(&name)]));
            }
            Kind::Npm | Kind::Pypi | Kind::Nuget => {}
        }
        words.extend(runtime);
        let tagged = self == Kind::Oci
            && name.rsplit('/').next().is_some_and(|last| last.contains([':', '@']));
        words.push(match version {
            Some(version) if self == Kind::Oci && !tagged => {
                Argument::word(&format!("{name}:{version}"))
            }
            Some(version) if self != Kind::Oci => Argument::word(&format!("{name}@{version}")),
            Some(_) | None => Argument::word(name),
        });
        if self == Kind::Nuget {
            words.push(Argument::word("--"));
        }
        Ok(words)
    }
}

pub(crate) fn version(version: &str) -> Result<&str, BadName> {
    let fits = is_word(version, "-._+!") && version.len() <= 64;
    fits.then_some(version).ok_or_else(|| bad(version, "version"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_pass_and_what_a_runner_would_take_otherwise_does_not() {
        for name in ["@modelcontextprotocol/server-filesystem", "mcp", "a.b_c~d"] {
            assert!(Kind::Npm.name(name).is_ok(), "{name}");
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
            assert!(Kind::Npm.name(name).is_err(), "{name:?}");
            assert!(Kind::Pypi.name(name).is_err(), "{name:?}");
        }
        assert!(Kind::Oci.name("ghcr.io/a/b:1@sha256:00ff").is_ok());
        assert!(Kind::Oci.name("--privileged").is_err());
        assert!(Kind::Npm.name(&"a".repeat(300)).is_err());
        for wrong in ["", "-1", "1 2", "latest;x", "1@2", "../1"] {
            assert!(version(wrong).is_err(), "{wrong:?}");
        }
        assert!(version("1.2.3-rc.1+x").is_ok());
    }
}
