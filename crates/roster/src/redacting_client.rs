//! Redacts what upstreams send to clients beside answers: progress, log messages and other
//! notifications, and requests.
//!
//! Answers are scrubbed in the dispatch pipeline instead. To a client all upstreams are
//! one server, so a log message gets the label of its upstream, and members of `_meta`
//! that only gatelet writes are removed. In requests to the client, such as for sampling,
//! only secrets are masked, and not in a URL: that the user is asked to open must stay
//! whole.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::task::spawn_blocking;
use tool::text::json_without_invisible;
use tool::{ClientHandle, Event, Failure, Json, Notification, Object, Reply, is_own_meta_key};

use crate::readable::plain_line;
use crate::upstream::Upstream;
use redact::Scrubber;

/// Members that identify what a notification is about, and stay unchanged.
const UNCHANGED_MEMBERS: [&str; 2] = ["progressToken", "uri"];

/// The method of log messages.
const LOG_METHOD: &str = "notifications/message";

/// A client handle that redacts the notifications of one upstream.
pub(crate) struct RedactingClient {
    /// The upstream that sends the notifications.
    pub(super) from: Arc<Upstream>,
    pub(super) client_handle: Arc<dyn ClientHandle>,
    pub(super) scrubber: Arc<Scrubber>,
}

#[async_trait]
impl ClientHandle for RedactingClient {
    fn notify(&self, notification: Notification) {
        self.client_handle.notify(redact(&self.scrubber, &self.from.label, notification));
    }

    async fn request(&self, method: &str, params: Json) -> Result<Reply, Failure> {
        let n_bytes = params.as_str().len();
        let params = match n_bytes < LONG_REQUEST {
            true => mask_request(&self.scrubber, &params),
            false => {
                let (scrubber, whole) = (Arc::clone(&self.scrubber), params.clone());
                let masked = spawn_blocking(move || mask_request(&scrubber, &whole)).await;
                masked.map_err(|_| Failure::Unavailable { reason: "gatelet stops".to_owned() })?
            }
        };
        self.client_handle.request(method, params).await
    }
}

/// From this length in bytes on, a request is masked on a thread for blocking work.
const LONG_REQUEST: usize = 128 << 10;

/// Members of a request that identify something, and stay unchanged.
const UNMASKED_MEMBERS: [&str; 3] = ["url", "elicitationId", "_meta"];

/// Masks secrets in the parameters of a request: a user reads them, and with sampling a
/// model and its provider.
fn mask_request(scrubber: &Scrubber, params: &Json) -> Json {
    let scrubbed = scrubber.scrub_json(params);
    if scrubbed == *params {
        return scrubbed;
    }
    let Ok(mut masked) = Object::parse(&scrubbed) else { return scrubbed };
    for key in UNMASKED_MEMBERS {
        if let Some(value) = params.member(key) {
            masked.set(key, value);
        }
    }
    masked.to_json()
}

/// An event, and the upstream that sent it. A client receives only the events of
/// upstreams that are visible to it.
#[derive(Clone, Debug)]
pub(crate) struct UpstreamEvent {
    /// The label of the upstream; `None` if the event concerns all upstreams.
    pub(crate) from: Option<Arc<str>>,
    pub(crate) event: Event,
}

impl UpstreamEvent {
    pub(crate) fn of_all(event: Event) -> UpstreamEvent {
        UpstreamEvent { from: None, event }
    }
}

/// Redacts an event of the upstream with the label `from`.
pub(crate) fn redact_event(scrubber: &Scrubber, from: &str, event: Event) -> Event {
    match event {
        Event::Notification(notification) => {
            Event::Notification(redact(scrubber, from, notification))
        }
        Event::Updated { uri, notification } => {
            Event::Updated { uri, notification: redact(scrubber, from, notification) }
        }
        Event::Changed(_) | Event::Gone { .. } => event,
    }
}

