//! Redacts the notifications that upstreams send to clients: progress, log messages and
//! others.
//!
//! Answers are scrubbed in the dispatch pipeline instead. To a client all upstreams are
//! one server, so a log message gets the label of its upstream, and members of `_meta`
//! that only gatelet writes are removed. Requests to the client pass unchanged: a URL
//! that the user is asked to open must stay whole.

use std::sync::Arc;

use async_trait::async_trait;
use tool::text::json_without_invisible;
use tool::{ClientHandle, Event, Failure, Json, Notification, Object, Reply};

use crate::readable::plain_line;
use crate::upstream::Upstream;
use redact::Scrubber;

/// Members that identify what a notification is about, and stay unchanged.
const UNCHANGED_MEMBERS: [&str; 2] = ["progressToken", "uri"];

/// The method of log messages.
const LOG_METHOD: &str = "notifications/message";

/// The prefixes of members of `_meta` that only gatelet writes.
pub(crate) const OWN_PREFIXES: [&str; 2] = ["gatelet/", "cash/"];

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
        self.client_handle.request(method, params).await
    }
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

/// Removes the members of `_meta` that only gatelet writes from a result or notification;
/// `None` if it has none.
pub(crate) fn without_own_meta(whole: &Json) -> Option<Json> {
    // The key may be escaped.
    if !whole.mentions("_meta") && !whole.mentions("\\u") {
        return None;
    }
    let mut members = Object::parse(whole).ok()?;
    let mut meta = Object::parse(members.get("_meta")?).ok()?;
    let is_ours = |key: &&str| OWN_PREFIXES.iter().any(|prefix| key.starts_with(prefix));
    let ours: Vec<String> = meta.keys().filter(is_ours).map(str::to_owned).collect();
    if ours.is_empty() {
        return None;
    }
    for key in ours {
        meta.remove(&key);
    }
    // Removes duplicates of the key, too.
    members.remove("_meta");
    if !meta.is_empty() {
        members.push("_meta", meta.to_json());
    }
    Some(members.to_json())
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
}
