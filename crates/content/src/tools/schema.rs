//! The JSON Schemas of the tools' arguments and results.
//!
//! The contract ignores unknown arguments, so the schemas do not forbid them. Every
//! optional argument may be null.

use serde_json::{Map, Value, json};

use super::form::{QueryParser, ResultShape};
use crate::arguments::documents::ORDER_BY;
use crate::config::Limits;
use crate::fields::{DOCUMENT_FIELDS, FieldFormat};
use crate::models::MODELS;

const OPERATORS: [&str; 13] =
    ["=", "!=", ">", ">=", "<", "<=", "in", "not_in", "like", "like-l", "like-r", "null", "!null"];

pub(super) fn search(limits: &Limits) -> Value {
    let mut properties = json!({
        "parent": {"type": ["integer", "null"], "minimum": 0,
            "description": "only documents below this one; 0 is the whole site"},
        "depth": {"type": ["integer", "null"], "minimum": 1, "maximum": limits.max_depth,
            "description": "how many levels below parent; all that are allowed when absent"},
        "published": {"type": ["boolean", "null"]},
        "deleted": {"type": ["boolean", "null"], "default": false,
            "description": "true lists the deleted documents instead of the others"},
        "template": {"type": ["integer", "null"], "minimum": 0},
        "hidemenu": {"type": ["boolean", "null"], "description": "hidden from menus"},
        "with_tvs": with_tvs(),
        "tv_filters": {
            "type": ["array", "null"],
            "description": "conditions on template variables, all of which must hold; at most 20",
            "items": tv_filter(),
        },
        "tv_order": {
            "type": ["array", "null"],
            "description": "order by template variables, before order_by",
            "items": {
                "type": "object",
                "required": ["tv"],
                "properties": {
                    "tv": {"type": "string", "pattern": "^[A-Za-z0-9_-]+$"},
                    "dir": direction(),
                    "cast": {"type": ["string", "null"], "pattern": one_of(&["UNSIGNED", "SIGNED"]),
                        "description": "compare as numbers"},
                    "use_default": {"type": ["boolean", "null"]},
                },
            },
        },
        "tags_data": {
            "type": ["object", "null"],
            "description": "documents that carry at least one of the tags",
            "required": ["tv_id", "tags"],
            "properties": {
                "tv_id": {"type": "integer", "minimum": 1},
                "tags": {"type": "array", "minItems": 1,
                    "items": {"type": "string", "pattern": "^[^:;]+$"}},
            },
        },
        "order_by": {"type": ["string", "null"], "enum": nullable(&ORDER_BY)},
        "order_dir": direction(),
        "order_by_date": {"type": ["string", "null"], "pattern": one_of(&["asc", "desc"]),
            "description": "by publication date, or else by date of creation"},
    });
    add_page(&mut properties, limits.content_items(), limits.content_offset);
    object(&properties, &["limit"])
}

pub(super) fn get(_: &Limits) -> Value {
    object(&json!({"id": id(), "with_tvs": with_tvs()}), &["id"])
}

pub(super) fn root_tree(limits: &Limits) -> Value {
    let mut properties = json!({"depth": depth(limits), "with_tvs": with_tvs()});
    add_page(&mut properties, limits.content_items(), limits.content_offset);
    object(&properties, &["limit"])
}

pub(super) fn by_id_and_depth(limits: &Limits) -> Value {
    let mut properties = json!({"id": id(), "depth": depth(limits), "with_tvs": with_tvs()});
    add_page(&mut properties, limits.content_items(), limits.content_offset);
    object(&properties, &["id", "limit"])
}

pub(super) fn by_id(limits: &Limits) -> Value {
    let mut properties = json!({"id": id(), "with_tvs": with_tvs()});
    add_page(&mut properties, limits.content_items(), limits.content_offset);
    object(&properties, &["id", "limit"])
}

pub(super) fn by_id_and_range(limits: &Limits) -> Value {
    let mut properties = json!({
        "id": id(),
        "from": {"type": "integer", "minimum": 0, "description": "lowest menu index"},
        "to": {"type": ["integer", "null"], "minimum": 0,
            "description": "highest menu index, not below from; open when absent"},
        "with_tvs": with_tvs(),
    });
    add_page(&mut properties, limits.content_items(), limits.content_offset);
    object(&properties, &["id", "from", "limit"])
}

pub(super) fn model_list(limits: &Limits) -> Value {
    let mut properties = json!({
        "model": model(),
        "filters": {
            "type": ["object", "null"],
            "properties": {
                "where": {
                    "type": ["array", "null"],
                    "description": "conditions, all of which must hold",
                    "items": {
                        "type": "object",
                        "required": ["field", "op"],
                        "properties": {
                            "field": {"type": "string", "description": fields()},
                            "op": operator(),
                            "value": value(),
                        },
                    },
                },
            },
        },
        "order_by": {"type": ["string", "null"], "description": "a field of the model"},
        "order_dir": direction(),
    });
    add_page(&mut properties, limits.max_result_items, limits.model_offset);
    object(&properties, &["model", "limit"])
}

