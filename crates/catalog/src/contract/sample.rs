//! Generates example arguments that fit a schema.

use std::cell::Cell;

use serde_json::{Map, Value, json};

use super::{Contract, members, schema_type};

/// Example arguments made from a schema.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    pub arguments: Value,
    /// Whether they are valid. Where they are not, they still show the structure.
    pub fits: bool,
}

/// The most branches of `anyOf` and `oneOf` that are tried.
const TRIES: usize = 6;
/// The most nested levels of a value.
const DEPTH: usize = 6;
/// The most values in all: a schema may contain itself in many places.
const VALUES: usize = 300;
/// The most items of a list, and the longest minimum length of a string.
const ITEMS: usize = 8;
const TEXT: usize = 200;

impl Contract {
    /// A sample with everything that is required: the schema's own examples and defaults
    /// where it has any, and values of the right type otherwise.
    pub fn sample(&self) -> Sample {
        let schema = self.schema.to_value().unwrap_or(Value::Null);
        let modes = [Examples::Used, Examples::Ignored];
        let tries = modes.iter().flat_map(|mode| (0..TRIES).map(move |choice| (*mode, choice)));
        let builder = |(examples, choice)| SampleBuilder {
            root: &schema,
            examples,
            choice,
            left: Cell::new(VALUES),
        };
        let mut samples = tries.map(|one| builder(one).object(&schema, DEPTH));
        let first = samples.next().unwrap_or_default();
        let fits = |sample: &Value| self.check(sample).is_empty();
        if fits(&first) {
            return Sample { arguments: first, fits: true };
        }
        match samples.find(fits) {
            Some(arguments) => Sample { arguments, fits: true },
            None => Sample { arguments: first, fits: false },
        }
    }
}

/// Whether the schema's own examples and defaults are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Examples {
    Used,
    Ignored,
}

/// Makes one sample.
struct SampleBuilder<'a> {
    root: &'a Value,
    examples: Examples,
    /// The position of the branch that is taken in every `anyOf` and `oneOf`.
    choice: usize,
    /// How many more values may be made.
    left: Cell<usize>,
}

impl SampleBuilder<'_> {
    fn value(&self, schema: &Value, depth: usize) -> Value {
        let Some(left) = self.left.get().checked_sub(1) else { return Value::Null };
        self.left.set(left);
        if let Some(example) = self.example(schema) {
            return example;
        }
        let schema = schema_type::resolve(self.root, schema);
        if let Some(example) = self.example(schema) {
            return example;
        }
        if let Some(only) = schema.get("const") {
            return only.clone();
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            return values.iter().find(|value| !value.is_null()).cloned().unwrap_or_default();
        }
        if 0 < depth
            && schema.get("properties").is_none()
            && let Some(branch) = self.branch(schema)
        {
            return self.value(branch, depth - 1);
        }
        match type_of(schema) {
            "integer" | "number" => number(schema),
            "boolean" => json!(true),
            "null" => Value::Null,
            "array" if depth == 0 => json!([]),
            "object" if depth == 0 => json!({}),
            "array" => self.array(schema, depth),
            "object" => self.object(schema, depth),
            _ => text(schema),
        }
    }

    /// The schema's own example or default.
    fn example(&self, schema: &Value) -> Option<Value> {
        if self.examples == Examples::Ignored {
            return None;
        }
        let first = schema.get("examples").and_then(|all| all.get(0));
        first.or(schema.get("default")).filter(|value| !value.is_null()).cloned()
    }

    /// The branch of a choice that is taken; never `null` where there is another.
    fn branch<'s>(&self, schema: &'s Value) -> Option<&'s Value> {
        let is_null = |one: &&Value| one.get("type").and_then(Value::as_str) == Some("null");
        let choice = ["anyOf", "oneOf"].iter().find_map(|key| schema.get(key)?.as_array())?;
        let branches: Vec<&Value> = choice.iter().filter(|one| !is_null(one)).collect();
        branches.get(self.choice % branches.len().max(1)).copied().or(choice.first())
    }

    fn array(&self, schema: &Value, depth: usize) -> Value {
        let fixed = schema.get("prefixItems").and_then(Value::as_array);
        if let Some(fixed) = fixed {
            return fixed.iter().take(ITEMS).map(|one| self.value(one, depth - 1)).collect();
        }
        let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0);
        let least = usize::try_from(least).unwrap_or(ITEMS).min(ITEMS);
        match schema.get("items") {
            // One item shows what is in the list.
            Some(items) => (0..least.max(1)).map(|_| self.value(items, depth - 1)).collect(),
            None => (1..=least).map(|item| json!(item)).collect(),
        }
    }

    fn object(&self, schema: &Value, depth: usize) -> Value {
        let mut made = Map::new();
        let mut fill = |part: &Value| {
            for (key, member) in members::MemberParser::new(self.root).members(part) {
                if member.required && !made.contains_key(&key) {
                    made.insert(key, self.value(&member.schema, depth.saturating_sub(1)));
                }
            }
        };
        fill(schema);
        if let Some(branch) = self.branch(schema_type::resolve(self.root, schema)) {
            fill(branch);
        }
        Value::Object(made)
    }
}

