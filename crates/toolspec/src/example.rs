//! Generates example values that match a schema, and checks values against one.

use serde_json::{Map, Value, json};
use validator::{Dialect, Draft, ValidationError, Validator};

/// Checks that a schema is valid JSON Schema; the error says where it is not.
pub(crate) fn check_schema(schema: &Value) -> Result<(), String> {
    compile(schema).map(drop)
}

/// Compiles a schema. The validator never fetches other schemas.
pub(crate) fn compile(schema: &Value) -> Result<Validator, String> {
    Validator::compile(schema, Dialect::Fixed(draft(schema))).map_err(|error| {
        let pointer = error.instance_path().to_string();
        let told = truncate(&error.to_string());
        if pointer.is_empty() { format!("({told})") } else { format!("at `{pointer}` ({told})") }
    })
}

/// Describes a validation error without quoting the value, which may be long or a
/// secret.
pub(crate) fn describe_error(error: &ValidationError<'_>) -> String {
    let pointer = error.instance_path().to_string();
    let told = truncate(&error.masked_with("it").to_string());
    if pointer.is_empty() { told } else { format!("at `{}`: {told}", truncate(&pointer)) }
}

fn truncate(text: &str) -> String {
    match text.char_indices().nth(200) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

fn draft(schema: &Value) -> Draft {
    let name = schema.get("$schema").and_then(Value::as_str).unwrap_or("");
    match name {
        _ if name.contains("draft-04") => Draft::Draft4,
        _ if name.contains("draft-06") => Draft::Draft6,
        _ if name.contains("draft-07") => Draft::Draft7,
        _ if name.contains("2019-09") => Draft::Draft201909,
        _ => Draft::Draft202012,
    }
}

/// Returns why a value does not match a schema; nothing when it matches, or when
/// the schema is invalid.
pub(crate) fn problems(schema: &Value, value: &Value) -> Vec<String> {
    let Ok(validator) = compile(schema) else { return Vec::new() };
    validator.errors(value, 4).iter().map(describe_error).collect()
}

/// The deepest nesting of a generated example.
const MAX_DEPTH: usize = 6;

/// Generates a value that matches the schema, if possible.
pub(crate) fn synthesise(schema: &Value) -> Option<Value> {
    let validator = compile(schema).ok()?;
    let rich = make(schema, schema, Included::WithExamples, 0);
    let plain = make(schema, schema, Included::Required, 0);
    [rich, plain, json!({})].into_iter().find(|value| validator.is_valid(value) && !has_dots(value))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Included {
    /// Required members, and those for which the schema gives an example.
    WithExamples,
    /// Required members only.
    Required,
}

fn make(schema: &Value, root: &Value, included: Included, depth: usize) -> Value {
    if let Some(given) = documented_value(schema) {
        return given;
    }
    if MAX_DEPTH < depth {
        return Value::Null;
    }
    if let Some(target) = resolve(schema, root) {
        return make(target, root, included, depth + 1);
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(first) = schema.get(key).and_then(Value::as_array).and_then(|list| list.first())
        {
            return match schema.get("properties") {
                Some(_) => make(&narrowed(schema, key, first), root, included, depth + 1),
                None => make(first, root, included, depth + 1),
            };
        }
    }
    if let Some(list) = schema.get("allOf").and_then(Value::as_array) {
        let mut whole = object(schema, root, included, depth);
        for part in list {
            merge(&mut whole, make(part, root, included, depth + 1));
        }
        return whole;
    }
    by_type(schema, root, included, depth)
}

/// Returns a value that the schema itself gives and that fits it.
fn documented_value(schema: &Value) -> Option<Value> {
    let first = |key: &str| schema.get(key)?.as_array()?.first().cloned();
    let fits = |value: &Value| problems(schema, value).is_empty() && !has_dots(value);
    let candidates = [
        schema.get("const").cloned(),
        schema.get("example").cloned(),
        first("examples"),
        schema.get("default").filter(|value| !value.is_null()).cloned(),
        first("enum"),
    ];
    candidates.into_iter().flatten().find(fits)
}

/// Returns the schema that a local `$ref` points to.
pub(crate) fn resolve<'a>(schema: &Value, root: &'a Value) -> Option<&'a Value> {
    let reference = schema.get("$ref")?.as_str()?;
    root.pointer(reference.strip_prefix('#')?)
}

