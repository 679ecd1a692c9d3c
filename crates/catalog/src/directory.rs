//! The directory of a catalog: everything by its stable id, with cards and paths.
//!
//! It is made from a [`Catalog`] when a surface first needs it. Tools, resources and
//! prompts each have their own ids, tree and order. Equal ids are made unique and
//! reported; nothing is left out.

use std::collections::HashMap;
use std::sync::OnceLock;

use sha2::{Digest, Sha256};
use tool::{FastMap, Finding, Resource, Severity, hex};

use crate::card::{self, AtWidth, Card, Draft, Kind, Line, Safety};
use crate::source::Role;
use crate::tree::{Leaf, Tree};
use crate::{Catalog, id, signature, summary, tokens};

use crate::catalog::ItemRef;

/// All ids of one catalog.
#[derive(Debug, Default)]
pub struct Directory {
    pub tools: Section,
    pub resources: Section,
    pub prompts: Section,
    pub findings: Vec<Finding>,
    by_item: FastMap<ItemRef, usize>,
}

/// Everything of one kind.
#[derive(Debug, Default)]
pub struct Section {
    entries: Vec<Entry>,
    by_id: HashMap<String, usize>,
    tree: Tree,
}

/// One item with an id.
#[derive(Debug)]
pub struct Entry {
    pub id: String,
    pub namespace: String,
    /// The name within the namespace, as in the id.
    pub name: String,
    pub item: ItemRef,
    pub card: Card,
    /// The rendered card.
    line: OnceLock<String>,
    /// The rendered card with the whole call signature; `None` where not all of it fits.
    line_with_whole_signature: OnceLock<Option<String>>,
}

impl Directory {
    pub fn build(catalog: &Catalog) -> Directory {
        let mut findings = Vec::new();
        let drafts = tools(catalog, &mut findings);
        let tools = Section::build(drafts, &mut findings);
        let (mut resources, mut prompts) = (Vec::new(), Vec::new());
        for (source, own) in catalog.sources().iter().enumerate() {
            for (at, resource) in own.listing.resources.iter().enumerate() {
                let derived = id::of_resource(resource);
                let words = resource.description.as_deref().or(resource.title.as_deref());
                let item = ItemRef::Resource { source, at };
                resources.push(EntryDraft {
                    tags: vec!["read-only".to_owned()],
                    ..EntryDraft::new(&derived, item, &resource.name, words)
                });
            }
            for (at, template) in own.listing.templates.iter().enumerate() {
                let derived = id::of_resource(&Resource {
                    uri: template.uri_template.clone(),
                    name: template.name.clone(),
                    title: template.title.clone(),
                    description: template.description.clone(),
                    media_type: template.media_type.clone(),
                    raw: template.raw.clone(),
                });
                let words = template.description.as_deref().or(template.title.as_deref());
                let item = ItemRef::Template { source, at };
                resources.push(EntryDraft {
                    tags: vec!["read-only".to_owned(), "template".to_owned()],
                    has_schema: true,
                    ..EntryDraft::new(&derived, item, &template.name, words)
                });
            }
            for (at, prompt) in own.listing.prompts.iter().enumerate() {
                let qualified = id::qualify(&own.label, &prompt.name);
                let derived = id::of_prompt(&qualified, prompt);
                report(&derived, &own.label, &prompt.name, &mut findings);
                let words = prompt.description.as_deref().or(prompt.title.as_deref());
                let item = ItemRef::Prompt { source, at };
                prompts.push(EntryDraft {
                    has_schema: !prompt.arguments.is_empty(),
                    ..EntryDraft::new(&derived, item, &prompt.name, words)
                });
            }
        }
        let resources = Section::build(resources, &mut findings);
        let prompts = Section::build(prompts, &mut findings);
        let mut by_item = FastMap::default();
        for section in [&tools, &resources, &prompts] {
            by_item.extend(section.entries().iter().enumerate().map(|(at, e)| (e.item, at)));
        }
        Directory { tools, resources, prompts, findings, by_item }
    }

    /// The position of an item's entry in the section of its kind; `None` for items
    /// without an id, such as gatelet's own functions.
    pub fn position(&self, item: ItemRef) -> Option<usize> {
        self.by_item.get(&item).copied()
    }

