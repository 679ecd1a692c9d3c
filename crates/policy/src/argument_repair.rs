//! Repairs arguments where the schema leaves no doubt about what was meant.
//!
//! Models write `"42"` where a schema wants 42. A string is converted only when
//! the schema asks for another type and does not also accept strings; at any
//! depth. No key is renamed or dropped, nothing is guessed, and every repair is
//! reported. A value that is not repaired fails validation as before.

use serde::Serialize;
use serde_json::{Map, Number, Value};

/// One repair that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Repair {
    /// The place of the value: `$.filter.limit`, `$.ids[2]`.
    pub path: String,
    pub rule: Rule,
}

/// The conversion that a repair made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    ParseStringifiedObject,
    ParseStringifiedArray,
    StrToInteger,
    StrToNumber,
    StrToBoolean,
    StrToNull,
}

/// Arguments nested deeper than this stay as they are.
const MAX_DEPTH: usize = 32;

/// How deep `anyOf` and `oneOf` are followed; a schema may refer to itself.
const MAX_ALTERNATIVE_DEPTH: usize = 3;
/// The most alternatives at each level.
const MAX_ALTERNATIVES: usize = 16;

/// Repairs the arguments by the tool's schema; also returns the repairs made.
pub fn repair(arguments: Value, schema: &Value) -> (Value, Vec<Repair>) {
    let mut repairs = Vec::new();
    let arguments = match &arguments {
        Value::String(text) => match parsed(text, Value::is_object) {
            Some(object) => {
                repairs.push(Repair { path: "$".to_owned(), rule: Rule::ParseStringifiedObject });
                object
            }
            None => arguments,
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            arguments
        }
    };
    let walk = SchemaWalk { root: schema };
    let repaired = walk.repair_value(arguments, schema, "$", 0, &mut repairs);
    (repaired, repairs)
}

/// Walks a value and its schema side by side.
struct SchemaWalk<'a> {
    /// The whole schema, which local `$ref`s point into.
    root: &'a Value,
}

impl SchemaWalk<'_> {
    fn repair_value(
        &self,
        value: Value,
        schema: &Value,
        path: &str,
        depth: usize,
        repairs: &mut Vec<Repair>,
    ) -> Value {
        if MAX_DEPTH < depth {
            return value;
        }
        let schema = self.resolve(schema);
        let value = match value {
            // `repair` has converted the arguments as a whole already.
            Value::String(text) if depth != 0 => self.repair_string(text, schema, path, repairs),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_) => value,
        };
        match value {
            Value::Object(members) => {
                let each = |(key, member): (String, Value)| {
                    let below = format!("{path}.{key}");
                    let repaired = match property(schema, &key) {
                        Some(part) => self.repair_value(member, part, &below, depth + 1, repairs),
                        None => member,
                    };
                    (key, repaired)
                };
                Value::Object(members.into_iter().map(each).collect::<Map<_, _>>())
            }
            Value::Array(elements) => {
                let Some(items) = schema.get("items").filter(|items| items.is_object()) else {
                    return Value::Array(elements);
                };
                let each = |(at, element)| {
                    self.repair_value(element, items, &format!("{path}[{at}]"), depth + 1, repairs)
                };
                Value::Array(elements.into_iter().enumerate().map(each).collect())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
        }
    }

    fn repair_string(
        &self,
        text: String,
        schema: &Value,
        path: &str,
        repairs: &mut Vec<Repair>,
    ) -> Value {
        let types = self.types(schema, MAX_ALTERNATIVE_DEPTH);
        if types.is_empty() || types.contains(&"string") {
            return Value::String(text);
        }
        match convert(&text, &types) {
            Some((value, rule)) => {
                repairs.push(Repair { path: path.to_owned(), rule });
                value
            }
            None => Value::String(text),
        }
    }

    /// The types that a schema accepts: its own, or those of its alternatives when
    /// every one of them names its types; otherwise empty, which means unknown.
    ///
    /// The catalog is less strict: there, an alternative without a type accepts any.
    fn types<'s>(&'s self, schema: &'s Value, depth: usize) -> Vec<&'s str> {
        let own = match schema.get("type") {
            Some(Value::String(one)) => vec![one.as_str()],
            Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        if !own.is_empty() {
            return own;
        }
        let alternatives = ["anyOf", "oneOf"].iter().find_map(|key| schema.get(key)?.as_array());
        let few = |parts: &&Vec<Value>| 0 < depth && parts.len() <= MAX_ALTERNATIVES;
        let Some(alternatives) = alternatives.filter(few) else { return Vec::new() };
        let each: Vec<Vec<&str>> =
            alternatives.iter().map(|part| self.types(self.resolve(part), depth - 1)).collect();
        match each.iter().any(Vec::is_empty) {
            true => Vec::new(),
            false => each.into_iter().flatten().collect(),
        }
    }

    /// Follows local `$ref`s. Nothing is ever fetched.
    fn resolve<'s>(&'s self, schema: &'s Value) -> &'s Value {
        let mut schema = schema;
        for _ in 0..8 {
            let reference = schema.get("$ref").and_then(Value::as_str);
            let target = reference.and_then(|text| self.root.pointer(text.strip_prefix('#')?));
            match target {
                Some(target) => schema = target,
                None => break,
            }
        }
        schema
    }
}

