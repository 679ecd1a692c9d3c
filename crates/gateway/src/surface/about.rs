//! Who the gate says it is.

use serde_json::{Map, Value};
use tool::{Json, Server};

use crate::gateway::Shared;
use crate::roster::{Snapshot, gates};
use crate::visibility::Thing;

/// What the protocol knows of a server, and the gate says for itself.
const INFO: [&str; 6] = ["name", "version", "title", "description", "icons", "websiteUrl"];
const CAPABILITIES: [&str; 8] = [
    "tools",
    "resources",
    "prompts",
    "completions",
    "logging",
    "tasks",
    "extensions",
    "experimental",
];

/// The gate, as a server that can do this.
///
/// A toolset inside the gate may say more of itself than the protocol knows, as a
/// contract of its own demands; behind the gate its clients read it here. What
/// an upstream elsewhere says stays with that upstream.
pub(crate) fn server(
    shared: &Shared,
    snapshot: &Snapshot,
    mut capabilities: Value,
    knows: &dyn Fn(&Thing<'_>) -> bool,
) -> Server {
    gates::tell(&mut capabilities, shared.roster.instance(), snapshot.catalog.sources().iter());
    let mut server = Server::new("gatelet", &shared.version, capabilities.into());
    for source in snapshot.catalog.sources() {
        let theirs = &source.listing.server;
        if theirs.protocol.is_empty() && knows(&Thing::Namespace(&source.label)) {
            add(&mut server.raw, &theirs.raw, &INFO);
            add(&mut server.capabilities, &theirs.capabilities, &CAPABILITIES);
        }
    }
    server
}

/// Adds the members that are neither there nor `known`.
fn add(into: &mut Json, from: &Json, known: &[&str]) {
    let Ok(more) = from.read::<Map<String, Value>>() else { return };
    let mut more = more.into_iter().filter(|(key, _)| !known.contains(&key.as_str())).peekable();
    if more.peek().is_none() {
        return;
    }
    let Ok(mut all) = into.read::<Map<String, Value>>() else { return };
    for (key, value) in more {
        all.entry(key).or_insert(value);
    }
    *into = Json::encode(&all);
}
