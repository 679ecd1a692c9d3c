//! Checks whether the schema of an upstream's tool can be used.
//!
//! Schemas come from outside. They are measured and checked against their meta-schema
//! when a listing is checked. Problems are reported and the tool stays; a call of a tool
//! with a broken schema fails for that reason and not because of its arguments.

use serde::Serialize;
use serde_json::Value;
use tool::{Finding, Json, Severity};

/// How large a schema may be before it is reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The bytes of its most compact form.
    pub bytes: usize,
    pub depth: usize,
    /// The properties at all levels together.
    pub properties: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { bytes: 65_536, depth: 32, properties: 512 }
    }
}

/// A problem of a schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SchemaProblem {
    pub kind: ProblemKind,
    pub detail: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
/// The kind of a problem.
pub enum ProblemKind {
    SizeExceeded,
    DepthExceeded,
    PropertiesExceeded,
    NotWellFormed,
    /// Arguments are not checked against the schema, because that would take too long.
    Unchecked,
}

/// Returns all problems of a schema.
pub fn examine(schema: &Json, limits: &Limits) -> Vec<SchemaProblem> {
    let mut found = Vec::new();
    let mut over = |kind, detail: Option<String>| {
        found.extend(detail.map(|detail| SchemaProblem { kind, detail }));
    };
    let Ok(value) = schema.to_value() else {
        over(ProblemKind::NotWellFormed, Some("it cannot be read: nested too deep".to_owned()));
        return found;
    };
    let (bytes, depth, properties) = measure(&value);
    let limit = limits.bytes;
    over(ProblemKind::SizeExceeded, (limit < bytes).then(|| format!("{bytes} bytes > {limit}")));
    let limit = limits.depth;
    over(ProblemKind::DepthExceeded, (limit < depth).then(|| format!("depth {depth} > {limit}")));
    let limit = limits.properties;
    let many = (limit < properties).then(|| format!("{properties} properties > {limit}"));
    over(ProblemKind::PropertiesExceeded, many);
    match malformed(&value) {
        Some(why) => over(ProblemKind::NotWellFormed, Some(why)),
        None => over(ProblemKind::Unchecked, catalog::contract::too_costly(&value)),
    }
    found
}

/// Measures a schema: returns the bytes of its compact ASCII form, its depth, and its
/// number of properties.
pub fn measure(schema: &Value) -> (usize, usize, usize) {
    let ascii = |text: &str| catalog::id::ascii_string(text).len();
    match schema {
        Value::Object(members) => {
            let own = schema.get("properties").and_then(Value::as_object).map_or(0, |p| p.len());
            let (mut bytes, mut depth, mut properties) =
                (2 + members.len().saturating_sub(1), 0, own);
            for (key, part) in members {
                let below = measure(part);
                bytes += ascii(key) + 1 + below.0;
                depth = depth.max(1 + below.1);
                properties += below.2;
            }
            (bytes, depth, properties)
        }
        Value::Array(elements) => {
            let (mut bytes, mut depth, mut properties) =
                (2 + elements.len().saturating_sub(1), 0, 0);
            for part in elements {
                let below = measure(part);
                bytes += below.0;
                depth = depth.max(1 + below.1);
                properties += below.2;
            }
            (bytes, depth, properties)
        }
        Value::String(text) => (ascii(text), 0, 0),
        Value::Null | Value::Bool(_) | Value::Number(_) => (schema.to_string().len(), 0, 0),
    }
}

/// Returns why a schema does not fit its meta-schema, if it does not. Nothing is fetched.
pub fn malformed(schema: &Value) -> Option<String> {
    match schema {
        Value::Object(_) | Value::Bool(_) => {}
        Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            return Some("a schema is an object".to_owned());
        }
    }
    // An unknown dialect is read as the newest one.
    let dialect = schema.get("$schema").and_then(Value::as_str).unwrap_or_default();
    let checked = match dialect.contains("://json-schema.org/") {
        true => validator::check_by_its_own_rules(schema),
        false => validator::check_by_newest_rules(schema),
    };
    match checked {
        Ok(()) => broken_reference(schema, schema),
        Err(error) => {
            let message = error.to_string();
            Some(message.lines().next().unwrap_or_default().chars().take(200).collect())
        }
    }
}