/// Masks secrets, and removes invisible characters and gatelet's own members of `_meta`.
/// Adds the label `from` to log messages.
fn redact(scrubber: &Scrubber, from: &str, notification: Notification) -> Notification {
    let params = notification.params.to_json();
    let scrubbed = scrubber.scrub_json(&params);
    let clean = json_without_invisible(&scrubbed).unwrap_or(scrubbed);
    let clean = without_own_meta(&clean).unwrap_or(clean);
    let is_log = notification.method == LOG_METHOD;
    if clean == params && !is_log {
        return notification;
    }
    // What cannot be parsed any more is not shown at all.
    let mut params = Object::parse(&clean).unwrap_or_default();
    for key in UNCHANGED_MEMBERS {
        if let Some(value) = notification.params.get(key) {
            params.set(key, value.clone());
        }
    }
    if is_log {
        let logger = params.get("logger").and_then(Json::string_value);
        let logger = logger.map(|logger| format!("{from}/{}", plain_line(&logger)));
        params.set("logger", Json::encode(logger.as_deref().unwrap_or(from)));
    }
    Notification { params, ..notification }
}

/// The members of a result that hold blocks with a `_meta` of their own.
const BLOCK_MEMBERS: [&str; 4] = ["content", "contents", "messages", "resource"];

/// How deep blocks are in each other: a message has content, a block of it a resource.
const MAX_BLOCK_DEPTH: usize = 4;

/// Removes the members of `_meta` that only gatelet writes from a result or notification,
/// and from its blocks; `None` if there are none.
pub(crate) fn without_own_meta(whole: &Json) -> Option<Json> {
    without_own_meta_within(whole, MAX_BLOCK_DEPTH)
}

fn without_own_meta_within(part: &Json, depth: usize) -> Option<Json> {
    // The key may be escaped.
    if !part.mentions("_meta") && !part.mentions("\\u") {
        return None;
    }
    if let Ok(blocks) = part.parse_as::<Vec<Json>>() {
        let clean: Vec<Option<Json>> =
            blocks.iter().map(|block| without_own_meta_within(block, depth)).collect();
        let is_forged = clean.iter().any(Option::is_some);
        let blocks = clean.into_iter().zip(blocks).map(|(clean, block)| clean.unwrap_or(block));
        return is_forged.then(|| Json::encode(&blocks.collect::<Vec<_>>()));
    }
    let members = Object::parse(part).ok()?;
    let (mut clean, mut is_forged) = (Object::new(), false);
    // All of several members with one name, because readers differ in which one they take.
    for (key, value) in members.iter() {
        let changed = match key {
            "_meta" => without_own_members(value),
            key if BLOCK_MEMBERS.contains(&key) && 0 < depth => {
                without_own_meta_within(value, depth - 1)
            }
            _ => None,
        };
        is_forged |= changed.is_some();
        match changed {
            Some(empty) if key == "_meta" && empty == Json::empty_object() => {}
            Some(changed) => clean.push(key, changed),
            None => clean.push(key, value.clone()),
        }
    }
    is_forged.then(|| clean.to_json())
}

