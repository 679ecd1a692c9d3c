//! Answers the requests by which a client learns about the server and its lists.
//!
//! All data comes from the provider's listing; this module converts it to the form of the
//! client's revision.

use tool::{Json, Lifetime, Listing, Object, Resource, RpcError};

use crate::revision::{Revision, code, method};

/// Returns the result of `initialize`.
pub(crate) fn initialize(listing: &Listing, revision: Revision) -> Json {
    let mut result = Object::new();
    result.push("protocolVersion", Json::encode(revision.as_str()));
    result.push("capabilities", capabilities(listing));
    result.push("serverInfo", listing.server.raw.clone());
    if let Some(instructions) = &listing.server.instructions {
        result.push("instructions", Json::encode(instructions));
    }
    result.to_json()
}

/// Returns the result of `server/discover`, without the members of every modern result.
pub(crate) fn discover(listing: &Listing) -> Json {
    let mut result = Object::new();
    result.push("supportedVersions", Json::encode(&modern_revisions()));
    result.push("capabilities", capabilities(listing));
    if let Some(instructions) = &listing.server.instructions {
        result.push("instructions", Json::encode(instructions));
    }
    result.to_json()
}

/// Returns the revision for a session: the requested one if it is known and has sessions,
/// otherwise the newest that has.
pub(crate) fn negotiate(requested: &str) -> Revision {
    let known = requested.parse::<Revision>().ok().filter(|revision| !revision.is_modern());
    known.unwrap_or(Revision::LATEST_LEGACY)
}

/// Returns the names of the modern (stateless) revisions.
pub(crate) fn modern_revisions() -> Vec<&'static str> {
    let modern = Revision::ALL.into_iter().filter(|revision| revision.is_modern());
    modern.map(Revision::as_str).collect()
}

/// Returns the capabilities that the provider announces, and those that its listing shows.
pub(crate) fn capabilities(listing: &Listing) -> Json {
    let Ok(mut announced) = Object::parse(&listing.server.capabilities) else {
        return Json::empty_object();
    };
    let n_resources = listing.resources.len() + listing.templates.len();
    for (key, n_items) in [
        ("tools", listing.tools.len()),
        ("resources", n_resources),
        ("prompts", listing.prompts.len()),
    ] {
        if n_items != 0 && announced.get(key).is_none() {
            announced.push(key, Json::encode(&serde_json::json!({"listChanged": true})));
        }
    }
    announced.to_json()
}

/// Returns whether the provider announces a capability, or shows that it has it.
pub(crate) fn has_capability(listing: &Listing, capability: &str) -> bool {
    capabilities(listing).member(capability).is_some_and(|value| !value.is_null())
}

/// Returns whether the result of a list method contains items of the caller alone.
pub(crate) fn depends_on_caller(method: &str) -> bool {
    method == method::RESOURCES_LIST
}

/// Returns whether a method asks for a list.
pub(crate) fn is_list(method: &str) -> bool {
    matches!(
        method,
        method::TOOLS_LIST | method::RESOURCES_LIST | method::TEMPLATES_LIST | method::PROMPTS_LIST
    )
}

/// Returns the result of a list method. `caller_resources`, which only this caller has,
/// come first.
pub(crate) fn list_result(
    listing: &Listing,
    caller_resources: &[Resource],
    method: &str,
    params: Option<&Json>,
) -> Result<Json, RpcError> {
    let (capability, key) = match method {
        method::TOOLS_LIST => ("tools", "tools"),
        method::RESOURCES_LIST => ("resources", "resources"),
        method::TEMPLATES_LIST => ("resources", "resourceTemplates"),
        method::PROMPTS_LIST => ("prompts", "prompts"),
        _ => return Err(method_not_found(method)),
    };
    if !has_capability(listing, capability) {
        return Err(method_not_found(method));
    }
    if params.and_then(|params| params.member("cursor")).is_some_and(|cursor| !cursor.is_null()) {
        let message = "unknown `cursor`: every list here is one page; ask without a cursor";
        return Err(RpcError::new(code::INVALID_PARAMS, message));
    }
    let items = match method {
        method::TOOLS_LIST => Json::array(listing.tools.iter().map(|item| &item.raw)),
        method::RESOURCES_LIST => {
            Json::array(caller_resources.iter().chain(&listing.resources).map(|item| &item.raw))
        }
        method::TEMPLATES_LIST => Json::array(listing.templates.iter().map(|item| &item.raw)),
        _ => Json::array(listing.prompts.iter().map(|item| &item.raw)),
    };
    let mut result = Object::new();
    result.push(key, items);
    Ok(result.to_json())
}

/// Returns how long the result of a list method may be cached, if the provider says.
pub(crate) fn lifetime(listing: &Listing, method: &str) -> Option<Lifetime> {
    match method {
        method::TOOLS_LIST => listing.lifetimes.tools,
        method::RESOURCES_LIST => listing.lifetimes.resources,
        method::TEMPLATES_LIST => listing.lifetimes.templates,
        method::PROMPTS_LIST => listing.lifetimes.prompts,
        _ => None,
    }
}

/// Returns the error for a request with the method of a notification.
pub(crate) fn notification_only(method: &str) -> RpcError {
    let message = format!("`{method}` is a notification: send it without an `id`");
    RpcError::new(code::METHOD_NOT_FOUND, message)
}

pub(crate) fn method_not_found(method: &str) -> RpcError {
    RpcError::new(code::METHOD_NOT_FOUND, format!("no method `{method}` here"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tool::{Server, Tool};

    fn listing(capabilities: &str) -> Listing {
        let capabilities = Json::parse(capabilities.to_owned()).unwrap();
        let tool = Json::parse(r#"{"name":"t", "x":1e400}"#).unwrap();
        Listing {
            server: Server::new("s", "1", capabilities),
            tools: vec![Tool::parse(tool).unwrap()],
            ..Listing::default()
        }
    }

    #[test]
    fn what_is_listed_is_announced_even_if_the_provider_forgot() {
        let found = capabilities(&listing(r#"{"logging":{}}"#));
        assert_eq!(found.as_str(), r#"{"logging":{},"tools":{"listChanged":true}}"#);
        let kept = r#"{"tools":{"listChanged":false},"x-odd":[ ]}"#;
        assert_eq!(capabilities(&listing(kept)).as_str(), kept);
    }

    #[test]
    fn lists_hold_the_definitions_as_they_came() {
        let listing = listing("{}");
        let tools = list_result(&listing, &[], "tools/list", None).unwrap();
        assert_eq!(tools.as_str(), r#"{"tools":[{"name":"t", "x":1e400}]}"#);
        let prompts = list_result(&listing, &[], "prompts/list", None).unwrap_err();
        assert_eq!(prompts.code, code::METHOD_NOT_FOUND);
        assert!(!is_list("tools/call"));
    }

    #[test]
    fn a_cursor_that_was_never_given_out_is_refused() {
        let params = Json::parse(r#"{"cursor":"x"}"#).unwrap();
        let error = list_result(&listing("{}"), &[], "tools/list", Some(&params)).unwrap_err();
        assert_eq!(error.code, code::INVALID_PARAMS);
    }

    #[test]
    fn a_session_is_held_in_the_revision_asked_for_if_it_has_sessions() {
        for requested in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
            assert_eq!(negotiate(requested).as_str(), requested);
        }
        assert_eq!(negotiate("2026-07-28"), Revision::LATEST_LEGACY);
        assert_eq!(negotiate("1999-01-01"), Revision::LATEST_LEGACY);
    }
}
