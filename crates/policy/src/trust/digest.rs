//! The digest that identifies a tool as it is, and its trust state.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use tool::{Annotations, Json, Object, Tool, hex};

/// How much a tool is trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TrustLevel {
    /// Nobody vouches for it.
    Untrusted,
    /// The operator knows it; what destroys asks first.
    Verified,
    /// It may do everything it does.
    Trusted,
}

/// What identifies a tool as it is: changes with anything a model sees of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Digest(String);

/// What the operator vouched for, kept so that a change can be shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    pub description: String,
    pub input: Value,
    pub output: Value,
    pub annotations: Value,
    /// What else a client is given to act on or to show: `_meta`, `icons`,
    /// `execution`, and members that no revision knows. Nothing where it has none.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub extras: Value,
}

impl Digest {
    /// The digest of a tool as it is listed.
    pub fn of(tool: &Tool) -> Digest {
        let seen = Seen::of(tool);
        let mut whole = serde_json::json!({
            "name": tool.name,
            "title": tool.title,
            "description": seen.description,
            "input": seen.input,
            "output": seen.output,
            "annotations": seen.annotations,
        });
        if !seen.extras.is_null() {
            whole["extras"] = seen.extras;
        }
        whole.sort_all_objects();
        let hash = Sha256::digest(whole.to_string().as_bytes());
        Digest(hex::encode(&hash))
    }

    /// The first characters, enough to tell two apart by eye.
    pub fn short(&self) -> &str {
        self.0.get(..12).unwrap_or(&self.0)
    }
}

impl Seen {
    pub fn of(tool: &Tool) -> Seen {
        // What cannot be understood is compared as text.
        let value = |json: &Json| {
            json.to_value().unwrap_or_else(|_| Value::String(json.as_str().to_owned()))
        };
        let member = |key: &str| tool.raw.member(key).as_ref().map_or(Value::Null, value);
        Seen {
            description: tool.description.clone().unwrap_or_default(),
            input: value(&tool.input_schema),
            output: tool.output_schema.as_ref().map_or(Value::Null, value),
            annotations: member("annotations"),
            extras: extras(tool),
        }
    }

    /// What it said of itself.
    pub fn hints(&self) -> Annotations {
        let said = |key: &str| self.annotations.get(key).and_then(Value::as_bool);
        Annotations {
            read_only: said("readOnlyHint"),
            destructive: said("destructiveHint"),
            idempotent: said("idempotentHint"),
            open_world: said("openWorldHint"),
        }
    }
}

/// Whether another part of [`Seen`], or the digest, holds a member of a definition.
fn is_held(key: &str, raw: &Json) -> bool {
    match key {
        "name" | "inputSchema" | "outputSchema" | "annotations" => true,
        // Where they are no text they are read as absent, and a host gets them all the same.
        "title" | "description" => raw.string_value().is_some(),
        _ => false,
    }
}

/// The members of a definition that no other part of [`Seen`] holds, whatever they
/// are: a host may show a model what no revision knows. An empty one says
/// nothing, so it is left out.
fn extras(tool: &Tool) -> Value {
    let mut found = Map::new();
    let members = Object::parse(&tool.raw).unwrap_or_default();
    for (key, raw) in members.iter().filter(|(key, raw)| !is_held(key, raw)) {
        let value = raw.to_value().unwrap_or_else(|_| Value::String(raw.as_str().to_owned()));
        let is_empty = match &value {
            Value::Null => true,
            Value::Array(items) => items.is_empty(),
            Value::Object(members) => members.is_empty(),
            Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        };
        if !is_empty {
            found.insert(key.to_owned(), value);
        }
    }
    if found.is_empty() { Value::Null } else { Value::Object(found) }
}

impl fmt::Display for TrustLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TrustLevel::Untrusted => "untrusted",
            TrustLevel::Verified => "verified",
            TrustLevel::Trusted => "trusted",
        })
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_changes_with_all_that_a_model_sees() {
        let tool = |text: &str| Tool::parse(Json::parse(text.to_owned()).unwrap()).unwrap();
        let base = tool(r#"{"name":"t","description":"d","inputSchema":{"a":1,"b":2}}"#);
        let same = tool(r#"{"inputSchema":{"b":2,"a":1},"description":"d","name":"t","_meta":{}}"#);
        assert_eq!(Digest::of(&base), Digest::of(&same));
        for other in [
            r#"{"name":"u","description":"d","inputSchema":{"a":1,"b":2}}"#,
            r#"{"name":"t","description":"D","inputSchema":{"a":1,"b":2}}"#,
            r#"{"name":"t","description":"d","inputSchema":{"a":1}}"#,
            r#"{"name":"t","description":"d","inputSchema":{"a":1,"b":2},"outputSchema":{}}"#,
            r#"{"name":"t","description":"d","inputSchema":{"a":1,"b":2},"annotations":{"readOnlyHint":true}}"#,
            r#"{"name":"t","description":"d","inputSchema":{"a":1,"b":2},"_meta":{"gatelet/cash":{"function":"f"}}}"#,
            r#"{"name":"t","description":"d","inputSchema":{"a":1,"b":2},"icons":[{"src":"https://elsewhere.example/i"}]}"#,
            r#"{"name":"t","description":"d","inputSchema":{"a":1,"b":2},"execution":{"taskSupport":"required"}}"#,
            r#"{"name":"t","description":"d","inputSchema":{"a":1,"b":2},"instructions":"EVIL"}"#,
            r#"{"name":"t","description":"d","inputSchema":{"a":1,"b":2},"x-vendor":{"usage":["EVIL"]}}"#,
            r#"{"name":"t","description":["EVIL"],"inputSchema":{"a":1,"b":2}}"#,
            r#"{"name":"t","title":{"en":"EVIL"},"description":"d","inputSchema":{"a":1,"b":2}}"#,
        ] {
            assert_ne!(Digest::of(&base), Digest::of(&tool(other)), "{other}");
        }
    }
}