/// Merges a schema with one of its branches of `anyOf` or the like.
fn narrowed(schema: &Value, key: &str, branch: &Value) -> Value {
    let mut whole = schema.clone();
    let Some(members) = whole.as_object_mut() else { return whole };
    members.remove(key);
    for (name, more) in branch.as_object().into_iter().flatten() {
        match (members.get_mut(name), more) {
            (Some(Value::Array(list)), Value::Array(more)) => list.extend(more.iter().cloned()),
            (Some(Value::Object(map)), Value::Object(more)) => {
                map.extend(more.iter().map(|(key, value)| (key.clone(), value.clone())));
            }
            (Some(_), _) => {}
            (None, _) => drop(members.insert(name.clone(), more.clone())),
        }
    }
    whole
}

fn by_type(schema: &Value, root: &Value, included: Included, depth: usize) -> Value {
    let name = match schema.get("type") {
        Some(Value::String(name)) => name.as_str(),
        Some(Value::Array(names)) => {
            let real = names.iter().filter_map(Value::as_str).find(|name| *name != "null");
            real.unwrap_or("null")
        }
        Some(_) | None if schema.get("properties").is_some() => "object",
        Some(_) | None => "string",
    };
    match name {
        "object" => object(schema, root, included, depth),
        "array" => array(schema, root, included, depth),
        "integer" | "number" => number(schema),
        "boolean" => Value::Bool(true),
        "null" => Value::Null,
        _ => text(schema),
    }
}

fn object(schema: &Value, root: &Value, included: Included, depth: usize) -> Value {
    let mut members = Map::new();
    let required = crate::types::required(schema);
    if let Some(properties) = crate::types::properties(schema) {
        for (name, property) in properties {
            let telling = property.get("example").is_some() || property.get("examples").is_some();
            if required.contains(&name.as_str()) || (included == Included::WithExamples && telling)
            {
                members.insert(name.clone(), make(property, root, included, depth + 1));
            }
        }
    }
    for name in required.into_iter().filter(|name| !members.contains_key(*name)).collect::<Vec<_>>()
    {
        members.insert(name.to_owned(), Value::from("value"));
    }
    Value::Object(members)
}

fn array(schema: &Value, root: &Value, included: Included, depth: usize) -> Value {
    let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0);
    if let Some(prefix) = schema.get("prefixItems").and_then(Value::as_array) {
        return prefix.iter().map(|item| make(item, root, included, depth + 1)).collect();
    }
    let count = if least == 0 && included == Included::Required { 0 } else { least.clamp(1, 16) };
    let any = json!({});
    let items = schema.get("items").filter(|items| items.is_object()).unwrap_or(&any);
    let mut list = Vec::new();
    for at in 0..count {
        let mut item = make(items, root, included, depth + 1);
        if schema.get("uniqueItems") == Some(&Value::Bool(true)) && list.contains(&item) {
            item = distinct(items, &item, at);
        }
        list.push(item);
    }
    Value::Array(list)
}

/// Returns another value like `item`, for arrays whose items must differ.
fn distinct(items: &Value, item: &Value, at: u64) -> Value {
    let named = items.get("enum").and_then(Value::as_array);
    if let Some(value) = named.and_then(|list| list.get(usize::try_from(at).ok()?)) {
        return value.clone();
    }
    match item {
        Value::String(text) => Value::from(format!("{text}{at}")),
        Value::Number(number) => json!(number.as_f64().unwrap_or(0.0) + 1.0),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => item.clone(),
    }
}

