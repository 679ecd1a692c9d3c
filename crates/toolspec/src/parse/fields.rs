//! Parameters and fields: from tables, bullets and inline code.

use serde_json::Value;

use crate::block::{Block, Kind, Table};
use crate::document::{Field, Required, TableShape};
use crate::finding::Place;
use crate::markdown::{code_spans, plain};
use crate::section::normal;
use crate::types;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    Name,
    Type,
    Required,
    Default,
    Description,
    Example,
}

/// Recognises a column by its title.
pub(crate) fn column(title: &str) -> Option<Column> {
    Some(match normal(title).as_str() {
        "parameter name" | "parameter" | "name" | "field name" | "field" | "input" | "argument"
        | "param" | "key" => Column::Name,
        "type" | "data type" => Column::Type,
        "required" | "required?" | "optional" => Column::Required,
        "default" | "default value" => Column::Default,
        "description" | "contract" | "summary" | "behavior" | "behaviour" | "meaning" | "notes" => {
            Column::Description
        }
        "example value" | "example" | "examples" => Column::Example,
        _ => return None,
    })
}

/// The fields of a table, if it is a table of fields.
pub(super) fn of_table(table: &Table, block: &Block) -> Option<(Vec<Field>, TableShape)> {
    let columns: Vec<Option<Column>> = table.header.iter().map(|cell| column(cell)).collect();
    let has = |wanted: Column| columns.contains(&Some(wanted));
    let telling = has(Column::Type) || has(Column::Required) || has(Column::Default);
    if !has(Column::Name) || !(telling || has(Column::Description)) {
        return None;
    }
    let shape = TableShape {
        place: Place::line(block.lines.start + 1),
        end: block.lines.end + 1,
        columns: table.header.clone(),
    };
    let fields = table.rows.iter().filter_map(|(line, cells)| of_row(&columns, *line, cells));
    Some((fields.collect(), shape))
}

fn of_row(columns: &[Option<Column>], line: usize, cells: &[String]) -> Option<Field> {
    let cell = |wanted: Column| {
        let at = columns.iter().position(|column| *column == Some(wanted))?;
        cells.get(at).map(String::as_str)
    };
    let name = cell(Column::Name)?;
    let path = plain(name);
    // A parameter may well be called `none`; then it has a type.
    let named =
        name.starts_with('`') && cell(Column::Type).is_none_or(|text| !is_placeholder(text));
    if path.is_empty() || (is_placeholder(&path) && !named) {
        return None;
    }
    let type_text = cell(Column::Type).map(plain).filter(|text| !text.is_empty());
    let description = cell(Column::Description).unwrap_or("").to_owned();
    let default_cell = cell(Column::Default);
    let default = match default_cell {
        Some(text) => default_value(text),
        None => default_in_prose(&description),
    };
    let required = match (cell(Column::Required), default_cell) {
        (Some(text), _) => required(text),
        (None, Some(text)) if says_required(text) => Some(Required::Yes),
        (None, Some(_)) => Some(Required::No),
        (None, None) => None,
    };
    let schema = type_text.as_deref().map_or(Value::Null, |text| types::read(text).schema);
    let example = cell(Column::Example).map(plain).filter(|text| !is_placeholder(text));
    let place = Place::line(line + 1);
    Some(Field { path, type_text, schema, required, default, description, example, place })
}

/// Whether a cell stands for nothing.
pub(crate) fn is_placeholder(text: &str) -> bool {
    let text = plain(text).to_lowercase();
    matches!(
        text.as_str(),
        "" | "none" | "-" | "--" | "---" | "—" | "–" | "n/a" | "no parameters" | "(none)"
    )
}

/// Reads `Yes`, `**No**`, `Optional`, `Yes (if …)`.
pub(crate) fn required(text: &str) -> Option<Required> {
    let text = plain(text).to_lowercase();
    match text.as_str() {
        "yes" | "required" | "true" | "y" | "✓" | "✅" => Some(Required::Yes),
        "no" | "optional" | "false" | "n" | "✗" | "❌" => Some(Required::No),
        other if other.starts_with("yes") || other.starts_with("condition") => {
            Some(Required::Conditional)
        }
        other if other.starts_with("no ") => Some(Required::No),
        _ => None,
    }
}

fn says_required(default: &str) -> bool {
    let text = plain(default).to_lowercase();
    matches!(text.as_str(), "" | "-" | "--" | "—" | "–" | "required" | "(required)")
}

/// A default as JSON text.
fn default_value(text: &str) -> Option<String> {
    if says_required(text) {
        return None;
    }
    let text = plain(text);
    Some(json_text(&text))
}

/// JSON as it stands, Python's words translated, anything else as a string.
fn json_text(text: &str) -> String {
    let word = match text {
        "None" => Some("null"),
        "True" => Some("true"),
        "False" => Some("false"),
        _ => None,
    };
    if let Some(word) = word {
        return word.to_owned();
    }
    if serde_json::from_str::<Value>(text).is_ok() {
        return text.to_owned();
    }
    let inner = text.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')).unwrap_or(text);
    Value::from(inner).to_string()
}