/// The first type that a schema names, or the one that its other keywords imply.
fn type_of(schema: &Value) -> &str {
    let named = match schema.get("type") {
        Some(Value::Array(names)) => {
            names.iter().filter_map(Value::as_str).find(|name| *name != "null")
        }
        Some(name) => name.as_str(),
        None => None,
    };
    let implied = || match schema {
        schema if schema.get("properties").is_some() || schema.get("allOf").is_some() => "object",
        schema if schema.get("items").is_some() => "array",
        schema if schema.get("minimum").is_some() => "number",
        _ => "string",
    };
    named.unwrap_or_else(implied)
}

fn number(schema: &Value) -> Value {
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    let least = bound("minimum").or(bound("exclusiveMinimum").map(|least| least + 1.0));
    let most = bound("maximum").or(bound("exclusiveMaximum").map(|most| most - 1.0));
    let step = bound("multipleOf").filter(|step| 0.0 < *step);
    let mut number = 1.0_f64.max(least.unwrap_or(1.0)).min(most.unwrap_or(f64::MAX));
    if let Some(step) = step {
        number = (number / step).ceil() * step;
    }
    // A fraction stays as it is.
    match number.fract() == 0.0 && number.abs() < 9e15 {
        true => json!(number as i64),
        false => json!(number),
    }
}

/// Strings that match many common patterns.
const TEXTS: &[&str] = &[
    "abc",
    "ABC",
    "a1",
    "A1",
    "1",
    "12",
    "1234",
    "12345678",
    "0.5",
    "2026-01-31",
    "2026-01",
    "20260131",
    "12:00",
    "12:00:00",
    "2026-01-31T12:00:00Z",
    "https://example.com/a",
    "example.com",
    "a@example.com",
    "#a1b2c3",
    "0x1a",
    "a/b",
    "/a",
    "a_b",
    "a-b",
    "a.b",
    "A-1",
    "ABC-1",
    "AB",
    "a.png",
    "+15551234567",
    "127.0.0.1",
    "00000000-0000-4000-8000-000000000000",
    "0123456789abcdef0123456789abcdef",
    "en-US",
];

fn text(schema: &Value) -> Value {
    let word = |key: &str| schema.get(key).and_then(Value::as_str);
    let count =
        |key: &str| schema.get(key).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
    let least = count("minLength").unwrap_or(0).min(TEXT);
    let plain = match word("format") {
        Some("date-time") => "2026-01-31T12:00:00Z",
        Some("date") => "2026-01-31",
        Some("time") => "12:00:00Z",
        Some("duration") => "PT1H",
        Some("email" | "idn-email") => "a@example.com",
        Some("uri" | "url" | "iri" | "uri-reference") => "https://example.com/a",
        Some("uuid") => "00000000-0000-4000-8000-000000000000",
        Some("hostname" | "idn-hostname") => "example.com",
        Some("ipv4") => "127.0.0.1",
        Some("ipv6") => "::1",
        _ => "…",
    };
    let plain = match plain.chars().count() < least {
        true => "x".repeat(least),
        false => plain.to_owned(),
    };
    match word("pattern") {
        Some(pattern) => json!(matching(pattern, schema).unwrap_or(plain)),
        None => json!(plain),
    }
}

