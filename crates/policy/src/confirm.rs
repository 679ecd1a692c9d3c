//! What comes with a call for whoever asks for approval: a token, where tokens
//! are given out, or the wish not to wait.
//!
//! It travels in `_meta` or beside a surface's own arguments; among a tool's it
//! is understood where the tool has no such argument, and never passed on.

use catalog::{Contract, Problem, name};
use tool::{Call, Json, Object};

/// Under which key of `_meta` a token travels.
pub const META_KEY: &str = "gatelet/confirm";

/// The argument of a surface that carries a token.
pub const ARGUMENT: &str = "confirm";

/// Comes in the place of a token from a caller that does not wait for approval
/// and wants to hear at once under which number it is asked for.
pub const LATER: &str = "confirm-later";

/// What every token starts with, so that it cannot be taken for an argument.
pub const PREFIX: &str = "confirm-";

/// Takes the token out of what came with a call, so that it is not passed on.
pub fn take(rest: &mut Object) -> Option<String> {
    let meta = rest.get("_meta").filter(|meta| meta.as_str().contains(META_KEY))?;
    let mut meta = Object::parse(meta).ok()?;
    let token = meta.remove(META_KEY)?;
    if meta.is_empty() {
        rest.remove("_meta");
    } else {
        rest.set("_meta", meta.to_json());
    }
    token.parse_as().ok()
}

/// Moves a token from a surface's own arguments to `_meta`.
pub fn lift(mut call: Call) -> Call {
    if let Some(arguments) = &mut call.arguments {
        lift_out(arguments, &mut call.other_params);
    }
    call
}

/// Moves a token from a tool's arguments to `_meta`, unless the tool has an
/// argument of that name.
pub fn lift_from(arguments: &mut Json, contract: &Contract, rest: &mut Object) {
    if contract.parameter(ARGUMENT).is_none() {
        lift_out(arguments, rest);
    }
}

fn lift_out(arguments: &mut Json, rest: &mut Object) {
    if !arguments.mentions(PREFIX) {
        return;
    }
    let Ok(mut members) = Object::parse(arguments) else { return };
    let Some(key) = key(&members) else { return };
    let token = members.get(&key).and_then(Json::string_value);
    let Some(token) = token.filter(|token| token.starts_with(PREFIX)) else { return };
    members.remove(&key);
    *arguments = members.to_json();
    let meta = rest.get("_meta").and_then(|meta| Object::parse(meta).ok());
    let mut meta = meta.unwrap_or_default();
    meta.set(META_KEY, Json::encode(&token));
    rest.set("_meta", meta.to_json());
}

fn key(members: &Object) -> Option<String> {
    members.keys().find(|key| name::same(key, ARGUMENT)).map(str::to_owned)
}

/// What is wrong with a `confirm` that is no token, once tokens are lifted.
///
/// Among a tool's arguments only a yes is: anything else may be meant for a
/// tool that does not say what it takes.
pub fn misread(arguments: &Json, contract: &Contract) -> Option<Problem> {
    if !arguments.mentions(ARGUMENT) || contract.parameter(ARGUMENT).is_some() {
        return None;
    }
    let members = Object::parse(arguments).ok()?;
    let said = members.get(&key(&members)?)?;
    let said = said.string_value().unwrap_or_else(|| said.to_string()).to_lowercase();
    let is_yes = ["true", "yes", "y", "ok", "1"].contains(&said.trim());
    is_yes.then(|| Problem::new(ARGUMENT, NO_TOKEN.to_owned()))
}

/// The message for a caller who writes something else in place of a token.
pub const NO_TOKEN: &str = "takes the token that was given for this call, where tokens are given, \
     and never a yes; make the call without it: the answer says what approval it needs";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_token_moves_from_the_surface_to_meta_and_nothing_else_does() {
        let call = |text: &str| lift(Call::new("call", Json::parse(text.to_owned()).unwrap()));
        let mut lifted =
            call(r#"{"namespace":"n","confirm":"confirm-12","kwargs":{"confirm":"x"}}"#);
        assert_eq!(
            lifted.arguments.unwrap().as_str(),
            r#"{"namespace":"n","kwargs":{"confirm":"x"}}"#
        );
        assert_eq!(take(&mut lifted.other_params).as_deref(), Some("confirm-12"));
        assert!(lifted.other_params.is_empty(), "a token does not go on");
        let mut inner = Object::new();
        let mut kwargs = Json::parse(r#"{"a":1,"Confirm":"confirm-12"}"#.to_owned()).unwrap();
        lift_from(&mut kwargs, &Contract::read(&json!({}).into()), &mut inner);
        assert_eq!(kwargs.as_str(), r#"{"a":1}"#);
        assert_eq!(take(&mut inner).as_deref(), Some("confirm-12"));
        let own = Contract::read(&json!({"properties": {"confirm": {"type": "string"}}}).into());
        let mut kwargs = Json::parse(r#"{"confirm":"confirm-12"}"#.to_owned()).unwrap();
        lift_from(&mut kwargs, &own, &mut inner);
        assert_eq!(kwargs.as_str(), r#"{"confirm":"confirm-12"}"#, "the tool's own");
        let mut plain = call(r#"{"confirm":"yes"}"#);
        assert_eq!(plain.arguments.unwrap().as_str(), r#"{"confirm":"yes"}"#);
        assert_eq!(take(&mut plain.other_params), None);
    }
}
