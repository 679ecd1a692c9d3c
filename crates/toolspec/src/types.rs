//! Converts types as documents write them (`List[str] | None`) to JSON Schemas, and back.

use serde_json::{Map, Value, json};

/// A type that was parsed from a document.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ParsedType {
    /// The schema; empty for "any value".
    pub(crate) schema: Value,
    /// Whether the type uses names of Python.
    pub(crate) uses_python_names: bool,
    /// Whether all names in it are known.
    pub(crate) is_known: bool,
}

/// Parses `string`, `List[str] | None`, `array[enum["a","b"]]`, …
pub(crate) fn parse(text: &str) -> ParsedType {
    let text = text.trim().trim_matches('`').trim();
    let mut python = false;
    match schema_of(text, &mut python, 0) {
        Some(schema) => ParsedType { schema, uses_python_names: python, is_known: true },
        None => ParsedType { schema: json!({}), uses_python_names: python, is_known: false },
    }
}

/// Writes the type of a schema with canonical names.
pub(crate) fn write(schema: &Value) -> String {
    write_nested(schema, 0)
}

/// Returns whether the type in a table agrees with a schema.
pub(crate) fn agree(table: &Value, schema: &Value) -> bool {
    let (said, meant) = (type_names(table), type_names(schema));
    said.is_empty()
        || meant.is_empty()
        || said.iter().all(|name| meant.iter().any(|other| are_compatible(name, other)))
}

fn are_compatible(one: &str, other: &str) -> bool {
    one == other
        || matches!((one, other), ("integer", "number") | ("number", "integer"))
        || other == "null"
}

fn type_names(schema: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    if let Some(kinds) = schema.get("type") {
        return match kinds {
            Value::Array(list) => list.iter().filter_map(text).collect(),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Object(_) => text(kinds).into_iter().collect(),
        };
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(list) = schema.get(key).and_then(Value::as_array) {
            // One branch that may be anything makes the whole anything.
            let each: Vec<Vec<String>> = list.iter().map(type_names).collect();
            return if each.iter().any(Vec::is_empty) { Vec::new() } else { each.concat() };
        }
    }
    Vec::new()
}

/// The deepest nesting of a type that is parsed or written.
const MAX_DEPTH: usize = 8;

/// Parses a type to a schema; `None` if it is none that is known. Sets `python` when it is
/// written in the words of Python.
fn schema_of(text: &str, python: &mut bool, depth: usize) -> Option<Value> {
    if MAX_DEPTH < depth {
        return None;
    }
    let parts = split_outside_brackets(text, '|');
    let parts: Vec<&str> =
        parts.iter().flat_map(|part| part.split(" or ")).map(str::trim).collect();
    if parts.iter().all(|part| is_quoted(part)) {
        let values: Vec<Value> = parts.iter().filter_map(|part| parse_literal(part)).collect();
        return Some(enumeration(&values));
    }
    if 1 < parts.len() {
        return schema_of_union(&parts, python, depth);
    }
    let text = text.trim();
    let Some((head, inner)) = split_brackets(text) else { return schema_of_word(text, python) };
    match head.to_ascii_lowercase().as_str() {
        "array" | "list" | "sequence" | "set" | "tuple" | "iterable" => {
            *python |= head != "array";
            let first =
                split_outside_brackets(inner, ',').first().map(|item| item.trim().to_owned());
            let items = schema_of(first.as_deref().unwrap_or(""), python, depth + 1)?;
            Some(json!({"type": "array", "items": items}))
        }
        "dict" | "mapping" | "map" => {
            *python = true;
            let value =
                split_outside_brackets(inner, ',').get(1).map(|item| item.trim().to_owned());
            let value = schema_of(value.as_deref().unwrap_or("any"), python, depth + 1)?;
            let mut schema = json!({"type": "object"});
            if value != json!({}) {
                schema["additionalProperties"] = value;
            }
            Some(schema)
        }
        "object" => Some(json!({"type": "object"})),
        "optional" => {
            *python = true;
            schema_of_union(&[inner, "null"], python, depth)
        }
        "union" => {
            *python = true;
            let parts = split_outside_brackets(inner, ',');
            schema_of_union(
                &parts.iter().map(|part| part.trim()).collect::<Vec<_>>(),
                python,
                depth,
            )
        }
        "enum" | "literal" => {
            *python |= head != "enum";
            let values: Option<Vec<Value>> =
                split_outside_brackets(inner, ',').iter().map(|v| parse_literal(v)).collect();
            values.map(|values| enumeration(&values))
        }
        _ => None,
    }
}