    /// The hash that an operator pins: over ids, names, descriptions and tags of tools.
    pub fn hash(&self, catalog: &Catalog) -> String {
        let mut lines: Vec<(String, String)> = Vec::new();
        for entry in self.tools.entries() {
            let ItemRef::Tool(slot) = entry.item else { continue };
            let description = catalog.tool(slot).description.as_deref().unwrap_or_default();
            lines.push((
                entry.id.clone(),
                pin_line(
                    &entry.id,
                    entry.card.name(),
                    description,
                    &entry.namespace,
                    entry.card.tags(),
                ),
            ));
        }
        pin_hash(lines)
    }
}

/// One line of the text that [`pin_hash`] hashes.
pub fn pin_line(
    id: &str,
    name: &str,
    description: &str,
    namespace: &str,
    tags: &[String],
) -> String {
    let mut tags = tags.to_vec();
    tags.sort_unstable();
    format!("{id}|{name}|{description}|{namespace}|{}", tags.join(","))
}

/// The hash over lines, given as id and line, in the order of their ids.
pub fn pin_hash(mut lines: Vec<(String, String)>) -> String {
    lines.sort();
    let text: Vec<String> = lines.into_iter().map(|(_, line)| line).collect();
    let digest = Sha256::digest(text.join("\n").as_bytes());
    hex::encode(&digest)
}

impl Section {
    fn build(drafts: Vec<EntryDraft>, findings: &mut Vec<Finding>) -> Section {
        let ids = id::disambiguate(drafts.iter().map(|draft| draft.id.as_str()));
        for (draft, id) in drafts.iter().zip(&ids) {
            if draft.id != *id {
                let message = format!("CatalogError: `{}` is taken; this one is `{id}`", draft.id);
                let subject = draft.name.as_str();
                findings.push(Finding::new(Severity::Error, "duplicate-id", subject, message));
            }
        }
        let entries: Vec<Entry> =
            drafts.into_iter().zip(ids).map(|(draft, id)| draft.into_entry(id)).collect();
        let leaf = |entry: &'_ Entry| (entry.namespace.clone(), entry.name.clone());
        let names: Vec<(String, String)> = entries.iter().map(leaf).collect();
        let leaves: Vec<Leaf<'_>> =
            names.iter().map(|(namespace, name)| Leaf { namespace, name }).collect();
        let by_id = entries.iter().enumerate().map(|(at, entry)| (entry.id.clone(), at)).collect();
        Section { tree: Tree::build(&leaves), by_id, entries }
    }

    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    pub fn get(&self, id: &str) -> Option<usize> {
        self.by_id.get(id).copied()
    }
}

impl Entry {
    /// The rendered card.
    pub fn line(&self) -> &str {
        self.line.get_or_init(|| Line::text(&self.card, None).into_string())
    }

    /// The rendered card with a call signature. Where not all of that fits, the arguments
    /// stay that the query's `stems` name.
    pub fn line_with_signature(&self, catalog: &Catalog, stems: &[String]) -> String {
        let whole = self.line_with_whole_signature.get_or_init(|| {
            let Some(signature) = self.signature(catalog, usize::MAX, &[]) else {
                return Some(self.line().to_owned());
            };
            let line = format!("{}\n  {signature}", self.line());
            tokens::fits(&line, card::CAP).then_some(line)
        });
        whole.clone().unwrap_or_else(|| {
            let signature = |width| self.signature(catalog, width, stems).unwrap_or_default();
            Line::text(&self.card, Some(&signature)).into_string()
        })
    }

    /// The card as JSON, with a call signature and the score of the hit.
    pub fn json_with_signature(&self, catalog: &Catalog, stems: &[String], score: f64) -> String {
        let card = self.card.clone().scored(Some(score));
        let signature = |width| self.signature(catalog, width, stems).unwrap_or_default();
        let takes_some = self.signature(catalog, 0, &[]).is_some();
        let signature: Option<AtWidth<'_>> = if takes_some { Some(&signature) } else { None };
        Line::json_with_signature(&card, signature).into_string()
    }

    /// The arguments in parentheses, in about `width` characters; `None` where none are
    /// declared.
    fn signature(&self, catalog: &Catalog, width: usize, stems: &[String]) -> Option<String> {
        match self.item {
            ItemRef::Tool(slot) => {
                let contract = catalog.contract(slot);
                // The card already has the name.
                (!contract.parameters.is_empty())
                    .then(|| signature::for_query("", contract, width, stems))
            }
            ItemRef::Prompt { source, at } => {
                let prompt = &catalog.sources()[source].listing.prompts[at];
                (!prompt.arguments.is_empty()).then(|| signature::of_prompt(prompt, width))
            }
            ItemRef::Template { source, at } => {
                let template = &catalog.sources()[source].listing.templates[at];
                Some(summary::cut(&format!("(uri: {})", template.uri_template), width))
            }
            ItemRef::Resource { .. } | ItemRef::Skill { .. } => None,
        }
    }
}

