//! What every surface declares that it can do.
//!
//! Nothing is declared whose methods are not answered: of what upstreams declare,
//! only what is carried for them is joined.

use serde_json::{Map, Value, json};

use super::groups;
use super::listed::Config;
use super::served_skills;
use policy::visibility::Visible;
use roster::Snapshot;
use skills::skill_index::SkillIndex;

/// Extensions of upstreams that need nothing but what is carried anyway: calls,
/// resources, and `tasks/*`.
const CARRIED: [&str; 2] = ["io.modelcontextprotocol/tasks", "io.modelcontextprotocol/ui"];

/// What is declared where everything of upstreams is passed on: on `cash` and
/// `direct`.
pub(crate) fn whole(
    index: &SkillIndex,
    listed: &Config,
    snapshot: &Snapshot,
    visible: &Visible<'_>,
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

/// What is declared where resources and prompts are behind tools.
pub(crate) fn of_meta_tools(
    index: &SkillIndex,
    listed: &Config,
    snapshot: &Snapshot,
    visible: &Visible<'_>,
) -> Value {
    let all = json!({"tools": {"listChanged": true}, "resources": {}});
    with_extensions(all, index, listed, snapshot, visible)
}

/// With what upstreams that the caller sees can do with tasks.
fn with_tasks(mut all: Value, snapshot: &Snapshot, visible: &Visible<'_>) -> Value {
    let tasks = members(snapshot, visible, "tasks");
    if let Some(mut tasks) = tasks {
        // Tasks of several upstreams are not listed together.
        tasks.remove("list");
        all["tasks"] = Value::Object(tasks);
    }
    all
}

fn with_extensions(
    mut all: Value,
    index: &SkillIndex,
    listed: &Config,
    snapshot: &Snapshot,
    visible: &Visible<'_>,
) -> Value {
    let mut extensions = members(snapshot, visible, "extensions").unwrap_or_default();
    extensions.retain(|name, _| CARRIED.contains(&name.as_str()));
    if let Some((name, settings)) = served_skills::declared(index, snapshot, visible) {
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

/// What upstreams that the caller sees declare under a key, one level deep; of
/// two that declare the same, the first counts.
fn members(snapshot: &Snapshot, visible: &Visible<'_>, key: &str) -> Option<Map<String, Value>> {
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
