//! How gatelet describes itself to clients.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tool::{Json, Reply, Resource, Server};

use policy::visibility::Thing;
use roster::{Snapshot, loop_guard};

/// Says who this server is, as JSON.
pub type Manifest = Arc<dyn Fn() -> String + Send + Sync>;

/// What every surface says of the server.
pub(crate) struct About {
    /// gatelet's version, as clients see it.
    pub(crate) version: String,
    /// The id of this gatelet among all others.
    pub(crate) gatelet_id: Arc<str>,
    /// What `cash://server` says; not there when `None`.
    pub(crate) manifest: Option<Manifest>,
}

/// The resource that says who this server is.
pub(crate) const IDENTITY: &str = "cash://server";

impl About {
    /// The resource that says who this server is, as it is listed.
    pub(crate) fn resource(&self) -> Option<Resource> {
        self.manifest.as_ref().map(|_| {
            let raw = json!({
                "uri": IDENTITY,
                "name": "cash-server-manifest",
                "mimeType": "application/json",
                "annotations": {"audience": ["assistant"], "priority": 0.0},
            });
            Resource::parse(raw.into()).expect("our own resource has a URI")
        })
    }

    /// What reading it gives; `None` for every other URI.
    pub(crate) fn read(&self, uri: &str) -> Option<Reply> {
        let manifest = self.manifest.as_ref().filter(|_| uri == IDENTITY)?();
        let contents = json!([{"uri": uri, "mimeType": "application/json", "text": manifest}]);
        Some(Reply::Result(json!({"contents": contents}).into()))
    }
}

/// The members that the protocol defines, which gatelet sets itself.
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

/// gatelet as a server with these capabilities.
///
/// A toolset inside gatelet may declare members that the protocol does not define,
/// as its own contract demands; its clients read them here. What an upstream
/// elsewhere declares is not repeated.
pub(crate) fn server(
    about: &About,
    snapshot: &Snapshot,
    mut capabilities: Value,
    shows: &dyn Fn(&Thing<'_>) -> bool,
) -> Server {
    loop_guard::declare(&mut capabilities, &about.gatelet_id, snapshot.catalog.sources().iter());
    let mut server = Server::new("gatelet", &about.version, capabilities.into());
    for source in snapshot.catalog.sources() {
        let theirs = &source.listing.server;
        if theirs.protocol.is_empty() && shows(&Thing::Namespace(&source.label)) {
            add(&mut server.raw, &theirs.raw, &INFO);
            add(&mut server.capabilities, &theirs.capabilities, &CAPABILITIES);
        }
    }
    server
}

/// Adds the members that are neither there nor `known`.
fn add(into: &mut Json, from: &Json, known: &[&str]) {
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