/// `(default: x)` or `Default: x`.
fn default_in_prose(text: &str) -> Option<String> {
    let lower = text.to_lowercase();
    let at = lower.find("default: ").or_else(|| lower.find("defaults to "))?;
    // Lower case may have another length in other scripts.
    let rest = text.get(at..)?;
    let rest = rest.split_once(": ").or_else(|| rest.split_once(" to ")).map(|(_, rest)| rest)?;
    let first = match code_spans(rest).first() {
        Some(span) if rest.starts_with('`') => span.clone(),
        Some(_) | None => rest.split([')', '.', ',', ';']).next()?.trim().to_owned(),
    };
    (!first.is_empty()).then(|| json_text(&first))
}

/// Fields of a list: `` `n` (type, required): text ``, `` `n: type = v` ``,
/// nested bullets as members of the one above.
pub(super) fn of_bullets(blocks: &[Block]) -> Vec<Field> {
    let mut fields: Vec<Field> = Vec::new();
    let mut parents: Vec<(usize, String)> = Vec::new();
    for block in blocks {
        let Kind::Bullet { indent, text } = &block.kind else { continue };
        let Some(mut field) = of_item(text, Place::line(block.lines.start + 1)) else { continue };
        parents.retain(|(outer, _)| outer < indent);
        if let Some((_, parent)) = parents.last() {
            let joint =
                fields.iter().find(|known| known.path == *parent).map(|known| &known.schema);
            let of_items =
                joint.is_some_and(|schema| schema.get("type") == Some(&Value::from("array")));
            let separator = if of_items { "[]." } else { "." };
            field.path = format!("{parent}{separator}{}", field.path);
        }
        parents.push((*indent, field.path.clone()));
        fields.push(field);
    }
    fields
}

/// One bullet or inline item.
fn of_item(text: &str, place: Place) -> Option<Field> {
    let body = text.trim().trim_start_matches("**");
    let span = code_spans(body).into_iter().next().filter(|_| body.starts_with('`'))?;
    let after = body.splitn(3, '`').nth(2).unwrap_or("").trim_start_matches("**").trim();
    let (name, inline_type, default) = signature(&span);
    if !super::names::is_identifier(name.trim_end_matches("[]").trim_start_matches('$')) {
        return None;
    }
    let (inside, description) = parenthesis(after);
    let mut field = Field {
        path: name,
        type_text: inline_type,
        schema: Value::Null,
        required: None,
        default,
        description: description.to_owned(),
        example: None,
        place,
    };
    for word in inside.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        let lower = word.to_lowercase();
        if let Some(value) = lower.strip_prefix("default") {
            let value = word[word.len() - value.len()..].trim_start_matches([':', '=', ' ']);
            field.default = Some(json_text(plain(value).as_str()));
        } else if let Some(needed) = required(word) {
            field.required = Some(needed);
        } else if field.type_text.is_none() {
            field.type_text = Some(plain(word));
        }
    }
    if field.required.is_none() {
        field.required = Some(if field.default.is_some() { Required::No } else { Required::Yes });
    }
    if let Some(text) = &field.type_text {
        field.schema = types::read(text).schema;
    }
    Some(field)
}

/// `a: str = "x"` as name, type and default.
fn signature(span: &str) -> (String, Option<String>, Option<String>) {
    let (left, default) = match span.split_once('=') {
        Some((left, default)) => (left.trim(), Some(json_text(default.trim()))),
        None => (span.trim(), None),
    };
    match left.split_once(':') {
        Some((name, of)) => (name.trim().to_owned(), Some(of.trim().to_owned()), default),
        None => (left.to_owned(), None, default),
    }
}

/// `(a, b): text` as `a, b` and `text`.
fn parenthesis(after: &str) -> (&str, &str) {
    let clean = |text: &'_ str| -> usize {
        text.len() - text.trim_start_matches([':', '-', '—', '–', ' ']).len()
    };
    if let Some(body) = after.strip_prefix('(')
        && let Some((inside, rest)) = body.split_once(')')
    {
        return (inside, &rest[clean(rest)..]);
    }
    ("", &after[clean(after)..])
}

/// `` `a: str`, `b: int = 1` `` in a line of text.
pub(super) fn of_inline(text: &str, place: Place) -> Vec<Field> {
    let spans = code_spans(text);
    let signatures: Vec<&String> = spans.iter().filter(|span| span.contains(':')).collect();
    signatures.into_iter().filter_map(|span| of_item(&format!("`{span}`"), place)).collect()
}

/// `No parameters required.` and the like.
pub(super) fn says_nothing(text: &str) -> bool {
    let text = text.trim().trim_matches(['*', '_', '`', '.', ' ']).to_lowercase();
    matches!(
        text.as_str(),
        "none"
            | "no parameters"
            | "no parameters required"
            | "no arguments"
            | "no input"
            | "n/a"
            | "this tool takes no parameters"
            | "takes no parameters"
            | "no input parameters"
            | "none required"
            | "nothing"
    )
}