/// An item before it has an entry with a unique id.
struct EntryDraft {
    id: String,
    namespace: String,
    short: String,
    name: String,
    description: String,
    tags: Vec<String>,
    has_schema: bool,
    side_effects: bool,
    item: ItemRef,
}

impl EntryDraft {
    fn new(derived: &id::DerivedId, item: ItemRef, name: &str, words: Option<&str>) -> EntryDraft {
        EntryDraft {
            id: derived.id.to_string(),
            namespace: derived.id.body.namespace().to_owned(),
            short: derived.id.body.name().to_owned(),
            name: name.to_owned(),
            description: words.unwrap_or(name).to_owned(),
            tags: Vec::new(),
            has_schema: false,
            side_effects: false,
            item,
        }
    }

    fn into_entry(self, id: String) -> Entry {
        let kind = match self.item {
            ItemRef::Tool(_) => Kind::Tool,
            ItemRef::Resource { .. } | ItemRef::Template { .. } => Kind::Resource,
            ItemRef::Prompt { .. } => Kind::Prompt,
            ItemRef::Skill { .. } => Kind::Skill,
        };
        let own = match kind {
            Kind::Resource => vec!["mcp", "resource"],
            Kind::Prompt => vec!["mcp", "prompt"],
            Kind::Tool | Kind::Agent | Kind::Skill | Kind::Internal | Kind::Flow => vec!["mcp"],
        };
        let mut tags: Vec<String> = own.into_iter().map(str::to_owned).collect();
        tags.extend(self.tags);
        let card = Card::truncated(Draft {
            id: id.clone(),
            name: self.name,
            description: self.description,
            tags,
            kind,
            namespace: self.namespace.clone(),
            has_schema: self.has_schema,
            cost_hint: 0.0,
            side_effects: self.side_effects,
            safety: Safety::Unknown,
            score: None,
        });
        Entry {
            id,
            namespace: self.namespace,
            name: self.short,
            item: self.item,
            card,
            line: OnceLock::new(),
            line_with_whole_signature: OnceLock::new(),
        }
    }
}

fn tools(catalog: &Catalog, findings: &mut Vec<Finding>) -> Vec<EntryDraft> {
    let upstreams = catalog.slots().filter(|slot| catalog.source(*slot).role != Role::Builtin);
    upstreams
        .map(|slot| {
            let (tool, label) = (catalog.tool(slot), &catalog.source(slot).label);
            let qualified = id::qualify(label, &tool.name);
            let derived = id::of_tool(&qualified, tool);
            report(&derived, label, &tool.name, findings);
            let words = tool.description.as_deref().or(tool.title.as_deref());
            let mut tags = Vec::new();
            let hint = |hint: Option<bool>, tag: &str| (hint == Some(true)).then(|| tag.to_owned());
            tags.extend(hint(tool.annotations.read_only, "read-only"));
            tags.extend(hint(tool.annotations.destructive, "destructive"));
            EntryDraft {
                tags,
                has_schema: tool.input_schema.as_str() != "{}",
                side_effects: tool.annotations.read_only != Some(true),
                ..EntryDraft::new(&derived, ItemRef::Tool(slot), &qualified, words)
            }
        })
        .collect()
}

