//! Trust levels, and the digest that identifies the definition of a tool.

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
    /// The operator knows it; destructive calls need approval.
    Verified,
    /// It may do everything without approval.
    Trusted,
}

/// A hash of a tool's definition: it changes with anything that a model sees of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Digest(String);

/// The definition of a tool as the operator vouched for it, stored so that a later
/// change can be shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeenTool {
    pub description: String,
    pub input: Value,
    pub output: Value,
    pub annotations: Value,
    /// All other members that a client may show or use: `_meta`, `icons`, `execution`,
    /// and unknown ones. `null` where there are none.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub extras: Value,
}

impl Digest {
    /// The digest of a tool as it is listed.
    pub fn of(tool: &Tool) -> Digest {
        let seen = SeenTool::of(tool);
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

impl SeenTool {
    pub fn of(tool: &Tool) -> SeenTool {
        // JSON that cannot be parsed is compared as text.
        let value = |json: &Json| {
            json.to_value().unwrap_or_else(|_| Value::String(json.as_str().to_owned()))
        };
        let member = |key: &str| tool.raw.member(key).as_ref().map_or(Value::Null, value);
        SeenTool {
            description: tool.description.clone().unwrap_or_default(),
            input: value(&tool.input_schema),
            output: tool.output_schema.as_ref().map_or(Value::Null, value),
            annotations: member("annotations"),
            extras: extras(tool),
        }
    }

    /// The hints that it gave about itself.
    pub fn hints(&self) -> Annotations {
        let hint = |key: &str| self.annotations.get(key).and_then(Value::as_bool);
        Annotations {
            read_only: hint("readOnlyHint"),
            destructive: hint("destructiveHint"),
            idempotent: hint("idempotentHint"),
            open_world: hint("openWorldHint"),
        }
    }
}

/// Whether a member of a definition is in the digest or in a field of [`SeenTool`]
/// other than `extras`.
fn is_covered(key: &str, raw: &Json) -> bool {
    match key {
        "name" | "inputSchema" | "outputSchema" | "annotations" => true,
        // Where they are not strings we ignore them, but a client still gets them.
        "title" | "description" => raw.string_value().is_some(),
        _ => false,
    }
}

/// The members of a definition that no other field of [`SeenTool`] covers, also unknown
/// ones, because a client may show them to a model. Empty ones are left out.
fn extras(tool: &Tool) -> Value {
    let mut found = Map::new();
    let members = Object::parse(&tool.raw).unwrap_or_default();
    for (key, raw) in members.iter().filter(|(key, raw)| !is_covered(key, raw)) {
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
