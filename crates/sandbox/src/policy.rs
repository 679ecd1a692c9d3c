//! The sandbox policy of a program, as a value.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::Support;

/// What a program may do, in addition to reading what every program needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// Paths that it may read and execute, with everything below.
    pub read: Vec<PathBuf>,
    /// Paths that it may read, execute and change, with everything below.
    pub write: Vec<PathBuf>,
    pub network: Network,
    /// The ports of this machine's loopback that it reaches with
    /// [`Network::Loopback`]; all other ports are those of its private loopback.
    #[serde(default)]
    pub ports: Vec<u16>,
    /// The maximum of its writable memory in bytes.
    pub memory: Option<u64>,
    /// The maximum number of open files.
    pub files: Option<u64>,
}

/// What a program may connect to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    /// Nothing: it cannot open a socket.
    #[default]
    None,
    /// A private loopback that it shares with what it starts, and the ports of this
    /// machine's loopback that the policy lists.
    Loopback,
    All,
}

/// Why a policy cannot be enforced here. One variant per remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unenforceable {
    #[error(
        "this kernel has no Landlock (Linux 5.13 or newer with `landlock` among its security modules)"
    )]
    NoLandlock,
    #[error("this kernel has no seccomp filters")]
    NoSeccomp,
    #[error(
        "this kernel gives programs no network of their own, because user namespaces are switched off \
         (`user.max_user_namespaces`, `kernel.unprivileged_userns_clone` and \
         `kernel.apparmor_restrict_unprivileged_userns` of sysctl say so): use \"none\" or \"all\""
    )]
    NoNamespaces,
    #[error("`{}` cannot be opened: {why}", path.display())]
    Path { path: PathBuf, why: String },
    #[error("the kernel refused: {0}")]
    Refused(String),
}

impl Policy {
    /// Fails if a kernel with this support cannot enforce the policy.
    pub fn check(&self, support: Support) -> Result<(), Unenforceable> {
        match support {
            Support { landlock: None, .. } => Err(Unenforceable::NoLandlock),
            Support { seccomp: false, .. } => Err(Unenforceable::NoSeccomp),
            Support { namespaces: false, .. } if self.network == Network::Loopback => {
                Err(Unenforceable::NoNamespaces)
            }
            Support { landlock: Some(_), seccomp: true, namespaces: _ } => Ok(()),
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |paths: &[PathBuf]| match paths {
            [] => "nothing".to_owned(),
            paths => {
                paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
            }
        };
        let network = match self.network {
            Network::None => "none".to_owned(),
            Network::Loopback if self.ports.is_empty() => "loopback of its own".to_owned(),
            Network::Loopback => {
                let ports: Vec<String> = self.ports.iter().map(u16::to_string).collect();
                format!("loopback of its own and ports {} of this machine", ports.join(", "))
            }
            Network::All => "all".to_owned(),
        };
        write!(f, "read {}; write {}; network {network}", list(&self.read), list(&self.write))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_enforced_is_refused() {
        let all = Support { landlock: Some(6), seccomp: true, namespaces: true };
        let policy = Policy::default();
        assert_eq!(policy.check(all), Ok(()));
        assert_eq!(policy.check(Support { landlock: None, ..all }), Err(Unenforceable::NoLandlock));
        assert_eq!(policy.check(Support { seccomp: false, ..all }), Err(Unenforceable::NoSeccomp));
        let loopback = Policy { network: Network::Loopback, ..policy };
        assert_eq!(loopback.check(all), Ok(()));
        let without = Support { namespaces: false, ..all };
        assert_eq!(loopback.check(without), Err(Unenforceable::NoNamespaces));
        assert_eq!(Policy::default().check(without), Ok(()), "nobody asked for a network");
    }

    #[test]
    fn a_policy_passes_over_a_command_line_whole() {
        let policy = Policy {
            read: vec!["/a b".into(), "/\u{e9}\"'$(x)".into()],
            network: Network::All,
            memory: Some(1 << 30),
            ..Policy::default()
        };
        let text = serde_json::to_string(&policy).unwrap();
        assert_eq!(serde_json::from_str::<Policy>(&text).unwrap(), policy);
    }
}
