//! Finds out which documents the reply to a search names; a model calls nothing else.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::json;
use tool::{Listing, Tool};

use crate::index::{Document, Kind, Meaning};
use crate::{Catalog, Priors, Source, reply, tokens};

/// The documents of a set as a catalog, so that replies are the same as gatelet's.
pub(super) struct Replies<'a> {
    documents: &'a [Document],
    catalog: Catalog,
    /// By source and tool: the position among the documents.
    places: Vec<Vec<usize>>,
}

/// The ids of the documents that a reply names, and its tokens.
pub(super) struct NamedDocuments<'a> {
    pub(super) ids: Vec<&'a str>,
    pub(super) tokens: usize,
}

/// The label for tools without a server.
const NO_SERVER: &str = "tools";

impl<'a> Replies<'a> {
    pub(super) fn new(documents: &'a [Document], meaning: Meaning) -> Replies<'a> {
        let mut by_server: Vec<(String, Vec<usize>)> = Vec::new();
        let mut at: HashMap<String, usize> = HashMap::new();
        let mut n_named: HashMap<(&str, &str), usize> = HashMap::new();
        for (place, document) in documents.iter().enumerate() {
            if document.kind != Kind::Tool {
                continue;
            }
            let server = match document.server.as_str() {
                "" => NO_SERVER,
                server => server,
            };
            // Some sets have several tools of one name on a server.
            let n_before = n_named.entry((server, document.name.as_str())).or_default();
            let label = match *n_before {
                0 => server.to_owned(),
                n => format!("{server}-{n}"),
            };
            *n_before += 1;
            let group = *at.entry(label.clone()).or_insert_with(|| {
                by_server.push((label, Vec::new()));
                by_server.len() - 1
            });
            by_server[group].1.push(place);
        }
        let (mut sources, mut places) = (Vec::new(), Vec::new());
        for (server, group) in by_server {
            let readable = group.into_iter().filter_map(|at| Some((at, tool(&documents[at])?)));
            let (own, tools): (Vec<usize>, Vec<Tool>) = readable.unzip();
            sources.push(Source::new(&server, Arc::new(Listing { tools, ..Listing::default() })));
            places.push(own);
        }
        let catalog = Catalog::build(sources).0.with_meaning(meaning);
        Replies { documents, catalog, places }
    }

    pub(super) fn search(&self, query: &str) -> NamedDocuments<'a> {
        let config = reply::Config::usual(reply::Spelling::Apart);
        let reply = reply::search(&self.catalog, query, &config, &Priors::new(), &|_| true);
        let id = |slot: &crate::Slot| {
            let function = self.catalog.function(*slot);
            let place = self.places[function.source][function.tool];
            self.documents[place].id.as_str()
        };
        let ids = reply.named.iter().map(id).collect();
        NamedDocuments { ids, tokens: tokens::count(&reply.text) }
    }
}

fn tool(document: &Document) -> Option<Tool> {
    let schema = document.input_schema.as_ref().and_then(|schema| schema.to_value().ok());
    let raw = json!({
        "name": document.name,
        "title": document.title,
        "description": document.description,
        "inputSchema": schema.unwrap_or_else(|| json!({})),
    });
    Tool::parse(raw.into()).ok()
}
