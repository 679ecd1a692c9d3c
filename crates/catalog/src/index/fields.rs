//! The searched fields of a document and their weights.

use serde_json::Value;

use super::document::Document;

/// The fields of one document, in the order of [`WEIGHTS`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields {
    pub(crate) text: [String; 6],
}

pub(crate) const NAME: usize = 0;
pub(crate) const DESCRIPTION: usize = 1;
pub(crate) const SERVER: usize = 2;
pub(crate) const PARAMETERS: usize = 3;
/// The descriptions of the parameters.
pub(crate) const EXPLANATIONS: usize = 4;
/// The names of other tools of the same server, and the server's description of itself.
/// Counted as a set, and never for document frequency.
pub(crate) const SURROUNDINGS: usize = 5;

/// Weight and length normalisation (`b`) of each field.
pub(crate) const WEIGHTS: [(f32, f32); 6] =
    [(3.0, 0.2), (1.0, 0.8), (1.5, 0.6), (0.4, 0.5), (0.5, 0.6), (0.5, 0.5)];

/// The most bytes of one field that are used. A longer description is keyword stuffing or
/// a manual.
const LONGEST: usize = 6_000;

impl Fields {
    /// Collects all fields but the surroundings, which need the other documents.
    pub(crate) fn new(document: &Document) -> Fields {
        let mut fields = Fields::default();
        fields.text[NAME] = match &document.title {
            Some(title) => format!("{} {}", document.name, bounded(title)),
            None => document.name.clone(),
        };
        fields.text[DESCRIPTION] = bounded(&document.description).to_owned();
        fields.text[SERVER] = document.server.clone();
        if let Some(schema) = &document.input_schema
            && let Ok(schema) = schema.to_value()
        {
            let [.., names, texts, _] = &mut fields.text;
            collect(&schema, 2, names, texts);
        }
        fields
    }
}

/// The start of a text, cut at a character boundary.
pub(crate) fn bounded(text: &str) -> &str {
    &text[..text.floor_char_boundary(LONGEST)]
}

/// Collects parameter names and their descriptions, `depth` levels deep.
fn collect(schema: &Value, depth: usize, names: &mut String, texts: &mut String) {
    if depth == 0 || LONGEST < names.len() || LONGEST < texts.len() {
        return;
    }
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    for (name, property) in properties {
        push(names, name);
        if let Some(text) = property.get("description").and_then(Value::as_str) {
            push(texts, bounded(text));
        }
        let listed = |value: &Value| value.get("enum").and_then(Value::as_array).cloned();
        for value in listed(property).iter().flatten().take(50) {
            if let Some(text) = value.as_str() {
                push(texts, bounded(text));
            }
        }
        collect(property, depth - 1, names, texts);
        if let Some(items) = property.get("items") {
            collect(items, depth - 1, names, texts);
        }
    }
}

fn push(text: &mut String, more: &str) {
    if !text.is_empty() {
        text.push(' ');
    }
    text.push_str(more);
}
