//! How gatelet describes itself to clients: server name, capabilities and the resource
//! `cash://server`.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tool::{Json, Reply, Resource, Server};

use policy::visibility::Item;
use roster::{Snapshot, loop_guard};

/// Returns the manifest of this server, as JSON.
pub type Manifest = Arc<dyn Fn() -> String + Send + Sync>;

/// What every surface says about this server.
pub(crate) struct About {
    /// gatelet's version, as clients see it.
    pub(crate) version: String,
    /// The id of this gatelet among all others.
    pub(crate) gatelet_id: Arc<str>,
    /// Returns the content of `cash://server`; the resource does not exist when `None`.
    pub(crate) manifest: Option<Manifest>,
}

/// The URI of the resource with the manifest.
pub(crate) const MANIFEST_URI: &str = "cash://server";

impl About {
    /// Returns the resource with the manifest, as it is listed.
    pub(crate) fn resource(&self) -> Option<Resource> {
        self.manifest.as_ref().map(|_| {
            let raw = json!({
                "uri": MANIFEST_URI,
                "name": "cash-server-manifest",
                "mimeType": "application/json",
                "annotations": {"audience": ["assistant"], "priority": 0.0},
            });
            Resource::parse(raw.into()).expect("our own resource has a URI")
        })
    }

    /// Reads the resource with the manifest; `None` for every other URI.
    pub(crate) fn read(&self, uri: &str) -> Option<Reply> {
        let manifest = self.manifest.as_ref().filter(|_| uri == MANIFEST_URI)?();
        let contents = json!([{"uri": uri, "mimeType": "application/json", "text": manifest}]);
        Some(Reply::Result(json!({"contents": contents}).into()))
    }
}

/// The members of server info and capabilities that MCP defines and gatelet sets itself.
const INFO_MEMBERS: [&str; 6] = ["name", "version", "title", "description", "icons", "websiteUrl"];
const CAPABILITY_MEMBERS: [&str; 8] = [
    "tools",
    "resources",
    "prompts",
    "completions",
    "logging",
    "tasks",
    "extensions",
    "experimental",
];

/// Describes gatelet as a server with these capabilities.
///
/// A toolset inside gatelet may declare members that MCP does not define; they are
/// added here for its clients. What other upstreams declare is not added.
pub(crate) fn server(
    about: &About,
    snapshot: &Snapshot,
    mut capabilities: Value,
    shows: &dyn Fn(&Item<'_>) -> bool,
) -> Server {
    loop_guard::declare(&mut capabilities, &about.gatelet_id, snapshot.catalog.sources().iter());
    let mut server = Server::new("gatelet", &about.version, capabilities.into());
    for source in snapshot.catalog.sources() {
        let theirs = &source.listing.server;
        if theirs.protocol.is_empty() && shows(&Item::Namespace(&source.label)) {
            add_members(&mut server.raw, &theirs.raw, &INFO_MEMBERS);
            add_members(&mut server.capabilities, &theirs.capabilities, &CAPABILITY_MEMBERS);
        }
    }
    server
}

/// Copies the members of `from` that `into` does not have, except for those in `known`.
fn add_members(into: &mut Json, from: &Json, known: &[&str]) {
    let Ok(more) = from.parse_as::<Map<String, Value>>() else { return };
    let mut more = more.into_iter().filter(|(key, _)| !known.contains(&key.as_str())).peekable();
    if more.peek().is_none() {
        return;
    }
    let Ok(mut all) = into.parse_as::<Map<String, Value>>() else { return };
    for (key, value) in more {
        all.entry(key).or_insert(value);
    }
    *into = Json::encode(&all);
}