/// Describes the first reference to a missing part or to another document: no call of such
/// a tool can be validated. Anchors, escapes and schemas with an `$id` are left to the
/// validator.
fn broken_reference(part: &Value, whole: &Value) -> Option<String> {
    match part {
        Value::Object(members) => {
            if whole.get("$id").is_none()
                && let Some(Value::String(to)) = members.get("$ref")
            {
                let pointer = to.strip_prefix('#');
                match pointer {
                    None => return Some(format!("`{to}` is another document; none is fetched")),
                    Some(pointer) if pointer.starts_with('/') && !pointer.contains('%') => {
                        if whole.pointer(pointer).is_none() {
                            return Some(format!("`{to}` leads nowhere"));
                        }
                    }
                    Some(_) => {}
                }
            }
            members.values().find_map(|below| broken_reference(below, whole))
        }
        Value::Array(parts) => parts.iter().find_map(|below| broken_reference(below, whole)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// Makes a finding for the operator of a problem.
pub fn finding(problem: &SchemaProblem, subject: &str) -> Finding {
    let severity = match problem.kind {
        ProblemKind::NotWellFormed => Severity::Error,
        ProblemKind::SizeExceeded
        | ProblemKind::DepthExceeded
        | ProblemKind::PropertiesExceeded
        | ProblemKind::Unchecked => Severity::Warning,
    };
    let word = serde_json::to_value(problem.kind).ok();
    let word = word.as_ref().and_then(Value::as_str).unwrap_or_default().replace('_', "-");
    let code = format!("schema-{word}");
    Finding::new(severity, &code, subject, problem.detail.clone())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The schemas that the vectors describe without writing them out.
    fn schema(case: &Value) -> Value {
        let name = case["case"].as_str().unwrap();
        let number = |prefix: &str| name.strip_prefix(prefix)?.split(' ').next()?.parse().ok();
        if let Some(depth) = number("deep ") {
            let nest = |inner, _: usize| json!({"type": "object", "properties": {"n": inner}});
            return (0..depth).fold(json!({"type": "string"}), nest);
        }
        if let Some(count) = name.strip_suffix(" props").and_then(|n| n.parse::<usize>().ok()) {
            let properties: serde_json::Map<String, Value> =
                (0..count).map(|n| (format!("p{n}"), json!({}))).collect();
            return json!({"properties": properties});
        }
        if name == "64k" {
            return json!({"description": "x".repeat(65_600)});
        }
        case["schema"].clone()
    }

    #[test]
    fn schemas_are_judged_as_in_the_vectors() {
        let text = include_str!("../tests/vectors/contextweaver_schema_health.json");
        let vectors: Value = serde_json::from_str(text).unwrap();
        for case in vectors["cases"].as_array().unwrap() {
            let schema = schema(case);
            let (bytes, depth, properties) = measure(&schema);
            assert_eq!(json!([depth, properties]), case["metrics"], "{case}");
            if case["schema"].is_object() {
                assert_eq!(bytes as u64, case["bytes"], "{case}");
            }
            let kinds = |value: Value| -> Vec<Value> {
                let list = value.as_array().cloned().unwrap_or_default();
                list.iter().map(|finding| finding["kind"].clone()).collect()
            };
            let found = examine(&schema.into(), &Limits::default());
            assert_eq!(kinds(json!(found)), kinds(case["findings"].clone()), "{case}");
        }
    }

    #[test]
    fn a_reference_that_leads_nowhere_is_found_before_anybody_calls() {
        let told = |schema: Value| malformed(&schema).unwrap_or_default();
        let within = json!({"$defs": {"a": {}}, "properties": {"x": {"$ref": "#/$defs/a"}}});
        assert_eq!(told(within), "");
        assert_eq!(told(json!({"properties": {"$ref": {"type": "string"}}})), "");
        assert_eq!(told(json!({"allOf": [{"$ref": "#/$defs/x"}]})), "`#/$defs/x` leads nowhere");
        assert!(told(json!({"$ref": "https://x.example/s"})).contains("none is fetched"));
    }

    #[test]
    fn a_schema_that_is_too_much_work_is_told() {
        let twice = json!([{"$ref": "#"}, {"$ref": "#"}]);
        let found = examine(&json!({"allOf": twice}).into(), &Limits::default());
        let told = finding(&found[0], "up/tool");
        assert_eq!((found.len(), told.code.as_str()), (1, "schema-unchecked"));
    }

    #[test]
    fn odd_schemas_are_findings_and_no_panics() {
        for schema in ["[]", "7", "\"x\"", "null", r#"{"$ref":"http://127.0.0.1:1/x"}"#] {
            let schema = Json::parse(schema.to_owned()).unwrap();
            let problems = examine(&schema, &Limits::default());
            let codes = problems.iter().map(|problem| finding(problem, "up/tool").code);
            assert_eq!(codes.collect::<Vec<_>>(), ["schema-not-well-formed"], "{schema}");
        }
    }
}
