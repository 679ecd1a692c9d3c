//! The version, as each kind of package spells it.

use std::fmt;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// A semantic version: `0.2.0` or `0.2.0-rc.1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    release: String,
    /// What follows the hyphen.
    early: Option<String>,
}

impl Version {
    /// The version of the program, as Cargo knows it.
    pub(crate) fn of_program(metadata: &Value) -> Result<Version> {
        let packages = metadata["packages"].as_array().context("metadata without packages")?;
        let program = packages.iter().find(|package| package["name"] == "gatelet");
        let version = program.and_then(|package| package["version"].as_str());
        Ok(Version::read(version.context("no package `gatelet`")?))
    }

    fn read(text: &str) -> Version {
        match text.split_once('-') {
            Some((release, early)) => {
                Version { release: release.into(), early: Some(early.into()) }
            }
            None => Version { release: text.into(), early: None },
        }
    }

    /// A tilde sorts before everything, so an early version is older than its release.
    pub(crate) fn debian(&self) -> String {
        match &self.early {
            Some(early) => format!("{}~{early}", self.release),
            None => self.release.clone(),
        }
    }

    /// By PEP 440, which knows only alphas, betas and candidates.
    pub(crate) fn python(&self) -> Result<String> {
        let Some(early) = &self.early else { return Ok(self.release.clone()) };
        let (kind, number) = early.split_once('.').unwrap_or((early, "0"));
        let kind = match kind {
            "alpha" => "a",
            "beta" => "b",
            "rc" => "rc",
            _ => bail!("a wheel cannot be called `{self}`: use -alpha.N, -beta.N or -rc.N"),
        };
        if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            bail!("a wheel cannot be called `{self}`: what follows `{kind}.` is a number");
        }
        Ok(format!("{}{kind}{number}", self.release))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.early {
            Some(early) => write!(f, "{}-{early}", self.release),
            None => f.write_str(&self.release),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_package_spells_an_early_version_its_own_way() {
        let spelt = |text: &str| {
            let version = Version::read(text);
            (version.to_string(), version.debian(), version.python().ok())
        };
        let is = |a: &str, b: &str, c: Option<&str>| (a.into(), b.into(), c.map(str::to_owned));
        assert_eq!(spelt("0.1.0"), is("0.1.0", "0.1.0", Some("0.1.0")));
        assert_eq!(spelt("1.0.0-rc.2"), is("1.0.0-rc.2", "1.0.0~rc.2", Some("1.0.0rc2")));
        assert_eq!(spelt("1.0.0-beta"), is("1.0.0-beta", "1.0.0~beta", Some("1.0.0b0")));
        assert_eq!(spelt("1.0.0-tuesday.1"), is("1.0.0-tuesday.1", "1.0.0~tuesday.1", None));
        assert_eq!(spelt("1.0.0-rc.x"), is("1.0.0-rc.x", "1.0.0~rc.x", None));
    }
}
