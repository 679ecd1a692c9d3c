//! Renders functions as TypeScript declarations, for authors of scripts.
//!
//! Types are derived from the schemas of a tool, within bounds: a type that is too deep,
//! too long or not understood is `any`. A server's description becomes one line of a
//! comment, which it cannot end.

use serde_json::{Map, Value};
use tool::Tool;

use crate::summary;

/// The most nested levels of a type.
const DEPTH: usize = 4;

/// The most members of an object.
const MEMBERS: usize = 40;

/// The most values of an enumeration.
const VALUES: usize = 12;

/// The most characters of a comment.
const COMMENT: usize = 120;

/// The declaration of a function:
/// `create(args: {customer_id: string; notes?: string}): Promise<{id: string}>`.
pub fn declaration(name: &str, tool: &Tool) -> String {
    let input = tool.input_schema.to_value().unwrap_or(Value::Null);
    let arguments = match members(&input) {
        Some((properties, _)) if properties.is_empty() => "args?: {}".to_owned(),
        Some((_, required)) => {
            let optional = if required.is_empty() { "?" } else { "" };
            format!("args{optional}: {}", TypeRenderer { root: &input }.render(&input, 0))
        }
        None => "args?: {[key: string]: any}".to_owned(),
    };
    let output = tool.output_schema.as_ref().and_then(|schema| schema.to_value().ok());
    let returns =
        output.map_or_else(|| "any".to_owned(), |out| TypeRenderer { root: &out }.render(&out, 0));
    let words = tool.description.as_deref().or(tool.title.as_deref()).unwrap_or_default();
    let comment = comment(words);
    format!("{comment}{}({arguments}): Promise<{returns}>", key(name))
}

/// A line of comment before a declaration, or nothing.
fn comment(words: &str) -> String {
    let line = words.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let line =
        summary::cut(&tool::text::without_invisible(line.trim()), COMMENT).replace("*/", "* /");
    if line.is_empty() { String::new() } else { format!("/** {line} */\n") }
}

/// Renders types of one schema.
struct TypeRenderer<'a> {
    /// The whole schema, which local references point into.
    root: &'a Value,
}

impl TypeRenderer<'_> {
    fn render(&self, schema: &Value, depth: usize) -> String {
        let Some(schema) = schema.as_object().filter(|_| depth <= DEPTH) else {
            return "any".to_owned();
        };
        if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
            let found = target.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
            return found.map_or_else(|| "any".to_owned(), |found| self.render(found, depth + 1));
        }
        if let Some(value) = schema.get("const") {
            return literal(value);
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            return union(values.iter().take(VALUES).map(literal), VALUES < values.len());
        }
        for any in ["anyOf", "oneOf"] {
            if let Some(branches) = schema.get(any).and_then(Value::as_array) {
                let branches = branches.iter().take(VALUES).map(|one| self.render(one, depth + 1));
                return union(branches, false);
            }
        }
        match schema.get("type") {
            Some(Value::Array(kinds)) => union(
                kinds
                    .iter()
                    .filter_map(Value::as_str)
                    .map(|kind| self.render_kind(kind, schema, depth)),
                false,
            ),
            Some(Value::String(kind)) => self.render_kind(kind, schema, depth),
            Some(_) => "any".to_owned(),
            None if schema.contains_key("properties") => self.render_kind("object", schema, depth),
            None => "any".to_owned(),
        }
    }

    /// Renders a schema whose JSON type is `kind`.
    fn render_kind(&self, kind: &str, schema: &Map<String, Value>, depth: usize) -> String {
        match kind {
            "string" => "string".to_owned(),
            "integer" | "number" => "number".to_owned(),
            "boolean" => "boolean".to_owned(),
            "null" => "null".to_owned(),
            "array" => {
                let item = schema
                    .get("items")
                    .map_or_else(|| "any".to_owned(), |i| self.render(i, depth + 1));
                if item.contains(" | ") && !item.starts_with('{') {
                    format!("({item})[]")
                } else {
                    format!("{item}[]")
                }
            }
            "object" => self.object(schema, depth),
            _ => "any".to_owned(),
        }
    }

    fn object(&self, schema: &Map<String, Value>, depth: usize) -> String {
        let empty = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
        let required = required(schema);
        let mut written: Vec<String> = properties
            .iter()
            .take(MEMBERS)
            .map(|(name, below)| {
                let optional = if required.contains(&name.as_str()) { "" } else { "?" };
                format!("{}{optional}: {}", key(name), self.render(below, depth + 1))
            })
            .collect();
        match schema.get("additionalProperties") {
            Some(below) if below.is_object() => {
                written.push(format!("[key: string]: {}", self.render(below, depth + 1)));
            }
            Some(_) | None if MEMBERS < properties.len() || properties.is_empty() => {
                written.push("[key: string]: any".to_owned());
            }
            Some(_) | None => {}
        }
        format!("{{{}}}", written.join("; "))
    }
}

