//! What a client can do, as far as an upstream can tell the difference.

use serde_json::{Map, Value};
use tool::{Client, Json};

/// The capabilities that change what an upstream offers or asks.
const TOLD: [&str; 6] = ["elicitation", "experimental", "extensions", "roots", "sampling", "tasks"];

/// A set of capabilities in a canonical form; equal profiles share sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Profile(String);

impl Profile {
    pub fn of(client: &Client) -> Profile {
        let Ok(Value::Object(declared)) = client.capabilities.value() else {
            return Profile::default();
        };
        let mut kept: Map<String, Value> = declared
            .into_iter()
            .filter(|(name, value)| TOLD.contains(&name.as_str()) && !value.is_null())
            .collect();
        if kept.is_empty() {
            return Profile::default();
        }
        // Whether the client announces new roots changes nothing upstream can
        // see: the gate always announces them.
        if let Some(roots) = kept.get_mut("roots").and_then(Value::as_object_mut) {
            roots.remove("listChanged");
        }
        let mut value = Value::Object(kept);
        value.sort_all_objects();
        Profile(value.to_string())
    }

    /// The capabilities as JSON text; empty for none.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// A client that can do exactly this.
    pub fn client(&self) -> Client {
        let capabilities = Json::parse(self.0.clone()).unwrap_or_else(|_| Json::empty_object());
        Client { capabilities, ..Client::named("gatelet", "") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(capabilities: &str) -> Profile {
        let capabilities = Json::parse(capabilities.to_owned()).unwrap();
        Profile::of(&Client { capabilities, ..Client::named("c", "") })
    }

    #[test]
    fn clients_that_can_do_the_same_share_a_profile() {
        let one = profile(r#"{"sampling":{},"roots":{"listChanged":true},"x":1}"#);
        let two = profile(r#"{"roots":{},"sampling":{}}"#);
        assert_eq!(one, two);
        assert_eq!(one.client().capabilities.as_str(), r#"{"roots":{},"sampling":{}}"#);
    }

    #[test]
    fn what_upstreams_cannot_see_makes_no_profile_of_its_own() {
        assert_eq!(profile(r#"{"sampling":null,"odd":{}}"#), Profile::default());
        assert_eq!(profile("[]"), Profile::default());
        assert_ne!(profile(r#"{"sampling":{}}"#), profile(r#"{"sampling":{"tools":{}}}"#));
    }
}
