//! Which server an upstream's label stands for.
//!
//! Two configurations may use one label for different servers. Trust in one of them
//! must not count for the other, so trust is bound to a digest of the command and its
//! arguments, or of the address.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use catalog::name;
use parking_lot::RwLock;
use sha2::{Digest, Sha256};
use tool::hex;

use config::{Reach, Upstream};

/// A digest by which a server is recognized, whatever its label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UpstreamIdentity(String);

impl UpstreamIdentity {
    /// The digest of how an upstream is reached and started. Secrets are left out, so
    /// that renewing one changes nothing.
    pub(crate) fn new(upstream: &Upstream) -> UpstreamIdentity {
        let mut digest = Sha256::new();
        let mut add = |text: &str| {
            digest.update(text.len().to_le_bytes());
            digest.update(text);
        };
        match &upstream.reach {
            Reach::Program { command, args, env, cwd, .. } => {
                add("program");
                add(command);
                args.iter().for_each(|arg| add(arg));
                let here = std::env::current_dir().unwrap_or_default();
                let cwd = cwd.as_deref().unwrap_or(&here);
                if args.iter().any(|arg| is_relative(arg, cwd)) {
                    add(&cwd.display().to_string());
                }
                let plain =
                    env.iter().filter(|(name, value)| !redact::looks_like_secret(name, value));
                plain
                    .for_each(|(name, value)| [name, value].into_iter().for_each(|text| add(text)));
            }
            Reach::Address { url, .. } => {
                add("address");
                add(url);
            }
            Reach::Content { database, prefix, .. } => {
                add("content");
                let database = database.as_deref().unwrap_or_default();
                // Without user name and password.
                add(database.rsplit('@').next().unwrap_or_default());
                add(prefix.as_deref().unwrap_or_default());
            }
            Reach::Nowhere { .. } => add("nowhere"),
        }
        UpstreamIdentity(hex::encode(&digest.finalize()[..8]))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether an argument means another file in another working directory.
fn is_relative(argument: &str, directory: &Path) -> bool {
    let path = Path::new(argument);
    path.is_relative()
        && (argument.starts_with('.') || !argument.is_empty() && directory.join(path).exists())
}

/// The identity of every upstream of a running gatelet, by label. Clones share one map.
///
/// A label is found in every spelling, because the ledger has the alias of one that is no
/// legal name: `my_files` of `my-files`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Identities(Arc<RwLock<ByLabel>>);

#[derive(Debug, Default)]
struct ByLabel {
    /// By the folded name of the label.
    labels: HashMap<String, UpstreamIdentity>,
    /// Grows with every change.
    version: u64,
}

impl Identities {
    pub(crate) fn new<'a>(upstreams: impl Iterator<Item = &'a Upstream>) -> Identities {
        let identities = Identities::default();
        upstreams.for_each(|upstream| identities.record(upstream));
        identities
    }

    pub(crate) fn record(&self, upstream: &Upstream) {
        let identity = UpstreamIdentity::new(upstream);
        let label = name::folded_name(&upstream.label);
        let mut by_label = self.0.write();
        if by_label.labels.get(&label) != Some(&identity) {
            by_label.labels.insert(label, identity);
            by_label.version += 1;
        }
    }

    pub(crate) fn get(&self, label: &str) -> Option<UpstreamIdentity> {
        self.0.read().labels.get(&name::folded_name(label)).cloned()
    }

    /// Changes whenever the identity behind a label does.
    pub(crate) fn version(&self) -> u64 {
        self.0.read().version
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::SourceFile;

    fn identity(entry: &str) -> UpstreamIdentity {
        let text = format!("[[upstream]]\nlabel = \"x\"\n{entry}\n");
        let source = SourceFile { name: "gatelet.toml".to_owned(), text };
        let (config, _) =
            config::parse(source, Path::new("/base"), &config::ProcessEnvironment).unwrap();
        UpstreamIdentity::new(&config.upstreams[0])
    }

    #[test]
    fn another_command_or_root_or_address_is_another_upstream() {
        let all = [
            "command = \"files\"\nargs = [\"/a\"]",
            "command = \"files\"\nargs = [\"/b\"]",
            "command = \"files\"\nargs = [\"/a\"]\nenv = { ROOT = \"/c\" }",
            "command = \"files\"\nargs = [\".\"]\ncwd = \"/tmp\"",
            "command = \"files\"\nargs = [\".\"]\ncwd = \"/usr\"",
            "url = \"https://a.example/mcp\"",
            "url = \"https://b.example/mcp\"",
        ];
        for (at, one) in all.iter().enumerate() {
            for other in &all[at + 1..] {
                assert_ne!(identity(one), identity(other), "{one} and {other}");
            }
            assert_eq!(identity(one), identity(one));
        }
    }

    #[test]
    fn a_secret_that_is_renewed_leaves_an_upstream_what_it_is() {
        let with = |token: &str| format!("command = \"db\"\nenv = {{ DB_PASSWORD = \"{token}\" }}");
        assert_eq!(identity(&with("correct-horse-1")), identity(&with("battery-staple-2")));
    }
}
