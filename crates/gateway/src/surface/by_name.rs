//! Functions by one name that every host accepts: `label_tool`.
//!
//! The name is made of the upstream's label and the tool's own name, so it does
//! not depend on other upstreams.

use std::collections::HashMap;
use std::sync::Arc;

use catalog::Slot;
use sha2::{Digest, Sha256};
use tool::{Context, FastMap, Finding, Json, Object, Tool, hex};

use super::cuts;
use policy::live::LiveStages;
use roster::{Snapshot, UpstreamPool};

/// Characters that a host accepts in a name.
const LONGEST: usize = 64;

/// The names of all tools, and the way back from each.
pub(crate) struct Names {
    tools: Vec<(Slot, Tool)>,
    slots: FastMap<String, Slot>,
    /// What hosts would cut of them.
    pub(crate) findings: Vec<Finding>,
}

impl Names {
    /// Every tool with its name here, whole otherwise.
    pub(crate) fn tools(&self) -> &[(Slot, Tool)] {
        &self.tools
    }

    pub(crate) fn definitions(&self) -> Vec<Json> {
        self.tools.iter().map(|(_, tool)| tool.raw.clone()).collect()
    }

    /// Those of a snapshot, made when first needed.
    pub(crate) fn of(snapshot: &Snapshot) -> &Names {
        snapshot.derived(|| Names::make(snapshot))
    }

    fn make(snapshot: &Snapshot) -> Names {
        let catalog = &snapshot.catalog;
        let (mut tools, mut slots, mut findings) = (Vec::new(), FastMap::default(), Vec::new());
        let mut plain: HashMap<&str, Option<Slot>> = HashMap::new();
        for slot in catalog.slots().filter(|slot| !catalog.is_builtin(*slot)) {
            let (tool, label) = (catalog.tool(slot), catalog.source(slot).label.as_str());
            let mut name = legal(label, &tool.name);
            if slots.contains_key(&name) {
                name = tagged(&name, label, &tool.name);
            }
            let shortened = LONGEST < label.len() + 1 + tool.name.len();
            findings.extend(cuts::findings(label, tool, &name, shortened));
            tools.push((slot, renamed(tool, &name)));
            slots.insert(name, slot);
            plain.entry(&tool.name).and_modify(|only| *only = None).or_insert(Some(slot));
        }
        // An upstream's own name works too while only one tool has it.
        for (name, slot) in plain {
            if let Some(slot) = slot {
                slots.entry(name.to_owned()).or_insert(slot);
            }
        }
        Names { tools, slots, findings }
    }
}

/// The name of a tool here: `label_name` with what hosts reject replaced.
fn legal(label: &str, name: &str) -> String {
    let keep = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
    let joined: String = format!("{label}_{name}").chars().map(keep).collect();
    match joined.len() <= LONGEST {
        true => joined,
        false => tagged(&joined, label, name),
    }
}

/// A name with a tag of what it stands for, short enough.
fn tagged(joined: &str, label: &str, name: &str) -> String {
    let digest = Sha256::digest(format!("{label}\n{name}").as_bytes());
    let tag = hex::encode(&digest[..4]);
    let head: String = joined.chars().take(LONGEST - 9).collect();
    format!("{head}_{tag}")
}

/// The definition, whole but for its name. Official clients refuse a whole list
/// for one schema in it that is none, so such a schema is left out.
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

/// Finds functions by their names here.
pub(crate) struct ByName<'a> {
    pub(crate) pool: &'a UpstreamPool,
    pub(crate) live: &'a LiveStages,
}

impl ByName<'_> {
    /// The function of a name and the snapshot that has it, if the caller sees it.
    pub(crate) async fn resolve(
        &self,
        name: &str,
        context: &Context,
    ) -> (Arc<Snapshot>, Option<Slot>) {
        let snapshot = self.pool.snapshot();
        if let found @ Some(_) = self.find(&snapshot, name, context) {
            return (snapshot, found);
        }
        let snapshot = Box::pin(self.waited(snapshot, name, context)).await;
        let found = self.find(&snapshot, name, context);
        (snapshot, found)
    }

    /// The tool of a name, if the caller sees it.
    fn find(&self, snapshot: &Snapshot, name: &str, context: &Context) -> Option<Slot> {
        let slot = Names::of(snapshot).slots.get(name).copied()?;
        let visible = self.live.visible_to(&context.caller);
        visible.shows_function(&snapshot.catalog, slot).then_some(slot)
    }

    /// The snapshot to answer from when nobody knows a name: what is listed for
    /// the first time is waited for, and what is remembered is looked at, where
    /// the name begins with the label of an upstream that the caller knows of.
    async fn waited(
        &self,
        snapshot: Arc<Snapshot>,
        name: &str,
        context: &Context,
    ) -> Arc<Snapshot> {
        let labels = self.meant(&snapshot, name, context);
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

    /// The upstreams whose tool a name may be, as far as the caller knows.
    fn meant(&self, snapshot: &Snapshot, name: &str, context: &Context) -> Vec<String> {
        let (catalog, visible) = (&snapshot.catalog, self.live.visible_to(&context.caller));
        let knows = |label: &str| visible.shows_upstream(catalog, label);
        let labels = catalog.sources().iter().map(|source| source.label.as_str());
        let meant = labels.filter(|label| name.starts_with(&legal(label, "")) && knows(label));
        meant.map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_legal_and_do_not_depend_on_other_upstreams() {
        assert_eq!(legal("github", "create_issue"), "github_create_issue");
        assert_eq!(legal("fs", "read.file x"), "fs_read_file_x");
        let long = legal("label", &"n".repeat(100));
        assert_eq!(long.len(), 64);
        assert_ne!(long, legal("label", &"n".repeat(101)));
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