/// `"a"` or `'a'`
fn is_quoted(text: &str) -> bool {
    ['"', '\''].iter().any(|&mark| 2 < text.len() && text.starts_with(mark) && text.ends_with(mark))
}

fn enumeration(values: &[Value]) -> Value {
    if values.iter().all(Value::is_string) {
        return json!({"type": "string", "enum": values});
    }
    json!({"enum": values})
}

/// Parses one value of an enumeration: JSON, else a text; `None` if it is empty.
fn parse_literal(text: &str) -> Option<Value> {
    let text = text.trim();
    let quoted = text.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    match quoted {
        Some(inner) => Some(Value::from(inner)),
        None if text.is_empty() => None,
        None => Some(serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))),
    }
}

/// Parses a type of one word, such as `string` or `int`.
fn schema_of_word(text: &str, python: &mut bool) -> Option<Value> {
    let lower = text.to_ascii_lowercase();
    let name = match lower.as_str() {
        "string" | "integer" | "number" | "boolean" | "array" | "object" | "null" => lower.as_str(),
        "float" | "double" => "number",
        "any" => return Some(json!({})),
        "str" | "path" | "datetime" | "bytes" => python_word("string", python),
        "int" => python_word("integer", python),
        "bool" => python_word("boolean", python),
        "list" | "tuple" | "set" => python_word("array", python),
        "dict" => python_word("object", python),
        "none" => python_word("null", python),
        "json" => "object",
        "url" | "uri" | "date" | "timestamp" | "uuid" => "string",
        _ => return None,
    };
    Some(json!({"type": name}))
}

