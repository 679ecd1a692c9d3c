//! Subscribes to the notifications of a modern server with `subscriptions/listen`.
//!
//! One such request is open at any time, for all wanted notifications. When the wanted set
//! changes, a new one is opened, and the old one is closed after the new one is
//! acknowledged, so that no notification is missed.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::{sleep, timeout};
use tool::{Backoff, Failure, Json, Kind, Object, Reply};

use super::connection::{Connection, ListenTask};
use super::request::{OutgoingRequest, Payload, RequestMode};
use super::{headers, params};
use crate::peer::Timeouts;
use crate::revision::method;

/// How long to wait for an acknowledgement before going on without it.
const ACKNOWLEDGEMENT: Duration = Duration::from_secs(5);

/// The timeout of `subscriptions/listen`, which has no natural end.
const FOR_EVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// The pauses before a broken stream is opened again.
const PAUSES: Backoff = Backoff::doubling(Duration::from_secs(1), Duration::from_secs(60));

/// After this many failed attempts in a row the server counts as gone.
const TRIES: u32 = 3;

/// Opens a stream for what is wanted now, and closes the one before.
pub(super) async fn renew(connection: &Arc<Connection>) {
    let mut current = connection.listening.lock().await;
    let filter = wanted_notifications(connection);
    let before = connection.relay.stale.n_acknowledged();
    let next = (!filter.is_empty()).then(|| {
        let task = tokio::spawn(listen(Arc::clone(connection), filter));
        ListenTask(task.abort_handle())
    });
    if next.is_some() {
        let acknowledged = connection.relay.stale.acknowledged_after(before);
        if timeout(ACKNOWLEDGEMENT, acknowledged).await.is_err() {
            tracing::debug!(target: "upstream", upstream = connection.label, "a subscription is not acknowledged");
        }
    }
    *current = next;
}

/// Keeps a stream open. After it broke, all lists count as stale.
async fn listen(connection: Arc<Connection>, filter: Map<String, Value>) {
    let mut wants = Object::new();
    wants.push("notifications", Json::encode(&filter));
    let mut pauses = PAUSES;
    let mut n_failed = 0;
    loop {
        let request = OutgoingRequest {
            request_id: connection.transport.next_request_id(),
            payload: Payload::Internal {
                method: method::LISTEN,
                params: Some(params::with_modern_meta(&wants, &connection.client)),
            },
            timeouts: Timeouts::same(FOR_EVER),
            mode: RequestMode::Stateless(headers::for_method(method::LISTEN, None)),
            trace: None,
        };
        let before = connection.relay.stale.n_acknowledged();
        let ended = connection.transport.request(request).await;
        let was_acknowledged = before < connection.relay.stale.n_acknowledged();
        if was_acknowledged {
            pauses.reset();
            n_failed = 0;
        }
        match ended {
            // An error before the acknowledgement: the server refuses to be listened to.
            Ok(Reply::Error(error)) if !was_acknowledged => {
                tracing::info!(target: "upstream", upstream = connection.label, "it cannot be listened to: {}", error.message);
                connection.relay.stale.acknowledge();
                return;
            }
            Err(Failure::Unsupported { .. }) => return,
            Ok(_) | Err(_) if connection.relay.stale.has_ended() => return,
            Err(failure @ (Failure::Unavailable { .. } | Failure::Lost { .. }))
                if !was_acknowledged =>
            {
                n_failed += 1;
                if TRIES <= n_failed {
                    connection.transport.close(&failure.to_string());
                    return;
                }
            }
            Ok(_) | Err(_) => {}
        }
        sleep(pauses.fail()).await;
        connection.relay.stale.mark(&Kind::ALL);
    }
}

/// Returns the notifications to subscribe to: changes of the lists that the server says
/// may change, and updates of watched resources.
fn wanted_notifications(connection: &Connection) -> Map<String, Value> {
    let capabilities = &connection.session.server.capabilities;
    let mut filter = Map::new();
    for (capability, want) in [
        ("tools", "toolsListChanged"),
        ("prompts", "promptsListChanged"),
        ("resources", "resourcesListChanged"),
    ] {
        let changes = capabilities.member(capability).and_then(|of| of.member_as("listChanged"));
        if changes == Some(true) {
            filter.insert(want.to_owned(), json!(true));
        }
    }
    let watched = connection.subscriptions.uris();
    if !watched.is_empty() {
        filter.insert("resourceSubscriptions".to_owned(), json!(watched));
    }
    filter
}
