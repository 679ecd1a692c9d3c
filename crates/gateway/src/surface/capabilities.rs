//! The MCP capabilities that surfaces declare.
//!
//! Of the capabilities that upstreams declare, only those are declared whose requests
//! gatelet forwards.

use serde_json::{Map, Value, json};

use super::groups;
use super::listed::Config;
use super::served_skills;
use policy::visibility::CallerView;
use roster::Snapshot;
use skills::skill_index::SkillIndex;

/// Extensions of upstreams that use only requests that gatelet forwards: calls, resources
/// and `tasks/*`.
const FORWARDED: [&str; 2] = ["io.modelcontextprotocol/tasks", "io.modelcontextprotocol/ui"];

/// Returns the capabilities of the surfaces `cash` and `direct`, which pass on resources
/// and prompts as such.
pub(crate) fn of_primitives(
    index: &SkillIndex,
    listed: &Config,
    snapshot: &Snapshot,
    visible: &CallerView<'_>,
) -> Value {
    let all = json!({
        "tools": {"listChanged": true},
        "resources": {"listChanged": true, "subscribe": true},
        "prompts": {"listChanged": true},
        "completions": {},
        "logging": {},
    });
    let all = with_tasks(all, snapshot, visible);
    with_extensions(all, index, listed, snapshot, visible)
}

/// Returns the capabilities of surfaces with resources and prompts behind meta-tools.
pub(crate) fn of_meta_tools(
    index: &SkillIndex,
    listed: &Config,
    snapshot: &Snapshot,
    visible: &CallerView<'_>,
) -> Value {
    let all = json!({"tools": {"listChanged": true}, "resources": {}});
    with_extensions(all, index, listed, snapshot, visible)
}

/// Adds the task capabilities of the upstreams that the caller sees.
fn with_tasks(mut all: Value, snapshot: &Snapshot, visible: &CallerView<'_>) -> Value {
    let tasks = merged(snapshot, visible, "tasks");
    if let Some(mut tasks) = tasks {
        // Tasks of several upstreams are not listed together.
        tasks.remove("list");
        all["tasks"] = Value::Object(tasks);
    }
    all
}

/// Adds the extensions of the upstreams that the caller sees, and gatelet's own.
fn with_extensions(
    mut all: Value,
    index: &SkillIndex,
    listed: &Config,
    snapshot: &Snapshot,
    visible: &CallerView<'_>,
) -> Value {
    let mut extensions = merged(snapshot, visible, "extensions").unwrap_or_default();
    extensions.retain(|name, _| FORWARDED.contains(&name.as_str()));
    if let Some((name, settings)) = served_skills::extension(index, snapshot, visible) {
        extensions.insert(name.to_owned(), settings);
    }
    if listed.groups {
        extensions.insert(groups::EXTENSION.to_owned(), json!({}));
    }
    if !extensions.is_empty() {
        all["extensions"] = Value::Object(extensions);
    }
    all
}

/// Merges what the upstreams that the caller sees declare under a key, one level deep.
/// Of two that declare the same member, the first counts.
fn merged(snapshot: &Snapshot, visible: &CallerView<'_>, key: &str) -> Option<Map<String, Value>> {
    let mut all: Option<Map<String, Value>> = None;
    for (at, source) in snapshot.catalog.sources().iter().enumerate() {
        let theirs = source.listing.server.capabilities.member_as::<Map<String, Value>>(key);
        let Some(theirs) = theirs.filter(|_| visible.shows_source(&snapshot.catalog, at)) else {
            continue;
        };
        let all = all.get_or_insert_default();
        for (key, value) in theirs {
            all.entry(key).or_insert(value);
        }
    }
    all
}

#[cfg(test)]
mod tests;
