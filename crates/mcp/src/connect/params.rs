//! Rewrites `_meta` in the params of a request, and nothing else.
//!
//! The progress token is replaced by our request id, because the tokens of two clients may
//! be equal. A modern server gets the client's capabilities with every request; for a
//! legacy server the keys are removed that would mark the request as modern.

use tool::{Ask, Client, Json, Object};

use crate::peer::RequestId;
use crate::revision::{Revision, meta};

/// The `_meta` keys of modern requests.
const MODERN_KEYS: [&str; 4] =
    [meta::PROTOCOL_VERSION, meta::CLIENT_CAPABILITIES, meta::CLIENT_INFO, meta::LOG_LEVEL];

/// Returns the request with its `_meta` rewritten for a server of `revision`, and the
/// client's own progress token.
pub(super) fn rewrite_meta(
    ask: Ask,
    client: &Client,
    request_id: RequestId,
    revision: Revision,
) -> (Ask, Option<Json>) {
    let before = ask.other_params().get("_meta");
    if before.is_none() && !revision.is_modern() {
        return (ask, None);
    }
    let tags = before.map_or_else(|| Ok(Object::new()), Object::parse);
    // An invalid `_meta` is left for the server to refuse.
    let Ok(mut tags) = tags else { return (ask, None) };
    let before_was_full = !tags.is_empty();
    let token = tags.get(meta::PROGRESS_TOKEN).cloned();
    if token.is_some() {
        tags.set(meta::PROGRESS_TOKEN, Json::encode(&request_id.0));
    }
    if revision.is_modern() {
        set_client_meta(&mut tags, client, revision);
    } else {
        for key in MODERN_KEYS {
            tags.remove(key);
        }
    }
    let mut ask = ask;
    if tags.is_empty() && before_was_full {
        ask.other_params_mut().remove("_meta");
    } else {
        ask.other_params_mut().set("_meta", tags.to_json());
    }
    (ask, token)
}

/// Returns the params of our own request with the `_meta` that a modern server needs.
pub(super) fn with_modern_meta(params: &Object, client: &Client) -> Json {
    let mut tags = Object::new();
    set_client_meta(&mut tags, client, Revision::LATEST);
    let mut params = params.clone();
    params.set("_meta", tags.to_json());
    params.to_json()
}

fn set_client_meta(tags: &mut Object, client: &Client, revision: Revision) {
    tags.set(meta::PROTOCOL_VERSION, Json::encode(revision.as_str()));
    tags.set(meta::CLIENT_INFO, client.raw.clone());
    tags.set(meta::CLIENT_CAPABILITIES, client.capabilities.clone());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(params: &str, revision: Revision, expected: &str, token: Option<&str>) {
        let ask = Ask::parse("tools/call", &Json::parse(params.to_owned()).unwrap()).unwrap();
        let client = Client {
            capabilities: Json::parse(r#"{"roots":{}}"#).unwrap(),
            raw: Json::parse(r#"{"name":"c"}"#).unwrap(),
            ..Client::named("c", "")
        };
        let (ask, found) = rewrite_meta(ask, &client, RequestId(7), revision);
        assert_eq!(ask.params().as_str(), expected);
        assert_eq!(found.as_ref().map(Json::as_str), token);
    }

    #[test]
    fn an_older_server_gets_the_params_as_they_came() {
        let legacy = Revision::LATEST_LEGACY;
        for params in [
            r#"{"name":"t","arguments":{"a":1e400,"a":2},"x":[ ]}"#,
            r#"{"name":"t","_meta":{"vendor":{ }}}"#,
            r#"{"name":"t","_meta":5}"#,
        ] {
            check(params, legacy, params, None);
        }
    }

    #[test]
    fn a_progress_token_travels_as_our_own_number() {
        check(
            r#"{"name":"t","_meta":{"progressToken":"abc","v":1}}"#,
            Revision::LATEST_LEGACY,
            r#"{"name":"t","_meta":{"progressToken":7,"v":1}}"#,
            Some("\"abc\""),
        );
    }

    #[test]
    fn a_modern_server_learns_what_this_client_can_do() {
        check(
            r#"{"name":"t","_meta":{"v":1}}"#,
            Revision::LATEST,
            concat!(
                r#"{"name":"t","_meta":{"v":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
                r#""io.modelcontextprotocol/clientInfo":{"name":"c"},"#,
                r#""io.modelcontextprotocol/clientCapabilities":{"roots":{}}}}"#
            ),
            None,
        );
    }

    #[test]
    fn an_older_server_never_sees_the_keys_of_a_modern_question() {
        check(
            r#"{"name":"t","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","v":1}}"#,
            Revision::LATEST_LEGACY,
            r#"{"name":"t","_meta":{"v":1}}"#,
            None,
        );
    }
}
