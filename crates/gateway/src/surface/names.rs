//! How long what a caller names may be, and what no URI has in it.
//!
//! A name is taken apart, compared with all others and looked for among those
//! that are spelt like it, on the thread that answers everybody. So its length
//! is looked at first, at the one place where every request of every surface
//! comes in.

use catalog::name;
use tool::{Ask, Call, Context, Json, Object, Reply, RpcError};

use super::meta;
use crate::choice::Surface;
use crate::dispatch::{Dispatcher, Origin};
use crate::error::GatewayError;
use crate::lengths::{LONGEST, too_long};
use policy::code::Code;
use policy::refusal::Refused;
use policy::uri;

/// The members of our own tools that name something, in any spelling.
const CALL: [&str; 2] = ["namespace", "function"];
const HELP: [&str; 5] = ["namespace", "function", "query", "format", "params"];
const SKILL: [&str; 8] =
    ["namespace", "skillname", "version", "name", "skill", "function", "query", "path"];
const META: [&str; 8] =
    ["tool_id", "resource_id", "prompt_id", "path", "query", "handle", "format", "uri"];

/// How many of [`SKILL`] are ours where a skill is named: what else there is are
/// values for the skill.
const OF_SKILL: usize = 3;

/// What is answered to a request with a name that is not taken; `None` where
/// all of them are.
pub(crate) fn refused(
    ask: &Ask,
    pipeline: &Dispatcher,
    origin: Origin,
    context: &Context,
) -> Option<Reply> {
    let why = match ask {
        Ask::Call(call) => in_call(call, origin.surface),
        Ask::ReadResource(read) => in_uri("uri", &read.uri),
        Ask::Prompt(prompt) => too_long("name", &prompt.name),
        Ask::Complete(params) => in_completion(params),
        Ask::Other { method, params } => too_long("method", method).or_else(|| in_params(params)),
    }?;
    let is_named = |call: &Call| too_long("name", &call.name).is_none();
    let reply = match ask {
        Ask::Call(call) if is_named(call) => match origin.surface {
            Surface::Cash | Surface::Auto | Surface::Direct => {
                Reply::error_text(&format!("**Error:** {why}."))
            }
            Surface::Gateway | Surface::Proxy => {
                GatewayError::new(Code::ArgsInvalid, why, "").to_reply()
            }
        },
        Ask::Call(_)
        | Ask::ReadResource(_)
        | Ask::Prompt(_)
        | Ask::Complete(_)
        | Ask::Other { .. } => Reply::Error(RpcError::new(-32602, why)),
    };
    pipeline.refused(origin, context, Refused::BadCall, &reply);
    Some(reply)
}

/// What is wrong with the names in a call of a function.
pub(crate) fn in_one_call(arguments: &Json) -> Option<String> {
    if arguments.as_str().len() <= LONGEST {
        return None;
    }
    in_members(&Object::parse(arguments).ok()?, &CALL)
}

fn in_call(call: &Call, surface: Surface) -> Option<String> {
    if let wrong @ Some(_) = too_long("name", &call.name) {
        return wrong;
    }
    let arguments = call.arguments.as_ref()?;
    // Nothing in it can be too long, and that is almost always so.
    if arguments.as_str().len() <= LONGEST {
        return None;
    }
    match (surface, call.name.as_str()) {
        (Surface::Cash | Surface::Auto, "call" | "call_read") => in_one_call(arguments),
        (Surface::Cash | Surface::Auto, "help") => in_members(&with_kwargs(arguments), &HELP),
        (Surface::Cash | Surface::Auto, "skill") => {
            let members = with_kwargs(arguments);
            in_members(&members, if names_skill(&members) { &SKILL[..OF_SKILL] } else { &SKILL })
        }
        (Surface::Gateway | Surface::Proxy, tool) if meta::names().any(|own| own == tool) => {
            in_members(&Object::parse(arguments).unwrap_or_default(), &META)
        }
        // What an upstream's tool takes is the upstream's.
        (_, _) => None,
    }
}

/// Whether a skill is named, whichever of several names counts.
fn names_skill(members: &Object) -> bool {
    let names = members.iter().filter(|(key, _)| name::same(key, "skillname"));
    let mut names = names.map(|(_, value)| value.string_value().unwrap_or_default()).peekable();
    names.peek().is_some() && names.all(|name| !name.is_empty())
}

/// The members of an object, and those of the `kwargs` in it.
fn with_kwargs(arguments: &Json) -> Object {
    let mut members = Object::new();
    for (key, value) in Object::parse(arguments).unwrap_or_default() {
        if name::same(&key, "kwargs") {
            let written = value.string_value().and_then(|text| Json::parse(text).ok());
            let inner = Object::parse(&written.unwrap_or(value)).unwrap_or_default();
            inner.into_iter().for_each(|(key, value)| members.push(key, value));
        } else {
            members.push(key, value);
        }
    }
    members
}

fn in_members(members: &Object, names: &[&str]) -> Option<String> {
    members.iter().find_map(|(key, value)| {
        let member = names.iter().find(|name| name::same(key, name))?;
        // What is no text is read as its JSON by those that are lenient.
        let text = value.string_value().unwrap_or_else(|| value.to_string());
        if *member == "uri" { in_uri(member, &text) } else { too_long(member, &text) }
    })
}

fn in_completion(params: &Object) -> Option<String> {
    let object = |key: &str| params.get(key).and_then(|json| Object::parse(json).ok());
    let reference = object("ref").unwrap_or_default();
    let text = |of: &Object, key: &str| of.get(key).and_then(Json::string_value);
    let argument = object("argument").unwrap_or_default();
    text(&reference, "uri")
        .and_then(|uri| in_uri("uri", &uri))
        .or_else(|| text(&reference, "name").and_then(|name| too_long("name", &name)))
        .or_else(|| text(&argument, "name").and_then(|name| too_long("name", &name)))
}

fn in_params(params: &Object) -> Option<String> {
    let text = |key: &str| params.get(key).and_then(Json::string_value);
    if let Some(uri) = text("uri") {
        return in_uri("uri", &uri);
    }
    let names = ["name", "taskId", "cursor", "level"];
    names.iter().find_map(|key| too_long(key, &text(key)?))
}

fn in_uri(member: &str, text: &str) -> Option<String> {
    uri::defect(text).map(|why| format!("`{member}` {why}"))
}

#[cfg(test)]
mod tests;
