//! Refuses requests with names that are too long, or with malformed URIs.
//!
//! Resolving a name compares it with all others, on a thread that serves every caller.
//! So its length is checked first, where every request of every surface comes in.

use catalog::name;
use tool::{Ask, Call, Context, Json, Object, Reply, RpcError};

use super::meta;
use crate::choice::Surface;
use crate::dispatch::{Dispatcher, Origin};
use crate::error::GatewayError;
use crate::lengths::{MAX_NAME_CHARS, too_long};
use policy::code::Code;
use policy::refusal::RefusalCode;
use policy::uri;

/// The arguments of gatelet's own tools that are names, in any spelling.
const CALL_NAMES: [&str; 2] = ["namespace", "function"];
const HELP_NAMES: [&str; 5] = ["namespace", "function", "query", "format", "params"];
const SKILL_NAMES: [&str; 8] =
    ["namespace", "skillname", "version", "name", "skill", "function", "query", "path"];
const META_NAMES: [&str; 8] =
    ["tool_id", "resource_id", "prompt_id", "path", "query", "handle", "format", "uri"];

/// How many of [`SKILL_NAMES`] are arguments of gatelet if a skill is named: the others are
/// values for the skill.
const N_NAMED_SKILL: usize = 3;

/// Returns the error reply to a request with a bad name; `None` if all names are good.
pub(crate) fn refused(
    ask: &Ask,
    pipeline: &Dispatcher,
    origin: Origin,
    context: &Context,
) -> Option<Reply> {
    let problem = match ask {
        Ask::Call(call) => problem_in_call(call, origin.surface),
        Ask::ReadResource(read) => problem_in_uri("uri", &read.uri),
        Ask::Prompt(prompt) => too_long("name", &prompt.name),
        Ask::Complete(params) => problem_in_completion(params),
        Ask::Other { method, params } => {
            too_long("method", method).or_else(|| problem_in_params(params))
        }
    }?;
    let has_good_name = |call: &Call| too_long("name", &call.name).is_none();
    let reply = match ask {
        Ask::Call(call) if has_good_name(call) => match origin.surface {
            Surface::Cash | Surface::Auto | Surface::Direct => {
                Reply::error_text(&format!("**Error:** {problem}."))
            }
            Surface::Gateway | Surface::Proxy => {
                GatewayError::new(Code::ArgsInvalid, problem, "").to_reply()
            }
        },
        Ask::Call(_)
        | Ask::ReadResource(_)
        | Ask::Prompt(_)
        | Ask::Complete(_)
        | Ask::Other { .. } => Reply::Error(RpcError::new(-32602, problem)),
    };
    pipeline.record_refusal(origin, context, RefusalCode::BadCall, &reply);
    Some(reply)
}

/// Returns what is wrong with the names in the arguments of `call`.
pub(crate) fn problem_in_function_call(arguments: &Json) -> Option<String> {
    if arguments.as_str().len() <= MAX_NAME_CHARS {
        return None;
    }
    problem_in_members(&Object::parse(arguments).ok()?, &CALL_NAMES)
}

fn problem_in_call(call: &Call, surface: Surface) -> Option<String> {
    if let wrong @ Some(_) = too_long("name", &call.name) {
        return wrong;
    }
    let arguments = call.arguments.as_ref()?;
    // Almost always true: nothing in the arguments can be too long.
    if arguments.as_str().len() <= MAX_NAME_CHARS {
        return None;
    }
    match (surface, call.name.as_str()) {
        (Surface::Cash | Surface::Auto, "call" | "call_read") => {
            problem_in_function_call(arguments)
        }
        (Surface::Cash | Surface::Auto, "help") => {
            problem_in_members(&with_kwargs(arguments), &HELP_NAMES)
        }
        (Surface::Cash | Surface::Auto, "skill") => {
            let members = with_kwargs(arguments);
            problem_in_members(
                &members,
                if names_skill(&members) { &SKILL_NAMES[..N_NAMED_SKILL] } else { &SKILL_NAMES },
            )
        }
        (Surface::Gateway | Surface::Proxy, tool) if meta::names().any(|own| own == tool) => {
            problem_in_members(&Object::parse(arguments).unwrap_or_default(), &META_NAMES)
        }
        // The arguments of an upstream's tool are the upstream's business.
        (_, _) => None,
    }
}

/// Returns whether a skill is named by every `skillname` that is given.
fn names_skill(members: &Object) -> bool {
    let names = members.iter().filter(|(key, _)| name::same(key, "skillname"));
    let mut names = names.map(|(_, value)| value.string_value().unwrap_or_default()).peekable();
    names.peek().is_some() && names.all(|name| !name.is_empty())
}

/// Returns the arguments, with those in `kwargs` among them.
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

fn problem_in_members(members: &Object, names: &[&str]) -> Option<String> {
    members.iter().find_map(|(key, value)| {
        let member = names.iter().find(|name| name::same(key, name))?;
        // Lenient tools take other values as their JSON text.
        let text = value.string_value().unwrap_or_else(|| value.to_string());
        if *member == "uri" { problem_in_uri(member, &text) } else { too_long(member, &text) }
    })
}

fn problem_in_completion(params: &Object) -> Option<String> {
    let object = |key: &str| params.get(key).and_then(|json| Object::parse(json).ok());
    let reference = object("ref").unwrap_or_default();
    let text = |of: &Object, key: &str| of.get(key).and_then(Json::string_value);
    let argument = object("argument").unwrap_or_default();
    text(&reference, "uri")
        .and_then(|uri| problem_in_uri("uri", &uri))
        .or_else(|| text(&reference, "name").and_then(|name| too_long("name", &name)))
        .or_else(|| text(&argument, "name").and_then(|name| too_long("name", &name)))
}

fn problem_in_params(params: &Object) -> Option<String> {
    let text = |key: &str| params.get(key).and_then(Json::string_value);
    if let Some(uri) = text("uri") {
        return problem_in_uri("uri", &uri);
    }
    let names = ["name", "taskId", "cursor", "level"];
    names.iter().find_map(|key| too_long(key, &text(key)?))
}

fn problem_in_uri(member: &str, text: &str) -> Option<String> {
    uri::defect(text).map(|why| format!("`{member}` {why}"))
}

#[cfg(test)]
mod tests;