pub(super) fn model_get(_: &Limits) -> Value {
    object(&json!({"model": model(), "id": id()}), &["model", "id"])
}

/// The schema of a tool's result, by its shape and by the kind of its items.
pub(super) fn output(shape: ResultShape, parser: &QueryParser) -> Value {
    let item = match parser {
        QueryParser::Documents(_) => document(),
        QueryParser::Records(_) => json!({
            "type": "object",
            "properties": {"id": {"type": "integer"}},
            "required": ["id"],
        }),
    };
    let mut meta = json!({"toolsetVersion": {"type": "string"}});
    let mut required = vec!["toolsetVersion"];
    if shape == ResultShape::Items {
        for name in ["limit", "offset", "count"] {
            meta[name] = json!({"type": "integer"});
            required.push(name);
        }
    }
    if matches!(parser, QueryParser::Records(_)) {
        meta["model"] = json!({"type": "string"});
        required.push("model");
    }
    let meta = json!({"type": "object", "properties": meta, "required": required});
    match shape {
        ResultShape::Items => object(
            &json!({"items": {"type": "array", "items": item}, "meta": meta}),
            &["items", "meta"],
        ),
        ResultShape::Item => {
            let item = json!({"anyOf": [item, {"type": "null"}]});
            object(&json!({"item": item, "meta": meta}), &["item", "meta"])
        }
    }
}

fn document() -> Value {
    let mut properties = Map::new();
    for field in &DOCUMENT_FIELDS {
        let kind = match field.format {
            FieldFormat::Number => json!({"type": "integer"}),
            FieldFormat::Flag => json!({"type": "boolean"}),
            FieldFormat::Text => json!({"type": "string"}),
            FieldFormat::NullableText => json!({"type": ["string", "null"]}),
        };
        properties.insert(field.name.to_owned(), kind);
    }
    let required: Vec<&str> = DOCUMENT_FIELDS.iter().map(|field| field.name).collect();
    properties.insert(
        "tvs".to_owned(),
        json!({"type": "object", "additionalProperties": {"type": ["string", "null"]}}),
    );
    json!({"type": "object", "properties": properties, "required": required})
}

fn object(properties: &Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required})
}

fn add_page(properties: &mut Value, max_limit: i64, max_offset: i64) {
    properties["limit"] = json!({"type": "integer", "minimum": 1, "maximum": max_limit,
        "description": "how many to return"});
    properties["offset"] = json!({"type": ["integer", "null"], "minimum": 0,
        "maximum": max_offset, "default": 0, "description": "how many to skip"});
}

fn id() -> Value {
    json!({"type": "integer", "minimum": 1})
}

fn depth(limits: &Limits) -> Value {
    json!({"type": ["integer", "null"], "minimum": 1, "maximum": limits.max_depth})
}

fn with_tvs() -> Value {
    json!({
        "type": ["array", "null"],
        "description": "template variables to return; `name:d` gives the default where a \
                        document has no value",
        "items": {"type": "string", "pattern": "^\\s*([A-Za-z0-9_-]+(:d)?)?\\s*$"},
    })
}

fn tv_filter() -> Value {
    json!({
        "type": "object",
        "required": ["tv", "op"],
        "properties": {
            "tv": {"type": "string", "pattern": "^[A-Za-z0-9_-]+$"},
            "op": operator(),
            "value": value(),
            "cast": {"type": ["string", "null"],
                "pattern":
                    one_of(&["UNSIGNED", "SIGNED", "DECIMAL\\([0-9]{1,2},[0-9]{1,2}\\)"]),
                "description": "compare as numbers; text is compared otherwise"},
            "use_default": {"type": ["boolean", "null"],
                "description": "take the variable's default where a document has no value"},
        },
    })
}

fn operator() -> Value {
    json!({"type": "string", "enum": OPERATORS,
        "description": "like: contains, like-l: ends with, like-r: starts with"})
}

fn value() -> Value {
    json!({"description": "text or a number; a list for in and not_in; nothing for null and !null"})
}

fn direction() -> Value {
    json!({"type": ["string", "null"], "pattern": one_of(&["asc", "desc"]), "default": "asc"})
}

/// A regular expression for one of the words, ignoring case. Most validators do not know
/// flags inside an expression, so every letter is given in both cases.
fn one_of(words: &[&str]) -> String {
    let letter = |c: char| match c.is_ascii_alphabetic() {
        true => format!("[{}{}]", c.to_ascii_uppercase(), c.to_ascii_lowercase()),
        false => c.to_string(),
    };
    let words: Vec<String> = words.iter().map(|word| word.chars().map(letter).collect()).collect();
    format!("^({})$", words.join("|"))
}

fn model() -> Value {
    let names: Vec<&str> = MODELS.iter().map(|model| model.name).collect();
    json!({"type": "string", "description": format!("one of {}", names.join(", "))})
}

fn fields() -> String {
    let one = |model: &crate::models::Model| format!("{}: {}", model.name, model.fields.join(" "));
    MODELS.iter().map(one).collect::<Vec<_>>().join("; ")
}

fn nullable(names: &[&str]) -> Vec<Value> {
    names.iter().map(|name| json!(name)).chain([Value::Null]).collect()
}
