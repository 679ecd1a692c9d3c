//! Adapts replies to the revision that the client speaks.
//!
//! In the modern revision every result names its type, the server and, for lists and
//! reads, how long it may be cached; legacy revisions have none of that. Existing members
//! are kept, and results are parsed only if needed.

use std::sync::Arc;

use tool::{Ask, Context, Failure, Json, Lifetime, Listing, Object, Provider, Reply, RpcError};

use super::discovery;
use crate::message;
use crate::revision::{code, meta, method};

/// Converts a reply for a client of a legacy revision.
pub(crate) fn to_legacy(method: &str, reply: Reply) -> Reply {
    match reply {
        Reply::Result(result) => Reply::Result(without_modern_members(result)),
        Reply::Error(error) => Reply::Error(legacy_error(method, error)),
    }
}

/// Converts a reply for a client of the modern revision.
pub(crate) fn to_modern(method: &str, reply: Reply, listing: &Listing) -> Reply {
    match reply {
        Reply::Result(result) => {
            // Without a lifetime from the provider: private and not cacheable.
            let unsaid = Lifetime { milliseconds: 0, is_public: false };
            let lifetime = discovery::lifetime(listing, method).unwrap_or(unsaid);
            let lifetime = Some(lifetime).filter(|_| is_cacheable(method));
            Reply::Result(with_modern_members(result, &listing.server.raw, lifetime))
        }
        Reply::Error(error) => Reply::Error(modern_error(method, error)),
    }
}

/// Sends a provider a request for which `Ask` has no variant.
pub(crate) async fn ask_other(
    provider: &Arc<dyn Provider>,
    method: &str,
    params: Object,
    context: &Context,
) -> Reply {
    let ask = Ask::Other { method: method.to_owned(), params };
    reply_or_error(provider.ask(ask, context).await)
}

/// Returns the reply, or the error for a failure.
pub(crate) fn reply_or_error(reply: Result<Reply, Failure>) -> Reply {
    reply.unwrap_or_else(|no_answer| Reply::Error(failure_error(&no_answer)))
}

/// Returns the error for a client whose request failed.
pub(crate) fn failure_error(failure: &Failure) -> RpcError {
    let code = message::failure_code(failure, code::INTERNAL);
    RpcError::unanswered(code, failure.to_string(), failure.sent())
}

/// Returns whether the result is `input_required`: the client has to supply input first.
pub(crate) fn wants_input(result: &Json) -> bool {
    result.mentions("\"input_required\"")
        && result.member_as::<String>("resultType").as_deref() == Some("input_required")
}

/// Returns whether results of this method carry a cache lifetime.
fn is_cacheable(method: &str) -> bool {
    matches!(
        method,
        method::DISCOVER
            | method::TOOLS_LIST
            | method::PROMPTS_LIST
            | method::RESOURCES_LIST
            | method::TEMPLATES_LIST
            | method::RESOURCES_READ
    )
}

fn without_modern_members(result: Json) -> Json {
    if !result.mentions("\"resultType\"") {
        return result;
    }
    let Ok(mut members) = Object::parse(&result) else { return result };
    let kind = members.get("resultType").and_then(Json::string_value);
    if kind.as_deref() != Some("complete") {
        return result;
    }
    for key in ["resultType", "ttlMs", "cacheScope"] {
        members.remove(key);
    }
    members.to_json()
}

fn with_modern_members(result: Json, server: &Json, lifetime: Option<Lifetime>) -> Json {
    let text = result.as_str();
    let plain =
        lifetime.is_none() && !text.contains("\"resultType\"") && !text.contains("\"_meta\"");
    if plain && let Some(whole) = append_modern_members(text, server) {
        return whole;
    }
    let Ok(mut members) = Object::parse(&result) else { return result };
    let kind = members.get("resultType").and_then(Json::string_value);
    if kind.is_none() {
        members.set("resultType", Json::encode("complete"));
    }
    if let Some(lifetime) = lifetime
        && matches!(kind.as_deref(), None | Some("complete"))
    {
        let scope = if lifetime.is_public { "public" } else { "private" };
        let hints =
            [("ttlMs", Json::encode(&lifetime.milliseconds)), ("cacheScope", Json::encode(scope))];
        for (key, value) in hints {
            if members.get(key).is_none() {
                members.push(key, value);
            }
        }
    }
    let mut about = members.get("_meta").and_then(|about| Object::parse(about).ok());
    let about = about.get_or_insert_default();
    if about.get(meta::SERVER_INFO).is_none() {
        about.push(meta::SERVER_INFO, server.clone());
        members.set("_meta", about.to_json());
    }
    members.to_json()
}

/// Appends the modern members to an object without parsing it.
fn append_modern_members(text: &str, server: &Json) -> Option<Json> {
    let inside = text.strip_prefix('{')?.strip_suffix('}')?;
    let comma = if inside.trim_ascii().is_empty() { "" } else { "," };
    let mut members = Object::new();
    members.push("resultType", Json::encode("complete"));
    let mut about = Object::new();
    about.push(meta::SERVER_INFO, server.clone());
    members.push("_meta", about.to_json());
    let mut whole = String::with_capacity(text.len() + 100 + server.as_str().len());
    whole.push('{');
    whole.push_str(inside);
    whole.push_str(comma);
    members.write_members(&mut whole);
    whole.push('}');
    Some(Json::from_trusted(whole))
}

fn modern_error(method: &str, error: RpcError) -> RpcError {
    if method == method::RESOURCES_READ && error.code == code::RESOURCE_NOT_FOUND {
        return with_code(&error, code::INVALID_PARAMS);
    }
    error
}

/// Converts the code for a missing resource. The modern revision uses "invalid params" for
/// it and for much else, so only an error that names a URI is converted.
fn legacy_error(method: &str, error: RpcError) -> RpcError {
    let names_it = || error.data().is_some_and(|data| data.member("uri").is_some());
    if method == method::RESOURCES_READ && error.code == code::INVALID_PARAMS && names_it() {
        return with_code(&error, code::RESOURCE_NOT_FOUND);
    }
    error
}

fn with_code(error: &RpcError, code: i64) -> RpcError {
    let mut raw = Object::parse(&error.raw).unwrap_or_default();
    raw.set("code", Json::encode(&code));
    RpcError::parse(raw.to_json())
}

#[cfg(test)]
mod tests;
