//! Names of tools that every host accepts, `label_tool`, and the way back from a name to
//! its tool.
//!
//! The name is made of the upstream's label and the tool's own name, so it does
//! not depend on what other upstreams list. A name that begins with the label of another
//! upstream is left to that one, whether it lists anything or not: the labels `my` and
//! `my_files` are the operator's, and what `my` calls its tools must not decide where
//! `my_files_read` leads.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use catalog::Slot;
use sha2::{Digest, Sha256};
use tool::{Context, FastMap, Finding, Json, Object, Tool, hex};

use super::cuts;
use policy::live::LiveStages;
use roster::{Snapshot, UpstreamPool};

/// The most characters that hosts accept in a name.
const MAX_NAME_CHARS: usize = 64;

/// All tools of a snapshot under their host-safe names.
pub(crate) struct ToolNames {
    tools: Vec<(Slot, Tool)>,
    /// The tool of each name.
    slots: FastMap<String, Slot>,
    /// Which names and descriptions hosts would cut.
    pub(crate) findings: Vec<Finding>,
}

impl ToolNames {
    /// Returns every tool with its definition, which is the upstream's but for the name.
    pub(crate) fn tools(&self) -> &[(Slot, Tool)] {
        &self.tools
    }

    pub(crate) fn definitions(&self) -> Vec<Json> {
        self.tools.iter().map(|(_, tool)| tool.raw.clone()).collect()
    }

    /// Returns the names of a snapshot's tools, computed when first needed.
    pub(crate) fn of(snapshot: &Snapshot) -> &ToolNames {
        snapshot.derived(|| ToolNames::compute(snapshot))
    }

    fn compute(snapshot: &Snapshot) -> ToolNames {
        let catalog = &snapshot.catalog;
        let (mut tools, mut slots, mut findings) = (Vec::new(), FastMap::default(), Vec::new());
        let mut plain: HashMap<&str, Option<Slot>> = HashMap::new();
        let labels = catalog.sources().iter().map(|source| source.label.as_str());
        let prefixes = LabelPrefixes::new(labels);
        for slot in catalog.slots().filter(|slot| !catalog.is_builtin(*slot)) {
            let (tool, label) = (catalog.tool(slot), catalog.source(slot).label.as_str());
            let mut name = host_safe(label, &tool.name);
            if slots.contains_key(&name) || prefixes.leads_elsewhere(&name, label) {
                name = with_hash(&name, label, &tool.name);
            }
            let shortened = MAX_NAME_CHARS < label.len() + 1 + tool.name.len();
            findings.extend(cuts::findings(label, tool, &name, shortened));
            tools.push((slot, renamed(tool, &name)));
            slots.insert(name, slot);
            plain.entry(&tool.name).and_modify(|only| *only = None).or_insert(Some(slot));
        }
        // An upstream's own name works too while only one tool has it.
        for (name, slot) in plain {
            if let Some(slot) = slot.filter(|_| !prefixes.begins(name)) {
                slots.entry(name.to_owned()).or_insert(slot);
            }
        }
        ToolNames { tools, slots, findings }
    }
}

/// The beginnings of names, `label_`, of all upstreams.
struct LabelPrefixes(HashSet<String>);

impl LabelPrefixes {
    fn new<'a>(labels: impl Iterator<Item = &'a str>) -> LabelPrefixes {
        LabelPrefixes(labels.map(|label| host_safe(label, "")).collect())
    }

    /// Whether a name begins with a longer label than that of its upstream.
    fn leads_elsewhere(&self, name: &str, label: &str) -> bool {
        self.in_name(name).any(|prefix| label.len() + 1 < prefix.len())
    }

    /// Whether a name begins with a label.
    fn begins(&self, name: &str) -> bool {
        self.in_name(name).next().is_some()
    }

    fn in_name<'a>(&self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let ends = name.match_indices('_').map(|(at, _)| &name[..=at]);
        ends.filter(|prefix| self.0.contains(*prefix))
    }
}

/// Returns `label_name` with the characters that hosts reject replaced.
fn host_safe(label: &str, name: &str) -> String {
    let keep = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
    let joined: String = format!("{label}_{name}").chars().map(keep).collect();
    match joined.len() <= MAX_NAME_CHARS {
        true => joined,
        false => with_hash(&joined, label, name),
    }
}

/// Shortens a name and appends a hash of the label and the tool's own name.
fn with_hash(joined: &str, label: &str, name: &str) -> String {
    let digest = Sha256::digest(format!("{label}\n{name}").as_bytes());
    let tag = hex::encode(&digest[..4]);
    let head: String = joined.chars().take(MAX_NAME_CHARS - 9).collect();
    format!("{head}_{tag}")
}

