//! The definitions of the fourteen tools: name, description, schemas and parser.
//!
//! [`TOOLS`] is the only list of them.

mod form;
mod schema;

use serde_json::{Value, json};

use crate::arguments::{documents, records};
use crate::config::Limits;

pub(crate) use form::{QueryParser, ResultShape};

/// One tool of the contract.
pub(crate) struct Definition {
    pub(crate) name: &'static str,
    title: &'static str,
    description: &'static str,
    pub(crate) result_shape: ResultShape,
    input_schema: fn(&Limits) -> Value,
    pub(crate) parser: QueryParser,
}

/// Every tool, in the order of the contract.
pub(crate) const TOOLS: &[Definition] = &[
    Definition {
        name: "evo.content.search",
        title: "Search documents",
        description: "Finds documents of the site. Filters are combined with AND: by place in the \
                      tree (parent and depth), state, template, template variables (TVs) and tags. \
                      Returns titles and settings of each document, and the TVs named in with_tvs; \
                      never the page text.",
        result_shape: ResultShape::Items,
        input_schema: schema::search,
        parser: QueryParser::Documents(documents::search),
    },
    Definition {
        name: "evo.content.get",
        title: "Get a document",
        description: "Returns one document by its id, or null when there is none.",
        result_shape: ResultShape::Item,
        input_schema: schema::get,
        parser: QueryParser::Documents(documents::get),
    },
    Definition {
        name: "evo.content.root_tree",
        title: "Site tree",
        description: "Lists the root documents and everything below them down to depth levels, as \
                      a flat list ordered by id; parent says where each one belongs.",
        result_shape: ResultShape::Items,
        input_schema: schema::root_tree,
        parser: QueryParser::Documents(documents::root_tree),
    },
    Definition {
        name: "evo.content.descendants",
        title: "Documents below",
        description: "Lists the documents below a document, down to depth levels (1: its children).",
        result_shape: ResultShape::Items,
        input_schema: schema::by_id_and_depth,
        parser: QueryParser::Documents(documents::descendants),
    },
    Definition {
        name: "evo.content.ancestors",
        title: "Documents above",
        description: "Lists the documents above a document, the root first; with depth only the \
                      nearest ones. Good for breadcrumbs.",
        result_shape: ResultShape::Items,
        input_schema: schema::by_id_and_depth,
        parser: QueryParser::Documents(documents::ancestors),
    },
    Definition {
        name: "evo.content.children",
        title: "Children",
        description: "Lists the documents directly below a document, in menu order.",
        result_shape: ResultShape::Items,
        input_schema: schema::by_id,
        parser: QueryParser::Documents(documents::children),
    },
    Definition {
        name: "evo.content.siblings",
        title: "Siblings",
        description: "Lists the other documents with the same parent, in menu order.",
        result_shape: ResultShape::Items,
        input_schema: schema::by_id,
        parser: QueryParser::Documents(documents::siblings),
    },
    Definition {
        name: "evo.content.neighbors",
        title: "Neighbors",
        description: "Lists the siblings whose menu index is exactly one lower or higher.",
        result_shape: ResultShape::Items,
        input_schema: schema::by_id,
        parser: QueryParser::Documents(documents::neighbors),
    },
    Definition {
        name: "evo.content.prev_siblings",
        title: "Siblings before",
        description: "Lists the siblings with a lower menu index, the nearest first.",
        result_shape: ResultShape::Items,
        input_schema: schema::by_id,
        parser: QueryParser::Documents(documents::prev_siblings),
    },
    Definition {
        name: "evo.content.next_siblings",
        title: "Siblings after",
        description: "Lists the siblings with a higher menu index, the nearest first.",
        result_shape: ResultShape::Items,
        input_schema: schema::by_id,
        parser: QueryParser::Documents(documents::next_siblings),
    },
    Definition {
        name: "evo.content.children_range",
        title: "Children in a range",
        description: "Lists the children of a document whose menu index is between from and to.",
        result_shape: ResultShape::Items,
        input_schema: schema::by_id_and_range,
        parser: QueryParser::Documents(documents::children_range),
    },
    Definition {
        name: "evo.content.siblings_range",
        title: "Siblings in a range",
        description: "Lists the siblings of a document whose menu index is between from and to.",
        result_shape: ResultShape::Items,
        input_schema: schema::by_id_and_range,
        parser: QueryParser::Documents(documents::siblings_range),
    },
    Definition {
        name: "evo.model.list",
        title: "List records",
        description: "Lists records of one of the listed models (templates, template variables, \
                      users, roles, …) by structured filters. Secrets are never returned.",
        result_shape: ResultShape::Items,
        input_schema: schema::model_list,
        parser: QueryParser::Records(records::list),
    },
    Definition {
        name: "evo.model.get",
        title: "Get a record",
        description: "Returns one record of a listed model by its id, or null when there is none.",
        result_shape: ResultShape::Item,
        input_schema: schema::model_get,
        parser: QueryParser::Records(records::get),
    },
];

/// A tool by its exact name.
pub(crate) fn find(name: &str) -> Option<&'static Definition> {
    TOOLS.iter().find(|tool| tool.name == name)
}

impl Definition {
    /// The definition as clients read it.
    pub(crate) fn json(&self, limits: &Limits) -> Value {
        json!({
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": (self.input_schema)(limits),
            "outputSchema": schema::output(self.result_shape, &self.parser),
            "annotations": {
                "title": self.title,
                "readOnlyHint": true,
                "destructiveHint": false,
                "idempotentHint": true,
                "openWorldHint": false,
            },
        })
    }
}

#[cfg(test)]
mod tests;
