//! Listens to a server of revision 2026-07-28, which sends notifications only on
//! request.
//!
//! One `subscriptions/listen` is open at any time, for everything that is
//! wanted. When the wants change a new one is opened first and the old one is
//! closed after it is acknowledged, so nothing falls between the two.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::{sleep, timeout};
use tool::{Backoff, Failure, Json, Kind, Object, Reply};

use super::connection::{Connection, Listening};
use super::request::{Payload, Question, RequestMode};
use super::{headers, params};
use crate::peer::Timeouts;
use crate::revision::method;

/// How long to wait for an acknowledgement before going on without it.
const ACKNOWLEDGEMENT: Duration = Duration::from_secs(5);

/// How long a listener waits; there is no end to listening.
const FOR_EVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// Between two streams that break.
const PAUSES: Backoff = Backoff::doubling(Duration::from_secs(1), Duration::from_secs(60));

/// How often in a row a server may not be there before it is gone.
const TRIES: u32 = 3;

/// Opens the stream that is wanted now and closes the one before.
pub(super) async fn renew(connection: &Arc<Connection>) {
    let mut current = connection.listening.lock().await;
    let filter = filter(connection);
    let before = connection.relay.stale.n_acknowledged();
    let next = (!filter.is_empty()).then(|| {
        let task = tokio::spawn(listen(Arc::clone(connection), filter));
        Listening(task.abort_handle())
    });
    if next.is_some() {
        let acknowledged = connection.relay.stale.acknowledged_after(before);
        if timeout(ACKNOWLEDGEMENT, acknowledged).await.is_err() {
            tracing::debug!(target: "upstream", upstream = connection.label, "a subscription is not acknowledged");
        }
    }
    *current = next;
}

/// Listens, and again after the stream broke: then anything may have changed.
async fn listen(connection: Arc<Connection>, filter: Map<String, Value>) {
    let mut wants = Object::new();
    wants.push("notifications", Json::encode(&filter));
    let mut pauses = PAUSES;
    let mut n_failed = 0;
    loop {
        let question = Question {
            request_id: connection.transport.next_request_id(),
            payload: Payload::Internal {
                method: method::LISTEN,
                params: Some(params::modern(&wants, &connection.client)),
            },
            timeouts: Timeouts::same(FOR_EVER),
            mode: RequestMode::Stateless(headers::plain(method::LISTEN, None)),
            trace: None,
        };
        let before = connection.relay.stale.n_acknowledged();
        let ended = connection.transport.request(question).await;
        let stood = before < connection.relay.stale.n_acknowledged();
        if stood {
            pauses.reset();
            n_failed = 0;
        }
        match ended {
            // A server that closes says so to who listens; then it is looked for again.
            Ok(Reply::Error(error)) if !stood => {
                tracing::info!(target: "upstream", upstream = connection.label, "it cannot be listened to: {}", error.message);
                connection.relay.stale.acknowledge();
                return;
            }
            Err(Failure::Unsupported { .. }) => return,
            Ok(_) | Err(_) if connection.relay.stale.has_ended() => return,
            Err(failure @ (Failure::Unavailable { .. } | Failure::Lost { .. })) if !stood => {
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

/// Returns what there is to listen to: the lists that the server says may change,
/// and the resources that are watched.
fn filter(connection: &Connection) -> Map<String, Value> {
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
