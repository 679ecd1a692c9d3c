//! Only calls whose arguments fit go on.
//!
//! Makes the [`ValidCall`] that every later stage takes, so nothing can reach
//! an upstream unchecked.

use catalog::{Catalog, Contract, Problem, Slot};
use tool::{Annotations, Call, Json, Object};

use crate::dispatch::{Mode, Request};

/// A call that may be made, as far as its arguments are concerned.
#[derive(Clone, Debug)]
pub struct ValidCall {
    pub slot: Slot,
    /// The operator's label for the upstream.
    pub upstream: String,
    pub annotations: Annotations,
    call: Call,
}

impl ValidCall {
    /// What goes to the upstream.
    pub fn call(&self) -> &Call {
        &self.call
    }

    /// The tool's name at the upstream.
    pub fn tool(&self) -> &str {
        &self.call.name
    }

    /// Whether this call continues an earlier one with the client's input, so
    /// that nothing kept can answer it.
    pub fn continues(&self) -> bool {
        ["inputResponses", "requestState", "task"]
            .iter()
            .any(|key| self.call.rest.get(key).is_some())
    }

    /// What identifies the call: upstream, tool and arguments, whatever the
    /// order in which the arguments were given.
    pub fn key(&self) -> String {
        let arguments = self.call.arguments.as_ref().map_or_else(String::new, canonical);
        format!("{}\u{1f}{}\u{1f}{arguments}", self.upstream, self.call.name)
    }
}

/// Brings the arguments to the schema's spelling and types and checks them,
/// as far as the request's mode asks for it.
pub fn check(catalog: &Catalog, request: Request) -> Result<ValidCall, Vec<Problem>> {
    let arguments = match request.mode {
        Mode::Pass => request.arguments,
        Mode::Run | Mode::Strict | Mode::Plan => {
            let given = request.arguments.unwrap_or_else(Json::empty_object);
            Some(checked(catalog.contract(request.slot), given, request.mode)?)
        }
    };
    let tool = catalog.tool(request.slot);
    Ok(ValidCall {
        slot: request.slot,
        upstream: catalog.source(request.slot).label.clone(),
        annotations: tool.annotations,
        call: Call { name: tool.name.clone(), arguments, rest: request.rest },
    })
}

fn checked(contract: &Contract, given: Json, mode: Mode) -> Result<Json, Vec<Problem>> {
    let object = Object::parse(&given)
        .map_err(|_| vec![Problem::new("", "the arguments must be an object".to_owned())])?;
    let folded = if mode == Mode::Run { contract.fold(&object)? } else { None };
    let arguments = folded.map_or(given, |folded| folded.to_json());
    // What can be forwarded but not understood is the upstream's to judge.
    let Ok(value) = arguments.value() else { return Ok(arguments) };
    let problems = contract.check(&value);
    if problems.is_empty() { Ok(arguments) } else { Err(problems) }
}

/// JSON text with the keys of every object in order.
fn canonical(json: &Json) -> String {
    let Ok(mut value) = json.value() else { return json.to_string() };
    value.sort_all_objects();
    value.to_string()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use catalog::Source;
    use serde_json::json;
    use testkit::{listing, tool};

    use super::*;

    fn call(arguments: &str) -> Result<ValidCall, Vec<Problem>> {
        let schema =
            json!({"properties": {"a_b": {"type": "integer"}, "c": {}}, "required": ["a_b"]});
        let listed = Arc::new(listing(vec![tool("do-it", "", &schema)]));
        let (catalog, _) = Catalog::build(vec![Source::new("up", listed)]);
        check(&catalog, Request::new(Slot(0), Json::parse(arguments.to_owned()).unwrap()))
    }

    #[test]
    fn a_call_carries_the_upstreams_own_names() {
        let call = call(r#"{"aB":"7"}"#).unwrap();
        assert_eq!((call.upstream.as_str(), call.tool()), ("up", "do-it"));
        assert_eq!(call.call().arguments.as_ref().unwrap().as_str(), r#"{"a_b":7}"#);
    }

    #[test]
    fn arguments_that_fit_stay_byte_for_byte() {
        let call = call(r#"{"c" : 1e400, "a_b":1 }"#).unwrap();
        assert_eq!(call.call().arguments.as_ref().unwrap().as_str(), r#"{"c" : 1e400, "a_b":1 }"#);
    }

    #[test]
    fn the_key_does_not_depend_on_the_order_of_arguments() {
        let one = call(r#"{"a_b":1,"c":{"x":1,"y":2}}"#).unwrap();
        let two = call(r#"{"c":{"y":2,"x":1},"a_b":1}"#).unwrap();
        assert_eq!(one.key(), two.key());
        assert_ne!(one.key(), call(r#"{"a_b":2}"#).unwrap().key());
    }

    #[test]
    fn what_does_not_fit_does_not_go_on() {
        assert_eq!(call("{}").unwrap_err()[0].to_string(), "`a_b` is required");
        assert!(call("[]").is_err());
    }
}