fn property<'s>(schema: &'s Value, key: &str) -> Option<&'s Value> {
    let own = schema.get("properties").and_then(|properties| properties.get(key));
    own.or_else(|| schema.get("additionalProperties").filter(|part| part.is_object()))
}

/// The value that a string stands for, given types that do not include strings.
fn convert(text: &str, types: &[&str]) -> Option<(Value, Rule)> {
    let wants = |name: &str| types.contains(&name);
    let text = text.trim();
    if wants("integer") && is_integer(text) {
        // `-0` is the integer 0.
        let digits = if text == "-0" { "0" } else { text };
        return Some((number(digits)?, Rule::StrToInteger));
    }
    if wants("number") && is_number(text) {
        let float = text.parse::<f64>().ok().filter(|number| number.is_finite())?;
        let value = Number::from_f64(float).map(Value::Number)?;
        // A whole number of any size stays exact.
        let exact = number(text).filter(|_| is_integer(text) && 15 < text.len());
        return Some((exact.unwrap_or(value), Rule::StrToNumber));
    }
    if wants("boolean") && matches!(text, "true" | "false") {
        return Some((Value::Bool(text == "true"), Rule::StrToBoolean));
    }
    if wants("null") && text == "null" {
        return Some((Value::Null, Rule::StrToNull));
    }
    if wants("object")
        && let Some(object) = parsed(text, Value::is_object)
    {
        return Some((object, Rule::ParseStringifiedObject));
    }
    if wants("array")
        && let Some(array) = parsed(text, Value::is_array)
    {
        return Some((array, Rule::ParseStringifiedArray));
    }
    None
}

fn parsed(text: &str, accept: impl Fn(&Value) -> bool) -> Option<Value> {
    let text = text.trim_start_matches('\u{feff}').trim();
    serde_json::from_str(text).ok().filter(accept)
}

fn number(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok().filter(Value::is_number)
}

fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let leading = digits.len() == 1 || !digits.starts_with('0');
    !digits.is_empty() && leading && digits.bytes().all(|b| b.is_ascii_digit())
}

/// A number as JSON writes it.
fn is_number(text: &str) -> bool {
    number(text).is_some()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Equal as values: 3 and 3.0 are the same number.
    fn same(a: &Value, b: &Value) -> bool {
        match (a, b) {
            (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
            (Value::Object(a), Value::Object(b)) => {
                a.len() == b.len()
                    && a.iter().all(|(key, part)| b.get(key).is_some_and(|b| same(part, b)))
            }
            _ => a == b,
        }
    }

    #[test]
    fn arguments_are_repaired_as_in_the_vectors() {
        let text = include_str!("../tests/vectors/contextweaver_normalize_args.json");
        let vectors: Value = serde_json::from_str(text).unwrap();
        for case in vectors["cases"].as_array().unwrap() {
            let (out, repairs) = repair(case["args"].clone(), &vectors["schema"]);
            assert!(same(&out, &case["out"]), "{case} {out}");
            assert_eq!(serde_json::to_value(repairs).unwrap(), case["repairs"]);
        }
    }

    #[track_caller]
    fn check(schema: &Value, arguments: Value, expected: &Value, paths: &[&str]) {
        let (out, repairs) = repair(arguments, schema);
        assert_eq!(out, *expected);
        let repaired: Vec<&str> = repairs.iter().map(|repair| repair.path.as_str()).collect();
        assert_eq!(repaired, paths);
    }

    #[test]
    fn nested_values_are_repaired_too() {
        let schema = json!({
            "properties": {
                "filter": {"$ref": "#/$defs/filter"},
                "ids": {"type": "array", "items": {"type": "integer"}},
                "either": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                "loose": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
            },
            "$defs": {"filter": {"type": "object", "properties": {"on": {"type": "boolean"}}}},
        });
        check(
            &schema,
            json!({"filter": {"on": "true"}, "ids": ["1", 2, "x"], "either": "5", "loose": "5"}),
            &json!({"filter": {"on": true}, "ids": [1, 2, "x"], "either": 5, "loose": "5"}),
            &["$.filter.on", "$.ids[0]", "$.either"],
        );
    }

    #[test]
    fn structures_written_as_text_are_read() {
        let schema = json!({"properties": {
            "list": {"type": "array", "items": {"type": "integer"}},
            "map": {"type": "object"},
        }});
        check(
            &schema,
            json!({"list": "[\"1\", 2]", "map": "{\"a\": \"1\"}"}),
            &json!({"list": [1, 2], "map": {"a": "1"}}),
            &["$.list", "$.list[0]", "$.map"],
        );
    }

    #[test]
    fn schemas_that_refer_to_themselves_end() {
        let schema = json!({"$ref": "#"});
        check(&schema, json!({"a": "1"}), &json!({"a": "1"}), &[]);
        let either = json!({
            "properties": {"a": {"$ref": "#/$defs/a"}},
            "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "integer"}]}},
        });
        check(&either, json!({"a": "1"}), &json!({"a": "1"}), &[]);
        let deep = json!({"properties": {"a": {"$ref": "#"}, "n": {"type": "integer"}}});
        check(&deep, json!({"a": {"a": {"n": "1"}}}), &json!({"a": {"a": {"n": 1}}}), &["$.a.a.n"]);
    }
}