fn report(derived: &id::DerivedId, label: &str, name: &str, findings: &mut Vec<Finding>) {
    if let Some(because) = &derived.because {
        let message = format!("has the id `{}` here: {because}", derived.id);
        let subject = format!("{label}/{name}");
        findings.push(Finding::new(Severity::Info, "id-derived", subject, message));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};
    use tool::{Json, Listing, Tool};

    use super::*;
    use crate::Source;

    fn read(value: Value) -> Tool {
        Tool::parse(Json::from(value)).unwrap()
    }

    fn directory(label: &str, tools: Vec<Tool>) -> (Catalog, Directory) {
        let listing = Listing { tools, ..Listing::default() };
        let (catalog, _) = Catalog::build(vec![Source::new(label, Arc::new(listing))]);
        let directory = Directory::build(&catalog);
        (catalog, directory)
    }

    #[test]
    fn tools_have_the_ids_that_their_upstreams_label_gives_them() {
        let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
        let tools = vec![
            read(json!({"name": "read_file", "description": "Read.", "inputSchema": schema})),
            read(json!({"name": "odd name!"})),
        ];
        let (catalog, directory) = directory("demo", tools);
        let ids: Vec<&str> = directory.tools.entries().iter().map(|e| e.id.as_str()).collect();
        assert!(ids[0].starts_with("demo:read_file#"), "{ids:?}");
        assert!(ids[1].starts_with("demo:odd_name_#"), "{ids:?}");
        assert_eq!(directory.findings.len(), 1);
        let first = &directory.tools.entries()[0];
        let signed = format!("{} Read.\n  (path?: string)", first.id);
        assert_eq!(first.line_with_signature(&catalog, &[]), signed);
    }

    #[test]
    fn the_arguments_that_a_query_names_stay_on_a_card() {
        let text = json!({"type": "string", "description": "What it is, at length."});
        let filler = (0..40).map(|n| (format!("field_{n}"), text.clone()));
        let mut properties: serde_json::Map<String, Value> = filler.collect();
        properties.insert("due_date".to_owned(), text.clone());
        properties.insert("title".to_owned(), text);
        let schema = json!({"properties": properties, "required": ["title"]});
        let words = "Creates an issue in one of the many trackers that there are. ".repeat(6);
        let tool = json!({"name": "create", "description": words, "inputSchema": schema});
        let arguments: Vec<Value> =
            (0..40).map(|n| json!({"name": format!("argument_{n}"), "required": n == 0})).collect();
        let prompt = json!({"name": "ask", "description": words, "arguments": arguments});
        let listing = Listing {
            tools: vec![read(tool)],
            prompts: vec![tool::Prompt::parse(prompt.into()).unwrap()],
            ..Listing::default()
        };
        let catalog = Catalog::build(vec![Source::new("up", Arc::new(listing))]).0;
        let directory = Directory::build(&catalog);
        let stems = crate::index::terms("an issue with a due date");
        let create = &directory.tools.entries()[0];
        for line in [
            create.line_with_signature(&catalog, &stems),
            create.json_with_signature(&catalog, &stems, 1.0),
        ] {
            assert!(line.contains("(title: string, ") && line.contains("due_date?"), "{line}");
            assert!(line.contains("Creates an issue") && line.contains(", …)"), "{line}");
            assert!(tokens::fits(&line, card::CAP), "{line}");
        }
        // What was asked before does not stay for who asks next.
        assert!(!create.line_with_signature(&catalog, &[]).contains("due_date"));
        let ask = directory.prompts.entries()[0].line_with_signature(&catalog, &stems);
        assert!(ask.contains("(argument_0: string, ") && ask.ends_with(", …)"), "{ask}");
        assert!(tokens::fits(&ask, card::CAP), "{ask}");
    }

    #[test]
    fn two_tools_with_one_id_both_stay_and_it_is_reported() {
        let version = json!({"version": "1"});
        let tools = vec![
            read(json!({"name": "demo.a", "_meta": version})),
            read(json!({"name": "a", "_meta": version})),
            read(json!({"name": "b"})),
        ];
        let (_, directory) = directory("demo", tools);
        let ids: Vec<&str> = directory.tools.entries().iter().map(|e| e.id.as_str()).collect();
        assert_eq!(&ids[..2], ["demo:a@1", "demo:a@1~2"]);
        assert_eq!(directory.findings[0].code, "duplicate-id");
        assert_eq!(directory.tools.get("demo:a@1~2"), Some(1));
    }

    #[test]
    fn a_pin_is_the_hash_of_the_vectors() {
        let text = include_str!("../tests/vectors/contextweaver_catalog_hash.json");
        let vectors: Value = serde_json::from_str(text).unwrap();
        for case in vectors["cases"].as_array().unwrap() {
            let lines = case["tools"].as_array().unwrap().iter().map(|raw| {
                let tool = read(raw.clone());
                let id = id::of_tool(&tool.name, &tool).id;
                let description = tool.description.clone().unwrap_or_default();
                let tags = vec!["mcp".to_owned()];
                let line =
                    pin_line(&id.to_string(), &tool.name, &description, id.body.namespace(), &tags);
                (id.to_string(), line)
            });
            assert_eq!(pin_hash(lines.collect()), case["catalog_hash"]);
            assert_eq!(pin_hash(Vec::new()), case["hash_of_empty"]);
        }
    }
}