fn python_word(name: &'static str, python: &mut bool) -> &'static str {
    *python = true;
    name
}

/// Parses the alternatives of a type; `None` if one of them is not known.
fn schema_of_union(parts: &[&str], python: &mut bool, depth: usize) -> Option<Value> {
    let schemas: Option<Vec<Value>> =
        parts.iter().map(|part| schema_of(part, python, depth + 1)).collect();
    let schemas = schemas?;
    let plain: Option<Vec<&str>> = schemas
        .iter()
        .map(|schema| {
            let only_type = schema.as_object().is_some_and(|schema| schema.len() == 1);
            only_type.then(|| schema["type"].as_str()).flatten()
        })
        .collect();
    match plain {
        Some(names) => Some(json!({"type": names})),
        None => Some(json!({"anyOf": schemas})),
    }
}

/// `head[inner]`
fn split_brackets(text: &str) -> Option<(&str, &str)> {
    let open = text.find(['[', '<'])?;
    let inner = text[open + 1..].strip_suffix([']', '>'])?;
    Some((text[..open].trim(), inner))
}

/// Splits a text at separators outside of brackets and quotes.
fn split_outside_brackets(text: &str, separator: char) -> Vec<String> {
    let (mut parts, mut part, mut depth, mut quote) = (Vec::new(), String::new(), 0_usize, None);
    for letter in text.chars() {
        match (quote, letter) {
            (Some(mark), _) if letter == mark => quote = None,
            (None, '"' | '\'') => quote = Some(letter),
            (None, '[' | '(' | '{' | '<') => depth += 1,
            (None, ']' | ')' | '}' | '>') => depth = depth.saturating_sub(1),
            (None, _) if letter == separator && depth == 0 => {
                parts.push(std::mem::take(&mut part));
                continue;
            }
            (Some(_) | None, _) => {}
        }
        part.push(letter);
    }
    parts.push(part);
    parts
}

fn write_nested(schema: &Value, depth: usize) -> String {
    if MAX_DEPTH < depth {
        return "any".to_owned();
    }
    if let Some(text) = write_values(schema) {
        return text;
    }
    match schema.get("type") {
        Some(Value::String(name)) => write_named(name, schema, depth),
        Some(Value::Array(names)) => {
            let each = names.iter().filter_map(Value::as_str);
            each.map(|name| write_named(name, schema, depth)).collect::<Vec<_>>().join(" | ")
        }
        Some(_) | None => write_combined(schema, depth),
    }
}

/// The length of the longest list of values that is written into a table.
const MAX_VALUES_LENGTH: usize = 200;

/// Writes the values of an enumeration; `None` if they do not fit into a table.
fn write_values(schema: &Value) -> Option<String> {
    let values = schema.get("enum").and_then(Value::as_array)?;
    let values: Vec<String> = values.iter().map(Value::to_string).collect();
    let text = format!("enum[{}]", values.join(","));
    // A back-tick would end the code span around the type.
    (!values.is_empty() && !text.contains('`') && text.len() <= MAX_VALUES_LENGTH).then_some(text)
}

fn write_named(name: &str, schema: &Value, depth: usize) -> String {
    match (name, schema.get("items")) {
        ("array", Some(items)) if items.is_object() => {
            format!("array[{}]", write_nested(items, depth + 1))
        }
        _ => name.to_owned(),
    }
}

fn write_combined(schema: &Value, depth: usize) -> String {
    for key in ["anyOf", "oneOf"] {
        if let Some(list) = schema.get(key).and_then(Value::as_array) {
            let mut each: Vec<String> =
                list.iter().map(|branch| write_nested(branch, depth + 1)).collect();
            each.dedup();
            return if each.is_empty() { "any".to_owned() } else { each.join(" | ") };
        }
    }
    "any".to_owned()
}

/// The properties of an object schema.
pub(crate) fn properties(schema: &Value) -> Option<&Map<String, Value>> {
    schema.get("properties").and_then(Value::as_object)
}

/// The names that an object schema requires.
pub(crate) fn required(schema: &Value) -> Vec<&str> {
    let list = schema.get("required").and_then(Value::as_array);
    list.map(|list| list.iter().filter_map(Value::as_str).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, schema: &Value, python: bool) {
        let typed = parse(text);
        assert_eq!(
            (&typed.schema, typed.uses_python_names, typed.is_known),
            (schema, python, true),
            "{text}"
        );
    }

    #[test]
    fn types_are_read_in_all_their_spellings() {
        check("string", &json!({"type": "string"}), false);
        check("`str`", &json!({"type": "string"}), true);
        check("array[integer]", &json!({"type": "array", "items": {"type": "integer"}}), false);
        check(
            "List[str] | None",
            &json!({"anyOf": [
            {"type": "array", "items": {"type": "string"}}, {"type": "null"}]}),
            true,
        );
        check("str | None", &json!({"type": ["string", "null"]}), true);
        check("string or null", &json!({"type": ["string", "null"]}), false);
        check("enum[\"a\",\"b\"]", &json!({"type": "string", "enum": ["a", "b"]}), false);
        check(
            "array[enum['a,b']]",
            &json!({"type": "array", "items": {"type": "string", "enum": ["a,b"]}}),
            false,
        );
        check(
            "dict[str, int]",
            &json!({"type": "object", "additionalProperties": {"type": "integer"}}),
            true,
        );
        check("Optional[int]", &json!({"type": ["integer", "null"]}), true);
        check("\"a\" | \"b\"", &json!({"type": "string", "enum": ["a", "b"]}), false);
        check("any", &json!({}), false);
        assert!(!parse("Frobnicator").is_known);
    }

    #[test]
    fn what_is_written_is_read_back() {
        let schemas = [
            json!({"type": "array", "items": {"type": "number"}}),
            json!({"type": ["string", "null"]}),
            json!({"type": "string", "enum": ["a", "b"]}),
            json!({"type": "object"}),
            json!({}),
        ];
        for schema in schemas {
            assert_eq!(parse(&write(&schema)).schema, schema, "{}", write(&schema));
        }
    }
}
