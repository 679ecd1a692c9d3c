//! The `confirm` argument of a call: an approval token, or the wish not to wait
//! for approval.
//!
//! It travels in `_meta` or among the arguments of a surface's own tool. Among the
//! arguments of an upstream's tool it is recognised where that tool has no argument
//! of this name. It is never passed on to the upstream.

use catalog::{Contract, Problem, name};
use tool::{Call, Json, Object};

/// The key of `_meta` under which a token travels.
pub const META_KEY: &str = "gatelet/confirm";

/// The argument of a surface that carries a token.
pub const ARGUMENT: &str = "confirm";

/// A caller sends this in place of a token when it does not wait for approval and
/// wants the number of the approval request at once.
pub const DO_NOT_WAIT: &str = "confirm-later";

/// The prefix of every token, which tells it from an ordinary argument.
pub const PREFIX: &str = "confirm-";

/// Removes the token from the `_meta` of a call, so that it is not passed on.
pub fn take_token(rest: &mut Object) -> Option<String> {
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

/// Moves a token from the arguments of a surface's own tool to `_meta`.
pub fn move_to_meta(mut call: Call) -> Call {
    if let Some(arguments) = &mut call.arguments {
        move_token(arguments, &mut call.other_params);
    }
    call
}

/// Moves a token from the arguments of an upstream's tool to the `_meta` in `rest`,
/// unless the tool itself has an argument of that name.
pub fn move_to_meta_unless_declared(arguments: &mut Json, contract: &Contract, rest: &mut Object) {
    if contract.parameter(ARGUMENT).is_none() {
        move_token(arguments, rest);
    }
}

fn move_token(arguments: &mut Json, rest: &mut Object) {
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

/// The problem with a `confirm` that is a plain yes instead of a token. Call it
/// after tokens were moved to `_meta`.
///
/// Any other value may be meant for a tool that does not declare its arguments.
pub fn find_yes_instead_of_token(arguments: &Json, contract: &Contract) -> Option<Problem> {
    if !arguments.mentions(ARGUMENT) || contract.parameter(ARGUMENT).is_some() {
        return None;
    }
    let members = Object::parse(arguments).ok()?;
    let given = members.get(&key(&members)?)?;
    let given = given.string_value().unwrap_or_else(|| given.to_string()).to_lowercase();
    let is_yes = ["true", "yes", "y", "ok", "1"].contains(&given.trim());
    is_yes.then(|| Problem::new(ARGUMENT, NOT_A_TOKEN.to_owned()))
}

/// The message for a caller who sends something else in place of a token.
pub const NOT_A_TOKEN: &str = "takes the token that was given for this call, where tokens are given, \
     and never a yes; make the call without it: the answer says what approval it needs";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_token_moves_from_the_surface_to_meta_and_nothing_else_does() {
        let call =
            |text: &str| move_to_meta(Call::new("call", Json::parse(text.to_owned()).unwrap()));
        let mut lifted =
            call(r#"{"namespace":"n","confirm":"confirm-12","kwargs":{"confirm":"x"}}"#);
        assert_eq!(
            lifted.arguments.unwrap().as_str(),
            r#"{"namespace":"n","kwargs":{"confirm":"x"}}"#
        );
        assert_eq!(take_token(&mut lifted.other_params).as_deref(), Some("confirm-12"));
        assert!(lifted.other_params.is_empty(), "a token does not go on");
        let mut inner = Object::new();
        let mut kwargs = Json::parse(r#"{"a":1,"Confirm":"confirm-12"}"#.to_owned()).unwrap();
        move_to_meta_unless_declared(&mut kwargs, &Contract::parse(&json!({}).into()), &mut inner);
        assert_eq!(kwargs.as_str(), r#"{"a":1}"#);
        assert_eq!(take_token(&mut inner).as_deref(), Some("confirm-12"));
        let own = Contract::parse(&json!({"properties": {"confirm": {"type": "string"}}}).into());
        let mut kwargs = Json::parse(r#"{"confirm":"confirm-12"}"#.to_owned()).unwrap();
        move_to_meta_unless_declared(&mut kwargs, &own, &mut inner);
        assert_eq!(kwargs.as_str(), r#"{"confirm":"confirm-12"}"#, "the tool's own");
        let mut plain = call(r#"{"confirm":"yes"}"#);
        assert_eq!(plain.arguments.unwrap().as_str(), r#"{"confirm":"yes"}"#);
        assert_eq!(take_token(&mut plain.other_params), None);
    }
}
