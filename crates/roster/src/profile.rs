//! The [`Profile`]: those capabilities of a client that make a difference to upstreams.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};
use tool::{Client, Json};

/// The capabilities that change what an upstream offers or asks.
///
/// Only these are forwarded. A client may declare anything, and every distinct
/// profile opens sessions of its own with every upstream. A list names the
/// values of it that are forwarded.
static FORWARDED: LazyLock<Value> = LazyLock::new(|| {
    json!({
        "elicitation": {"form": {}, "url": {}},
        "extensions": {
            "io.modelcontextprotocol/tasks": {},
            "io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]},
        },
        "roots": {},
        "sampling": {"context": {}, "tools": {}},
        "tasks": {
            "cancel": {},
            "list": {},
            "requests": {"elicitation": {"create": {}}, "sampling": {"createMessage": {}}},
        },
    })
});

/// A set of capabilities in a canonical form; equal profiles share sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Profile(String);

impl Profile {
    /// Returns the profile of a client.
    pub fn from_client(client: &Client) -> Profile {
        let Ok(declared @ Value::Object(_)) = client.capabilities.to_value() else {
            return Profile::default();
        };
        let Value::Object(mut kept) = forwarded(&declared, &FORWARDED) else {
            return Profile::default();
        };
        if kept.is_empty() {
            return Profile::default();
        }
        // gatelet itself announces changed roots, whether this client does or not.
        if let Some(Value::Object(roots)) = kept.get_mut("roots") {
            roots.insert("listChanged".to_owned(), Value::Bool(true));
        }
        let mut value = Value::Object(kept);
        value.sort_all_objects();
        Profile(value.to_string())
    }

    /// Returns the capabilities as JSON text; empty for none.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Makes a client with exactly these capabilities, to open sessions as.
    pub fn client(&self) -> Client {
        let capabilities = Json::parse(self.0.clone()).unwrap_or_else(|_| Json::empty_object());
        let version = env!("CARGO_PKG_VERSION");
        let raw = json!({"name": "gatelet", "version": version}).into();
        Client { capabilities, raw, version: version.to_owned(), ..Client::named("gatelet", "") }
    }
}

/// Returns the part of the declared capabilities that is in `known`.
fn forwarded(declared: &Value, known: &Value) -> Value {
    match known {
        Value::Object(known) => {
            let kept = |(key, known): (&String, &Value)| {
                let declared = declared.get(key).filter(|declared| !declared.is_null())?;
                Some((key.clone(), forwarded(declared, known)))
            };
            Value::Object(known.iter().filter_map(kept).collect::<Map<_, _>>())
        }
        Value::Array(known) => {
            let declared = declared.as_array().map(Vec::as_slice).unwrap_or_default();
            known.iter().filter(|value| declared.contains(value)).cloned().collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => known.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(capabilities: &str) -> Profile {
        let capabilities = Json::parse(capabilities.to_owned()).unwrap();
        Profile::from_client(&Client { capabilities, ..Client::named("c", "") })
    }

    #[test]
    fn clients_that_can_do_the_same_share_a_profile() {
        let one = profile(r#"{"sampling":{},"roots":{"listChanged":true},"x":1}"#);
        let two = profile(r#"{"roots":{},"sampling":{}}"#);
        assert_eq!(one, two);
        assert_eq!(
            one.client().capabilities.as_str(),
            r#"{"roots":{"listChanged":true},"sampling":{}}"#
        );
    }

    #[test]
    fn upstreams_are_told_which_gatelet_asks() {
        let raw = profile("{}").client().raw;
        assert_eq!(raw.member_as("version"), Some(env!("CARGO_PKG_VERSION").to_owned()));
    }

    #[test]
    fn what_upstreams_cannot_see_makes_no_profile_of_its_own() {
        assert_eq!(profile(r#"{"sampling":null,"odd":{}}"#), Profile::default());
        assert_eq!(profile("[]"), Profile::default());
        assert_ne!(profile(r#"{"sampling":{}}"#), profile(r#"{"sampling":{"tools":{}}}"#));
    }

    #[test]
    fn what_a_client_makes_up_makes_no_profile_of_its_own() {
        assert_eq!(profile(r#"{"experimental":{"n":1}}"#), Profile::default());
        for made_up in [
            r#"{"sampling":{"n":1}}"#,
            r#"{"sampling":17}"#,
            r#"{"sampling":{},"tasks":null,"experimental":{"a":{"b":[1,2]}}}"#,
        ] {
            assert_eq!(profile(made_up), profile(r#"{"sampling":{}}"#), "{made_up}");
        }
        let ui = |types: &str| {
            profile(&format!(
                r#"{{"extensions":{{"x/y":{{}},"io.modelcontextprotocol/ui":{{"mimeTypes":{types}}}}}}}"#
            ))
        };
        let known = r#"["text/html;profile=mcp-app"]"#;
        assert_eq!(ui(r#"["a","text/html;profile=mcp-app"]"#), ui(known));
        assert!(ui(known).text().contains("mcp-app"));
        let long = format!(r#"["{}"]"#, "x".repeat(100_000));
        assert!(ui(&long).text().len() < 100, "{}", ui(&long).text().len());
    }
}
