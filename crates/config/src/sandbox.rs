//! The `sandbox` key of an upstream: what its program may read, write and connect to.

use std::path::{Path, PathBuf};

use sandbox::{Network, Policy, container, preset};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the program may read, write and connect to: a table, `auto` for a server that gatelet knows,
/// or `container`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "Sandbox")]
pub enum Raw {
    Keyword(Keyword),
    Rules(RawRules),
}

impl Raw {
    /// `sandbox = "auto"`.
    pub const AUTO: Raw = Raw::Keyword(Keyword::Auto);
}

/// A sandbox that is made for the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "SandboxName")]
pub enum Keyword {
    /// What gatelet knows that this server needs
    Auto,
    /// A container of docker or podman
    Container,
}

/// A sandbox as the operator wants it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SandboxRules")]
pub struct RawRules {
    /// Files and directories that may be read, relative to this file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    read: Vec<PathBuf>,
    /// Files and directories that may be read and changed, relative to this file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    write: Vec<PathBuf>,
    /// Whom the program may talk to. Nobody when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    network: Option<RawNetwork>,
    /// Ports of this machine's loopback that it reaches with `network = "loopback"`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ports: Vec<u16>,
    /// How much memory it may use, such as `512MB`.
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<String>,
    /// How many files it may have open.
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<u32>,
    /// Run it in a container of this image instead, by docker or podman.
    #[serde(skip_serializing_if = "Option::is_none")]
    container: Option<String>,
}

/// Whom a program may talk to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "SandboxNetwork")]
enum RawNetwork {
    /// Nobody
    None,
    /// Itself, over a loopback of its own, and the `ports` of this machine
    Loopback,
    /// Everybody
    All,
}

/// How a program is confined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sandbox {
    /// By the kernel.
    Kernel(Policy),
    /// In a container of this image.
    Container { image: String, policy: Policy },
}

impl Sandbox {
    pub fn policy(&self) -> &Policy {
        match self {
            Sandbox::Kernel(policy) | Sandbox::Container { policy, .. } => policy,
        }
    }
}

/// The program that a sandbox is for.
pub(crate) struct ConfinedProgram<'a> {
    pub(crate) command: &'a str,
    pub(crate) args: &'a [String],
    pub(crate) directory: Option<PathBuf>,
    pub(crate) home: Option<PathBuf>,
}

/// Parses a sandbox. `resolve_path` makes the paths in it absolute.
pub(crate) fn parse(
    raw: &Raw,
    confined: &ConfinedProgram<'_>,
    resolve_path: impl Fn(&PathBuf) -> PathBuf,
) -> Result<Sandbox, String> {
    let run = preset::Run {
        command: confined.command,
        args: confined.args,
        directory: confined.directory.as_deref(),
        home: confined.home.as_deref(),
    };
    let known = || preset::find(run, Path::exists);
    let image = || {
        let image = container::image(confined.command).map(str::to_owned);
        image.ok_or_else(|| {
            format!("no image is known for `{}`: name one, container = \"IMAGE\"", confined.command)
        })
    };
    match raw {
        Raw::Keyword(Keyword::Auto) => known().map(Sandbox::Kernel).ok_or_else(|| {
            let names = preset::names().collect::<Vec<_>>().join(", ");
            format!(
                "gatelet does not know what this server needs: write a table (it knows {names})"
            )
        }),
        Raw::Keyword(Keyword::Container) => {
            let policy = known().unwrap_or(Policy { network: Network::All, ..Policy::default() });
            Ok(Sandbox::Container { image: image()?, policy })
        }
        Raw::Rules(rules) => {
            rules.check_ports()?;
            let network = match rules.network {
                None | Some(RawNetwork::None) => Network::None,
                Some(RawNetwork::Loopback) => Network::Loopback,
                Some(RawNetwork::All) => Network::All,
            };
            let policy = Policy {
                read: rules.read.iter().map(&resolve_path).collect(),
                write: rules.write.iter().map(&resolve_path).collect(),
                network,
                ports: rules.ports.clone(),
                memory: rules.memory.as_deref().map(bytes).transpose()?,
                files: rules.files.map(u64::from),
            };
            Ok(match &rules.container {
                Some(image) => Sandbox::Container { image: image.clone(), policy },
                None => Sandbox::Kernel(policy),
            })
        }
    }
}

impl RawRules {
    /// Checks that `ports` fits the other keys.
    fn check_ports(&self) -> Result<(), String> {
        let is_loopback = self.network == Some(RawNetwork::Loopback);
        match self.ports.as_slice() {
            [] => Ok(()),
            ports if ports.contains(&0) => Err("0 is no port".to_owned()),
            _ if !is_loopback => {
                Err("`ports` are those of `network = \"loopback\"`: without it they mean nothing"
                    .to_owned())
            }
            _ if self.container.is_some() => Err(
                "a container reaches no ports of this machine: leave `ports` or `container` out"
                    .to_owned(),
            ),
            _ => Ok(()),
        }
    }
}

/// Parses an amount of memory: `512MB`, `2 GiB`, `1000`.
fn bytes(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is no amount of memory: write it like `512MB` or `2GB`");
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..end].parse().map_err(|_| wrong())?;
    let unit = match text[end..].trim().to_ascii_uppercase().as_str() {
        "" | "B" => 1,
        "K" | "KB" | "KIB" => 1 << 10,
        "M" | "MB" | "MIB" => 1 << 20,
        "G" | "GB" | "GIB" => 1 << 30,
        _ => return Err(wrong()),
    };
    number.checked_mul(unit).filter(|bytes| *bytes != 0).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_written_as_people_write_it() {
        assert_eq!(bytes("512MB"), Ok(512 << 20));
        assert_eq!(bytes("2 gib"), Ok(2 << 30));
        assert_eq!(bytes("1000"), Ok(1000));
        for wrong in ["", "much", "0", "-1MB", "1.5GB", "99999999999999GB", "1TBB"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }
}
