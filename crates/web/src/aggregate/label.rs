//! Chooses the label (the namespace) of each mounted server.
//!
//! It is the operator's choice, else the label that the server had with its last manifest,
//! else the namespace that the manifest suggests, if it suggests just one, else the specific
//! part of the host name. If a label is taken, that part is put before it, or a hash of the
//! manifest's URL behind it; if these are taken, too, the part gets a number.
//!
//! Servers choose in the order of the configuration, so the first to answer has no
//! advantage. The price is that a label may change until all manifests are known: a server
//! that comes earlier may claim it when its own manifest arrives.

use catalog::name;
use url::Url;

use crate::manifest::{MAX_LABEL, Manifest};

/// Returns a label for each server, in order. None gets a label of `reserved`: those of
/// configured upstreams and of built-in tools.
pub fn assign(reserved: &[String], servers: &[Server<'_>]) -> Vec<String> {
    let mut taken: Vec<String> = reserved.iter().map(|label| name::canonical(label)).collect();
    let mut labels = Vec::with_capacity(servers.len());
    for server in servers {
        let free = |label: &String| !taken.contains(&name::canonical(label));
        let label = server.candidates().into_iter().find(free);
        let label = label.unwrap_or_else(|| {
            // All candidates are taken, so a number is appended.
            let numbered = (2..).map(|n| shorten(&format!("{}_{n}", server.host_word())));
            numbered.into_iter().find(free).unwrap_or_default()
        });
        taken.push(name::canonical(&label));
        labels.push(label);
    }
    labels
}

/// A server that needs a label.
#[derive(Clone, Copy, Debug)]
pub struct Server<'a> {
    /// The URL of its manifest.
    pub source: &'a Url,
    /// The label that the operator chose.
    pub label: Option<&'a str>,
    /// Its manifest; `None` while none was accepted.
    pub manifest: Option<&'a Manifest>,
    /// The label that it had with its last manifest, in this run or an earlier one.
    pub kept_label: Option<&'a str>,
}

impl Server<'_> {
    /// Returns possible labels, best first.
    fn candidates(&self) -> Vec<String> {
        let own = self.label.map(name::alias);
        let suggested = match self.manifest.map(|manifest| manifest.namespaces.as_slice()) {
            Some([only]) => only.suggested.split('.').next().map(name::alias),
            Some(_) | None => None,
        };
        let kept = self.kept_label.filter(|_| own.is_none()).map(str::to_owned);
        let first = own.or(kept).or(suggested).unwrap_or_else(|| self.host_word());
        let host = self.host_word();
        let tag = name::tag(self.source.as_str(), 4);
        let mixed = if first == host { None } else { Some(format!("{host}_{first}")) };
        let candidates = [Some(first.clone()), mixed, Some(format!("{first}_{tag}"))];
        candidates.into_iter().flatten().map(|label| shorten(&label)).collect()
    }

    /// Returns the first specific word of the host name, so not `www`, `mcp` or `api`, as a
    /// label.
    fn host_word(&self) -> String {
        let host = self.source.host_str().unwrap_or("server");
        if self.source.domain().is_none() {
            return name::alias(&format!("host_{host}"));
        }
        let mut words = host.split('.').filter(|word| !["www", "mcp", "api"].contains(word));
        name::alias(words.next().unwrap_or(host))
    }
}

/// Shortens a label to [`MAX_LABEL`]; a hash keeps it unique.
fn shorten(label: &str) -> String {
    if label.len() <= MAX_LABEL {
        return label.to_owned();
    }
    let tag = name::tag(label, 6);
    let cut: String = label.chars().take(MAX_LABEL - 7).collect();
    format!("{}_{tag}", cut.trim_end_matches('_'))
}