fn number(schema: &Value) -> Value {
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    let integral = schema.get("type") != Some(&Value::from("number"));
    let mut candidates = vec![1.0, 0.0, 10.0];
    candidates.extend(bound("minimum"));
    candidates.extend(bound("exclusiveMinimum").map(|least| least + 1.0));
    candidates.extend(bound("maximum"));
    candidates.extend(bound("exclusiveMaximum").map(|most| most - 1.0));
    candidates.extend(bound("multipleOf"));
    let half =
        bound("exclusiveMinimum").zip(bound("exclusiveMaximum")).map(|(a, b)| f64::midpoint(a, b));
    candidates.extend(half);
    let write = |candidate: f64| {
        let whole = candidate.round();
        #[expect(clippy::cast_possible_truncation, reason = "checked to be small and whole")]
        let as_integer = (whole.abs() < 1e15).then_some(whole as i64);
        match as_integer {
            Some(integer) if integral || (whole - candidate).abs() < f64::EPSILON => json!(integer),
            Some(_) | None => json!(candidate),
        }
    };
    fitting(schema, candidates.into_iter().map(write), json!(1))
}

fn text(schema: &Value) -> Value {
    let format = schema.get("format").and_then(Value::as_str).unwrap_or("");
    let by_format = match format {
        "date" => "2026-01-31",
        "time" => "12:00:00Z",
        "date-time" => "2026-01-31T12:00:00Z",
        "uri" | "url" | "uri-reference" => "https://example.com/",
        "email" => "someone@example.com",
        "uuid" => "123e4567-e89b-12d3-a456-426614174000",
        "ipv4" => "192.0.2.1",
        "hostname" => "example.com",
        _ => "text",
    };
    let least = schema.get("minLength").and_then(Value::as_u64).unwrap_or(0);
    let least = usize::try_from(least.min(4096)).unwrap_or(0);
    let most = schema.get("maxLength").and_then(Value::as_u64).unwrap_or(4096);
    let most = usize::try_from(most.min(4096)).unwrap_or(4096);
    let sized = "x".repeat(least.max(1).min(most));
    let common = [
        "abc",
        "a",
        "A",
        "ABC",
        "1",
        "10",
        "123",
        "2026-01-31",
        "2026-01-31T12:00:00Z",
        "12:00",
        "1.0.0",
        "https://example.com/",
        "someone@example.com",
        "example.com",
        "a/b",
        "/a",
        "#000000",
        "123e4567-e89b-12d3-a456-426614174000",
        "abc-123",
        "abc_123",
        "USD",
        "en-US",
        "0x1",
        "AAPL",
        "2026-01",
        "2026",
        "+15555550100",
        "1,2",
        "0,0,1,1",
    ];
    let candidates = std::iter::once(by_format.to_owned())
        .chain(std::iter::once(sized))
        .chain(common.iter().map(|&text| text.to_owned()));
    fitting(schema, candidates.map(Value::from), Value::from("text"))
}

/// Returns the first candidate that matches the schema, or else the fallback.
fn fitting(schema: &Value, candidates: impl Iterator<Item = Value>, fallback: Value) -> Value {
    let Ok(validator) = compile(schema) else { return fallback };
    let mut candidates = candidates;
    candidates.find(|candidate| validator.is_valid(candidate)).unwrap_or(fallback)
}

fn merge(whole: &mut Value, part: Value) {
    if let (Some(members), Value::Object(more)) = (whole.as_object_mut(), part) {
        for (key, value) in more {
            members.entry(key).or_insert(value);
        }
    }
}

/// Returns whether a text somewhere in the value is only dots, such as `...`.
pub(crate) fn has_dots(value: &Value) -> bool {
    match value {
        Value::String(text) => text == "..." || text == "…",
        Value::Array(items) => items.iter().any(has_dots),
        Value::Object(members) => members.values().any(has_dots),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_up_values_fit() {
        let schemas = [
            json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "^[A-Z]{3}$"}}, "required": ["a"]}),
            json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 5, "maximum": 6}}, "required": ["n"]}),
            json!({"type": "object", "properties": {"n": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}}, "required": ["n"]}),
            json!({"type": "object", "$defs": {"t": {"enum": ["x"]}}, "properties": {"l": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/t"}}}, "required": ["l"]}),
            json!({"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}], "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}),
            json!({"type": "object", "properties": {"s": {"type": "string", "minLength": 3, "maxLength": 3}}, "required": ["s"]}),
        ];
        for schema in schemas {
            assert!(synthesise(&schema).is_some(), "{schema}");
        }
    }

    #[test]
    fn what_cannot_be_satisfied_gives_nothing() {
        assert_eq!(synthesise(&json!({"not": {}})), None);
    }
}
