//! Chooses the namespace of a mounted server.
//!
//! The operator's word counts first, then the manifest's only suggestion, then
//! the name of the host. Where a label is taken, the host's name goes before it,
//! then a few digits that follow from the manifest's address. So a label depends
//! on who came before and on where the manifest is, never on who answered first.

use catalog::name;
use url::Url;

use crate::manifest::{LONGEST, Manifest};

/// The labels of servers, in the operator's order. `taken` are those of the
/// servers that have no manifest; `kept` is what each was called before.
pub fn assign(taken: &[String], servers: &[Server<'_>]) -> Vec<String> {
    let mut all: Vec<String> = taken.iter().map(|label| name::canonical(label)).collect();
    let mut labels = Vec::with_capacity(servers.len());
    for server in servers {
        let free = |label: &String| !all.contains(&name::canonical(label));
        let label = server.candidates().into_iter().find(free);
        let label = label.unwrap_or_else(|| {
            // Everything derived is taken, so numbers decide.
            let numbered = (2..).map(|n| format!("{}_{n}", server.host()));
            numbered.into_iter().find(free).unwrap_or_default()
        });
        all.push(name::canonical(&label));
        labels.push(label);
    }
    labels
}

/// A server that wants a label.
#[derive(Clone, Copy, Debug)]
pub struct Server<'a> {
    pub source: &'a Url,
    pub label: Option<&'a str>,
    pub manifest: Option<&'a Manifest>,
    /// What it was called before, if it was.
    pub before: Option<&'a str>,
}

impl Server<'_> {
    /// Returns what it would be called, best first.
    fn candidates(&self) -> Vec<String> {
        let own = self.label.map(name::alias);
        let suggested = match self.manifest.map(|manifest| manifest.namespaces.as_slice()) {
            Some([only]) => only.suggested.split('.').next().map(name::alias),
            Some(_) | None => None,
        };
        let before = self.before.filter(|_| own.is_none()).map(str::to_owned);
        let first = own.or(before).or(suggested).unwrap_or_else(|| self.host());
        let host = self.host();
        let tag = name::tag(self.source.as_str(), 4);
        let mixed = if first == host { None } else { Some(format!("{host}_{first}")) };
        let candidates = [Some(first.clone()), mixed, Some(format!("{first}_{tag}"))];
        candidates.into_iter().flatten().map(|label| short(&label)).collect()
    }

    /// The first word of the host that says something.
    fn host(&self) -> String {
        let host = self.source.host_str().unwrap_or("server");
        if self.source.domain().is_none() {
            return name::alias(&format!("host_{host}"));
        }
        let mut words = host.split('.').filter(|word| !["www", "mcp", "api"].contains(word));
        name::alias(words.next().unwrap_or(host))
    }
}

/// A label that is not too long to be one.
fn short(label: &str) -> String {
    if label.len() <= LONGEST {
        return label.to_owned();
    }
    let tag = name::tag(label, 6);
    let cut: String = label.chars().take(LONGEST - 7).collect();
    format!("{}_{tag}", cut.trim_end_matches('_'))
}