/// Returns a `_meta` without gatelet's own members; `None` if it has none.
fn without_own_members(meta: &Json) -> Option<Json> {
    let mut meta = Object::parse(meta).ok()?;
    let ours: Vec<String> =
        meta.keys().filter(|key| is_own_meta_key(key)).map(str::to_owned).collect();
    for key in &ours {
        meta.remove(key);
    }
    (!ours.is_empty()).then(|| meta.to_json())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(params: &serde_json::Value, expected: &serde_json::Value) {
        let params = Object::parse(&params.clone().into()).unwrap();
        let notification = Notification { method: "n".to_owned(), params };
        let shown = redact(&Scrubber::default(), "up", notification).params.to_json();
        assert_eq!(shown.to_value().unwrap(), *expected);
    }

    #[test]
    fn secrets_in_notifications_are_masked_and_identifiers_stay() {
        let key = "sk-proj-bbbbbbbbbbbbbbbbbbbbbbbb";
        check(&json!({"data": key}), &json!({"data": "[REDACTED-SECRET]"}));
        check(
            &json!({"progressToken": "tkn-9f8e7d6c5b4a", "message": format!("using {key}")}),
            &json!({"progressToken": "tkn-9f8e7d6c5b4a", "message": "using [REDACTED-SECRET]"}),
        );
        check(&json!({"uri": "db://u:hunter22@h/x"}), &json!({"uri": "db://u:hunter22@h/x"}));
        check(&json!({"data": {"n": 1}}), &json!({"data": {"n": 1}}));
    }

    #[test]
    fn secrets_in_questions_are_masked_and_what_is_to_be_opened_stays_whole() {
        let secret = "zq7Wk2mV9xRt4LpB8nHc";
        let config = redact::Config { enabled: true, known_secrets: vec![secret.to_owned()] };
        let masked = |params: serde_json::Value| {
            mask_request(&Scrubber::new(config.clone()), &params.into()).to_value().unwrap()
        };
        let asked = masked(json!({
            "message": format!("use {secret}"), "url": format!("https://x.example/{secret}"),
            "messages": [{"content": {"type": "text", "text": secret}}], "systemPrompt": secret,
            "requestedSchema": {"properties": {"a": {"title": secret, "enum": [secret]}}},
        }));
        let url = format!("https://x.example/{secret}");
        assert_eq!(
            (&asked["url"], &asked["message"]),
            (&json!(url), &json!("use [REDACTED-SECRET]"))
        );
        assert_eq!(asked.to_string().matches(secret).count(), 1, "{asked}");
        let plain = json!({"message": "Which one?", "requestedSchema": {"type": "object"}});
        assert_eq!(masked(plain.clone()), plain);
    }

    #[test]
    fn a_log_message_says_whose_it_is_and_nobody_speaks_in_our_name() {
        let told = |params: serde_json::Value| {
            let params = Object::parse(&params.into()).unwrap();
            let notification = Notification { method: LOG_METHOD.to_owned(), params };
            redact(&Scrubber::default(), "up", notification).params.to_json().to_value().unwrap()
        };
        let forged = json!({"level": "error", "logger": "gatelet\n", "data": "a\u{202e}b\u{1b}",
                            "_meta": {"gatelet/upstream": "bank", "x": 1}});
        let expected = json!({"level": "error", "logger": "up/gatelet", "data": "ab",
                              "_meta": {"x": 1}});
        assert_eq!(told(forged), expected);
        assert_eq!(told(json!({"data": 1})), json!({"data": 1, "logger": "up"}));
        check(
            &json!({"progressToken": "t", "message": "50\u{200b} %\u{2028}gatelet:"}),
            &json!({"progressToken": "t", "message": "50 %\ngatelet:"}),
        );
    }

    #[test]
    fn names_of_ours_are_taken_out_of_results_and_others_stay() {
        let clean = |text: &str| {
            let clean = without_own_meta(&Json::parse(text.to_owned()).unwrap());
            clean.map(|clean| clean.to_value().unwrap())
        };
        for same in [r#"{"content":[]}"#, r#"{"_meta":{"x/y":1}}"#, r#"{"_meta":7}"#, "[]"] {
            assert_eq!(clean(same), None, "{same}");
        }
        let forged = r#"{"a":1,"_meta":{"cash/error":{},"gatelet/cache_hit":true,"x":2}}"#;
        assert_eq!(clean(forged), Some(json!({"a": 1, "_meta": {"x": 2}})));
        let escaped = r#"{"\u005fmeta":{"g\u0061telet/upstream":"bank"}}"#;
        assert_eq!(clean(escaped), Some(json!({})));
    }

    #[test]
    fn names_of_ours_are_taken_out_of_blocks_too() {
        let meta = json!({"gatelet/cache_hit": true, "x": 1});
        let block = json!({"type": "text", "text": "t", "_meta": meta});
        let resource = json!({"type": "resource", "_meta": {"cash/error": {}},
                              "resource": {"uri": "a:b", "text": "", "_meta": meta}});
        let forged = json!({
            "content": [block, resource],
            "contents": [block],
            "messages": [{"role": "user", "content": block}],
            "structuredContent": {"content": [block]},
        });
        let clean = without_own_meta(&forged.into()).unwrap().to_value().unwrap();
        assert_eq!(clean["structuredContent"]["content"][0]["_meta"], meta, "it is data");
        for at in ["/content/0", "/content/1/resource", "/contents/0", "/messages/0/content"] {
            assert_eq!(clean.pointer(at).unwrap()["_meta"], json!({"x": 1}), "{at}");
        }
        assert_eq!(clean["content"][1].get("_meta"), None);
        let deep = format!(
            "{}{}",
            r#"{"_meta":{},"content":"#.repeat(50),
            "1".to_owned() + &"}".repeat(50)
        );
        assert_eq!(without_own_meta(&Json::parse(deep).unwrap()), None);
    }
}