/// Returns the definition under another name. Official clients refuse a whole list if one
/// schema in it is not an object, so such a schema is left out.
fn renamed(tool: &Tool, name: &str) -> Tool {
    let Ok(mut raw) = Object::parse(&tool.raw) else { return tool.clone() };
    raw.set("name", Json::encode(name));
    if raw.get("inputSchema").is_none_or(|schema| !schema.is_object()) {
        raw.set("inputSchema", Json::encode(&serde_json::json!({"type": "object"})));
    }
    if raw.get("outputSchema").is_some_and(|schema| !schema.is_object()) {
        raw.remove("outputSchema");
    }
    Tool { name: name.to_owned(), raw: raw.to_json(), ..tool.clone() }
}

/// Finds tools by their host-safe names.
pub(crate) struct NameResolver<'a> {
    pub(crate) pool: &'a UpstreamPool,
    pub(crate) live: &'a LiveStages,
}

impl NameResolver<'_> {
    /// Returns the tool with this name, if the caller sees it, and the snapshot that it was
    /// looked up in. Waits for upstreams that are not listed yet.
    pub(crate) async fn resolve(
        &self,
        name: &str,
        context: &Context,
    ) -> (Arc<Snapshot>, Option<Slot>) {
        let snapshot = self.pool.snapshot();
        if let found @ Some(_) = self.find(&snapshot, name, context) {
            return (snapshot, found);
        }
        let snapshot = Box::pin(self.wait_for_listings(snapshot, name, context)).await;
        let found = self.find(&snapshot, name, context);
        (snapshot, found)
    }

    /// Returns the tool with this name in a snapshot, if the caller sees it.
    fn find(&self, snapshot: &Snapshot, name: &str, context: &Context) -> Option<Slot> {
        let slot = ToolNames::of(snapshot).slots.get(name).copied()?;
        let visible = self.live.visible_to(&context.caller);
        visible.shows_function(&snapshot.catalog, slot).then_some(slot)
    }

    /// Waits until the upstreams that may have a tool of this name are listed, and
    /// returns the snapshot afterwards. Upstreams with a remembered listing are
    /// started.
    async fn wait_for_listings(
        &self,
        snapshot: Arc<Snapshot>,
        name: &str,
        context: &Context,
    ) -> Arc<Snapshot> {
        let labels = self.possible_upstreams(&snapshot, name, context);
        if labels.is_empty() {
            return snapshot;
        }
        for label in &labels {
            self.pool.first_listing(label).await;
        }
        let snapshot = self.pool.snapshot();
        if self.find(&snapshot, name, context).is_some() {
            return snapshot;
        }
        for label in &labels {
            self.pool.current_listing(label).await;
        }
        self.pool.snapshot()
    }

    /// Returns the labels that a name may begin with, of upstreams that the caller sees.
    fn possible_upstreams(
        &self,
        snapshot: &Snapshot,
        name: &str,
        context: &Context,
    ) -> Vec<String> {
        let (catalog, visible) = (&snapshot.catalog, self.live.visible_to(&context.caller));
        let sees = |label: &str| visible.shows_upstream(catalog, label);
        let labels = catalog.sources().iter().map(|source| source.label.as_str());
        let possible =
            labels.filter(|label| name.starts_with(&host_safe(label, "")) && sees(label));
        possible.map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_legal_and_do_not_depend_on_other_upstreams() {
        assert_eq!(host_safe("github", "create_issue"), "github_create_issue");
        assert_eq!(host_safe("fs", "read.file x"), "fs_read_file_x");
        let long = host_safe("label", &"n".repeat(100));
        assert_eq!(long.len(), 64);
        assert_ne!(long, host_safe("label", &"n".repeat(101)));
    }

    #[test]
    fn a_name_that_begins_with_a_longer_label_is_left_to_that_upstream() {
        let prefixes = LabelPrefixes::new(["my", "my_files", "other"].into_iter());
        assert!(prefixes.leads_elsewhere("my_files_read", "my"));
        assert!(!prefixes.leads_elsewhere("my_files_read", "my_files"));
        assert!(!prefixes.leads_elsewhere("my_filesystem_read", "my"));
        assert!(!prefixes.leads_elsewhere("my_files", "my"), "no tool of the other has that name");
        for (name, begins) in [("my_files_read", true), ("other_x", true), ("read_my_x", false)] {
            assert_eq!(prefixes.begins(name), begins, "{name}");
        }
    }

    #[test]
    fn a_definition_whose_schema_is_none_is_one_that_clients_take() {
        for (odd, expected) in [
            (r#"{"name":"t"}"#, r#"{"name":"n","inputSchema":{"type":"object"}}"#),
            (
                r#"{"name":"t","inputSchema":null,"outputSchema":5,"x":1}"#,
                r#"{"name":"n","inputSchema":{"type":"object"},"x":1}"#,
            ),
            (
                r#"{"name":"t","inputSchema":{"a":1},"outputSchema":{}}"#,
                r#"{"name":"n","inputSchema":{"a":1},"outputSchema":{}}"#,
            ),
        ] {
            let tool = Tool::parse(Json::parse(odd.to_owned()).unwrap()).unwrap();
            assert_eq!(renamed(&tool, "n").raw.as_str(), expected);
        }
    }
}