/// A string that matches a pattern, if a simple one does.
fn matching(pattern: &str, schema: &Value) -> Option<String> {
    let mut rules = Map::from_iter([("type".to_owned(), json!("string"))]);
    for key in ["pattern", "minLength", "maxLength", "format"] {
        rules.extend(schema.get(key).map(|rule| (key.to_owned(), rule.clone())));
    }
    let contract = Contract::parse(&Value::Object(rules).into());
    // Many patterns begin with literal text: `^projects/[^/]+$`.
    let literal = |c: &char| !"\\[](){}.*+?|^$".contains(*c);
    let head: String = pattern.trim_start_matches('^').chars().take_while(literal).collect();
    let more = TEXTS.iter().map(|text| format!("{head}{text}"));
    let long = (1..=64).map(|length| "a1".repeat(32)[..length].to_owned());
    let digits = (1..=20).map(|length| "1234567890".repeat(2)[..length].to_owned());
    let mut all = TEXTS.iter().map(|text| (*text).to_owned()).chain(more).chain(long).chain(digits);
    all.find(|text| contract.check(&json!(text)).is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(schema: Value, expected: Value) {
        let sample = Contract::parse(&schema.into()).sample();
        assert_eq!((sample.arguments, sample.fits), (expected, true));
    }

    #[test]
    fn a_sample_has_everything_that_is_required_however_deep() {
        let edit = json!({
            "type": "object",
            "properties": {"old": {"type": "string"}, "n": {"type": "integer", "minimum": 3}},
            "required": ["old", "n"],
        });
        check(
            json!({
                "type": "object",
                "properties": {
                    "edits": {"type": "array", "minItems": 2, "items": {"$ref": "#/$defs/edit"}},
                    "mode": {"enum": ["fast", "slow"]},
                    "when": {"type": "string", "format": "date"},
                    "id": {"type": "string", "pattern": "^task_[0-9]{4}$"},
                    "key": {"type": "string", "minLength": 4},
                    "kind": {"const": "x"},
                    "any": {"anyOf": [{"type": "null"}, {"type": "boolean"}]},
                    "left": {"type": "string"},
                },
                "required": ["edits", "mode", "when", "id", "key", "kind", "any"],
                "$defs": {"edit": edit},
            }),
            json!({
                "edits": [{"old": "…", "n": 3}, {"old": "…", "n": 3}],
                "mode": "fast",
                "when": "2026-01-31",
                "id": "task_1234",
                "key": "xxxx",
                "kind": "x",
                "any": true,
            }),
        );
    }

    #[test]
    fn the_schemas_own_example_comes_first_unless_it_is_wrong() {
        let with = |example: Value| json!({"properties": {"a": {"type": "string", "examples": [example]}}, "required": ["a"]});
        check(with(json!("this")), json!({"a": "this"}));
        check(with(json!(7)), json!({"a": "…"}));
    }

    #[test]
    fn of_a_choice_the_branch_that_fits_is_taken() {
        let schema = json!({
            "properties": {"a": {"type": "string"}, "b": {"type": "string", "pattern": "^(?!)"}},
            "oneOf": [{"required": ["b"]}, {"required": ["a"]}],
        });
        check(schema, json!({"a": "…"}));
    }

    #[test]
    fn a_schema_that_asks_for_itself_everywhere_costs_little() {
        let names: Vec<String> = (0..30).map(|n| format!("a{n}")).collect();
        let itself: Map<String, Value> =
            names.iter().map(|name| (name.clone(), json!({"$ref": "#"}))).collect();
        let schema = json!({"type": "object", "properties": itself, "required": names});
        let sample = Contract::parse(&schema.into()).sample();
        assert!(!sample.fits && sample.arguments.to_string().len() < 10_000);
    }

    #[test]
    fn what_cannot_be_made_is_not_said_to_fit() {
        let schema =
            json!({"properties": {"a": {"type": "string", "pattern": "^(?!)"}}, "required": ["a"]});
        assert!(!Contract::parse(&schema.into()).sample().fits);
    }
}
