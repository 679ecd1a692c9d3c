//! The search index over everything that the upstreams offer.

use serde_json::{Map, Value, json};
use tool::{Json, Prompt, Tool};

use super::{Catalog, Finder, ItemRef, Slot};
use crate::index::{self, Document, Index, Kind};
use crate::summary;

impl Catalog {
    /// The index, built when it is first needed.
    pub(super) fn finder(&self) -> &Finder {
        self.finder.get_or_init(|| Finder::new(self))
    }
}

impl Finder {
    fn new(catalog: &Catalog) -> Finder {
        let mut items: Vec<ItemRef> = catalog.slots().map(ItemRef::Tool).collect();
        for (source, own) in catalog.sources().iter().enumerate() {
            let listing = &own.listing;
            items.extend((0..listing.resources.len()).map(|at| ItemRef::Resource { source, at }));
            items.extend((0..listing.templates.len()).map(|at| ItemRef::Template { source, at }));
            items.extend((0..listing.prompts.len()).map(|at| ItemRef::Prompt { source, at }));
            items.extend((0..own.skills.len()).map(|at| ItemRef::Skill { source, at }));
        }
        let homes = homes(catalog);
        let documents: Vec<Document> =
            items.iter().map(|item| document(catalog, &homes, *item)).collect();
        let index = Index::build(&documents, &index::Config { meaning: catalog.meaning });
        Finder { index, items }
    }
}

/// By source: the path of its first namespace, or its label when it has none.
fn homes(catalog: &Catalog) -> Vec<&str> {
    let mut homes: Vec<&str> =
        catalog.sources().iter().map(|source| source.label.as_str()).collect();
    for namespace in catalog.namespaces().iter().rev() {
        if let Some(source) = namespace.source {
            homes[source] = &namespace.path;
        }
    }
    homes
}

fn document(catalog: &Catalog, homes: &[&str], item: ItemRef) -> Document {
    match item {
        ItemRef::Tool(slot) => function_document(catalog, slot),
        ItemRef::Resource { source, at } => {
            let resource = &catalog.sources()[source].listing.resources[at];
            let home = homes[source];
            Document {
                id: format!("resource:{home}/{}", resource.uri),
                kind: Kind::Resource,
                name: resource.name.clone(),
                title: resource.title.clone(),
                description: resource.description.as_ref().unwrap_or(&resource.uri).clone(),
                ..blank(catalog, source, home)
            }
        }
        ItemRef::Template { source, at } => {
            let template = &catalog.sources()[source].listing.templates[at];
            let home = homes[source];
            let words = template.description.as_ref().unwrap_or(&template.uri_template);
            Document {
                id: format!("template:{home}/{}", template.uri_template),
                kind: Kind::Resource,
                name: template.name.clone(),
                title: template.title.clone(),
                description: words.clone(),
                ..blank(catalog, source, home)
            }
        }
        ItemRef::Prompt { source, at } => {
            let prompt = &catalog.sources()[source].listing.prompts[at];
            let home = homes[source];
            Document {
                id: format!("prompt:{home}/{}", prompt.name),
                kind: Kind::Prompt,
                name: prompt.name.clone(),
                title: prompt.title.clone(),
                description: prompt.description.clone().unwrap_or_default(),
                input_schema: Some(arguments(prompt)),
                ..blank(catalog, source, home)
            }
        }
        ItemRef::Skill { source, at } => {
            let skill = &catalog.sources()[source].skills[at];
            Document {
                id: format!("skill:{}/{}", skill.namespace, skill.name),
                kind: Kind::Skill,
                server: skill.namespace.clone(),
                server_description: String::new(),
                name: skill.name.clone(),
                title: None,
                description: skill.description.clone(),
                input_schema: None,
            }
        }
    }
}

fn function_document(catalog: &Catalog, slot: Slot) -> Document {
    let (tool, function) = (catalog.tool(slot), catalog.function(slot));
    let path = catalog.path(slot);
    Document {
        id: format!("{path}/{}", function.name),
        name: function.name.clone(),
        title: tool.title.clone(),
        description: searchable_description(tool),
        input_schema: Some(tool.input_schema.clone()),
        ..blank(catalog, function.source, path)
    }
}

/// The most tags of a tool that are searched, and the most characters of each.
const TAGS: usize = 8;
const TAG: usize = 40;

/// The description, with the category and tags that the author gave the tool.
fn searchable_description(tool: &Tool) -> String {
    let mut words = tool.description.clone().unwrap_or_default();
    // Parse only where the text is there: few tools have it.
    let meta = Some(&tool.raw).filter(|raw| raw.as_str().contains("gatelet/tool"));
    let about = meta.and_then(|raw| raw.member("_meta")?.member("gatelet/tool"));
    let Some(about) = about else { return words };
    let category = about.member_as::<String>("category").filter(|category| category != "general");
    let tags = about.member_as::<Vec<String>>("tags").unwrap_or_default();
    for filed in category.into_iter().chain(tags).take(TAGS) {
        words.push('\n');
        words.push_str(&summary::cut(&filed, TAG));
    }
    words
}

/// A document with the fields that all documents of a source share.
fn blank(catalog: &Catalog, source: usize, server: &str) -> Document {
    let source = &catalog.sources()[source];
    let words = source.description.as_ref().or(source.listing.server.instructions.as_ref());
    Document {
        id: String::new(),
        kind: Kind::Tool,
        server: server.to_owned(),
        server_description: words.cloned().unwrap_or_default(),
        name: String::new(),
        title: None,
        description: String::new(),
        input_schema: None,
    }
}

/// The arguments of a prompt as a JSON Schema.
fn arguments(prompt: &Prompt) -> Json {
    let property = |argument: &tool::listing::PromptArgument| {
        let words = argument.description.as_deref().unwrap_or_default();
        (argument.name.clone(), json!({"type": "string", "description": words}))
    };
    let properties: Map<String, Value> = prompt.arguments.iter().map(property).collect();
    json!({"type": "object", "properties": properties}).into()
}
