//! The JSON types that a schema accepts: as a set of types, and as a short
//! notation such as `string|integer[]`.

use serde_json::Value;

/// At most this many alternatives or enum values are written out.
const SHOWN: usize = 5;
/// How deep `anyOf`, `oneOf` and `items` are followed. Schemas are untrusted
/// input, so this limit also ends the recursion of a schema that contains itself.
const DEPTH: usize = 3;
/// How many `$ref`s are followed one after another.
const MAX_REF_HOPS: usize = 8;
/// How many alternatives of one schema are read.
const MAX_ALTERNATIVES: usize = 8;

/// A set of JSON types that a schema accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Types(u8);

impl Types {
    pub(crate) const ANY: Types = Types(0x7f);
    pub(crate) const STRING: Types = Types(1);
    pub(crate) const INTEGER: Types = Types(2);
    pub(crate) const NUMBER: Types = Types(4);
    pub(crate) const BOOLEAN: Types = Types(8);
    pub(crate) const OBJECT: Types = Types(16);
    pub(crate) const ARRAY: Types = Types(32);
    pub(crate) const NULL: Types = Types(64);

    /// The types that `schema` accepts; every type if it does not restrict them.
    pub(crate) fn of_schema(root: &Value, schema: &Value) -> Types {
        types_at_depth(root, schema, DEPTH)
    }

    /// Returns whether the two sets have a type in common.
    pub(crate) fn intersects(self, other: Types) -> bool {
        self.0 & other.0 != 0
    }

    fn named(name: &str) -> Types {
        match name {
            "string" => Types::STRING,
            "integer" => Types::INTEGER,
            "number" => Types::NUMBER,
            "boolean" => Types::BOOLEAN,
            "object" => Types::OBJECT,
            "array" => Types::ARRAY,
            "null" => Types::NULL,
            _ => Types::ANY,
        }
    }

    fn of_value(value: &Value) -> Types {
        match value {
            Value::Null => Types::NULL,
            Value::Bool(_) => Types::BOOLEAN,
            Value::Number(_) => Types::NUMBER,
            Value::String(_) => Types::STRING,
            Value::Array(_) => Types::ARRAY,
            Value::Object(_) => Types::OBJECT,
        }
    }
}

fn union(parts: impl Iterator<Item = Types>) -> Types {
    Types(parts.fold(0, |all, part| all | part.0))
}

fn types_at_depth(root: &Value, schema: &Value, depth: usize) -> Types {
    let schema = resolve(root, schema);
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return union(values.iter().map(Types::of_value));
    }
    match schema.get("type") {
        Some(Value::String(name)) => return Types::named(name),
        Some(Value::Array(names)) => {
            return union(names.iter().filter_map(Value::as_str).map(Types::named));
        }
        _ => {}
    }
    let alternatives = ["anyOf", "oneOf"].iter().find_map(|key| schema.get(key)?.as_array());
    match alternatives {
        Some(parts) if 0 < depth && parts.len() <= MAX_ALTERNATIVES => {
            union(parts.iter().map(|part| types_at_depth(root, part, depth - 1)))
        }
        _ => Types::ANY,
    }
}

/// Follows local references (`#/$defs/…`). Remote references are never fetched.
pub(super) fn resolve<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let mut current = schema;
    for _ in 0..MAX_REF_HOPS {
        let target = current.get("$ref").and_then(Value::as_str);
        let target = target.and_then(|reference| reference.strip_prefix('#'));
        match target.and_then(|pointer| root.pointer(pointer)) {
            Some(next) => current = next,
            None => break,
        }
    }
    current
}

/// Writes the type of a schema in a short notation, such as `string|integer`.
pub(super) fn type_notation(root: &Value, schema: &Value) -> String {
    let kind = notation_at_depth(root, schema, DEPTH);
    if kind.is_empty() { "any".to_owned() } else { kind }
}

fn notation_at_depth(root: &Value, schema: &Value, depth: usize) -> String {
    let schema = resolve(root, schema);
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return enum_values(values);
    }
    if let Some(value) = schema.get("const") {
        return value.to_string();
    }
    match schema.get("type") {
        Some(Value::String(name)) => return named_type(root, schema, name, depth),
        Some(Value::Array(names)) => {
            let names = names.iter().filter_map(Value::as_str).filter(|name| *name != "null");
            return join(
                names.take(MAX_ALTERNATIVES).map(|name| named_type(root, schema, name, depth)),
            );
        }
        _ => {}
    }
    let alternatives = ["anyOf", "oneOf"].iter().find_map(|key| schema.get(key)?.as_array());
    match alternatives {
        Some(parts) if 0 < depth => {
            let kinds = parts
                .iter()
                .take(MAX_ALTERNATIVES)
                .map(|part| notation_at_depth(root, part, depth - 1));
            join(kinds.filter(|kind| kind != "null"))
        }
        // The depth limit is reached: this alternative is left out.
        Some(_) => String::new(),
        None if schema.get("properties").is_some() => "object".to_owned(),
        None => "any".to_owned(),
    }
}

fn named_type(root: &Value, schema: &Value, name: &str, depth: usize) -> String {
    match (name, schema.get("items")) {
        ("array", Some(items)) if 0 < depth => {
            let inner = notation_at_depth(root, items, depth - 1);
            if inner.contains('|') { format!("({inner})[]") } else { format!("{inner}[]") }
        }
        ("string" | "integer" | "number" | "boolean" | "object" | "array" | "null", _) => {
            name.to_owned()
        }
        // Any other word is the upstream's own text, and stands here between ours.
        _ => "any".to_owned(),
    }
}

fn enum_values(values: &[Value]) -> String {
    if values.len() <= SHOWN {
        return join(values.iter().filter(|value| !value.is_null()).map(Value::to_string));
    }
    let shown = values.iter().take(SHOWN - 1).map(Value::to_string);
    format!("{}|…", shown.collect::<Vec<_>>().join("|"))
}

fn join(kinds: impl Iterator<Item = String>) -> String {
    let mut distinct: Vec<String> = Vec::new();
    let nested = |kind: &str| kind.contains(['(', '"']);
    let parts = kinds.flat_map(|kind| match nested(&kind) {
        true => vec![kind],
        false => kind.split('|').map(str::to_owned).collect(),
    });
    for kind in parts.filter(|kind| !kind.is_empty()) {
        if !distinct.contains(&kind) && distinct.len() < SHOWN {
            distinct.push(kind);
        }
    }
    distinct.join("|")
}