/// The members of an object's schema, and which are required.
fn members(schema: &Value) -> Option<(&Map<String, Value>, Vec<&str>)> {
    let schema = schema.as_object()?;
    Some((schema.get("properties")?.as_object()?, required(schema)))
}

fn required(schema: &Map<String, Value>) -> Vec<&str> {
    let required = schema.get("required").and_then(Value::as_array);
    required.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// A name as an object key, quoted where needed.
fn key(name: &str) -> String {
    let is_plain = name.chars().enumerate().all(|(at, c)| {
        c == '_' || c == '$' || c.is_ascii_alphabetic() || (0 < at && c.is_ascii_digit())
    });
    match is_plain && !name.is_empty() {
        true => name.to_owned(),
        false => Value::String(summary::cut(name, 80)).to_string(),
    }
}

fn literal(value: &Value) -> String {
    match value {
        Value::String(text) => Value::String(summary::cut(text, 60)).to_string(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(_) | Value::Object(_) => "any".to_owned(),
    }
}

fn union(types: impl Iterator<Item = String>, is_cut: bool) -> String {
    let mut all: Vec<String> = Vec::new();
    for one in types.chain(is_cut.then(|| "string".to_owned())) {
        if !all.contains(&one) {
            all.push(one);
        }
    }
    if all.is_empty() { "any".to_owned() } else { all.join(" | ") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(raw: Value, expected: &str) {
        let tool = Tool::parse(raw.into()).unwrap();
        assert_eq!(declaration(&tool.name, &tool), expected);
    }

    #[test]
    fn a_function_is_declared_with_its_arguments_and_its_result() {
        check(
            json!({
                "name": "create",
                "description": "Create an order.\nMore.",
                "inputSchema": {
                    "type": "object",
                    "properties": {
                        "customer_id": {"type": "string"},
                        "kind": {"enum": ["a", "b"]},
                        "items": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}},
                        "odd-name": {"type": ["string", "null"]},
                    },
                    "required": ["customer_id"],
                },
                "outputSchema": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
            }),
            "/** Create an order. */\ncreate(args: {customer_id: string; kind?: \"a\" | \"b\"; items?: {n?: number}[]; \
             \"odd-name\"?: string | null}): Promise<{id: string}>",
        );
        check(
            json!({"name": "f", "inputSchema": {"type": "object", "properties": {}}}),
            "f(args?: {}): Promise<any>",
        );
        check(
            json!({"name": "a.b", "inputSchema": {}}),
            "\"a.b\"(args?: {[key: string]: any}): Promise<any>",
        );
    }

    #[test]
    fn hostile_schemas_stay_short_and_end_no_comment() {
        let mut deep = json!({"$ref": "#"});
        for _ in 0..100 {
            deep = json!({"type": "array", "items": deep});
        }
        let tool = Tool::parse(
            json!({"name": "f", "description": "x */ evil(", "inputSchema": {"type": "object", "properties": {"a": deep}}}).into(),
        );
        let text = declaration("f", &tool.unwrap());
        assert!(text.len() < 400 && text.contains("x * / evil("), "{text}");
        let wide: Map<String, Value> =
            (0..500).map(|n| (format!("m{n}"), json!({"type": "string"}))).collect();
        let tool = Tool::parse(
            json!({"name": "f", "inputSchema": {"type": "object", "properties": wide}}).into(),
        );
        assert!(declaration("f", &tool.unwrap()).len() < 1_500);
    }
}
