//! Masks secrets in the notifications that upstreams send to clients.
//!
//! Answers are scrubbed in the dispatch pipeline; progress, log messages and
//! other notifications are scrubbed here. Requests to the client pass unchanged:
//! a URL that the user is asked to open must stay whole.

use std::sync::Arc;

use async_trait::async_trait;
use tool::{ClientHandle, Event, Failure, Json, Notification, Object, Reply};

use redact::Scrubber;

/// Members that identify what a notification is about.
const KEPT: [&str; 2] = ["progressToken", "uri"];

/// A client's handle that masks the upstream's notifications.
pub(crate) struct MaskedClient {
    pub(super) client_handle: Arc<dyn ClientHandle>,
    pub(super) scrubber: Arc<Scrubber>,
}

#[async_trait]
impl ClientHandle for MaskedClient {
    fn notify(&self, note: Notification) {
        self.client_handle.notify(mask(&self.scrubber, note));
    }

    async fn request(&self, method: &str, params: Json) -> Result<Reply, Failure> {
        self.client_handle.request(method, params).await
    }
}

/// An event for clients, and the upstream that sent it: a client receives only
/// the events of upstreams that are visible to it.
#[derive(Clone, Debug)]
pub(crate) struct UpstreamEvent {
    /// `None` if the event concerns all upstreams.
    pub(crate) from: Option<Arc<str>>,
    pub(crate) event: Event,
}

impl UpstreamEvent {
    pub(crate) fn of_all(event: Event) -> UpstreamEvent {
        UpstreamEvent { from: None, event }
    }
}

/// An event as clients may see it.
pub(crate) fn mask_event(scrubber: &Scrubber, event: Event) -> Event {
    match event {
        Event::Notification(note) => Event::Notification(mask(scrubber, note)),
        Event::Updated { uri, notification: note } => {
            Event::Updated { uri, notification: mask(scrubber, note) }
        }
        Event::Changed(_) | Event::Gone { .. } => event,
    }
}

/// The notification with secrets masked; the same one when it has none.
fn mask(scrubber: &Scrubber, note: Notification) -> Notification {
    let params = note.params.to_json();
    let clean = scrubber.scrub_json(&params);
    if clean == params {
        return note;
    }
    // What cannot be read again is not shown at all.
    let mut params = Object::parse(&clean).unwrap_or_default();
    for key in KEPT {
        if let Some(value) = note.params.get(key) {
            params.set(key, value.clone());
        }
    }
    Notification { params, ..note }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(params: &serde_json::Value, expected: &serde_json::Value) {
        let params = Object::parse(&params.clone().into()).unwrap();
        let note = Notification { method: "n".to_owned(), params };
        let shown = mask(&Scrubber::default(), note).params.to_json();
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
}
