//! The queue of messages that get no reply: responses to the server's own requests, and
//! notifications.

use std::sync::Arc;

use http::HeaderValue;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Duration, timeout};
use tool::Reply;

use super::delivery::{AnsweredRequest, DELIVERY_TIMEOUT, Delivery};
use super::{Http, Session};
use crate::connect::credential;
use crate::connect::delivery::{self, Undelivered};
use crate::connect::shutdown::Shutdown;
use crate::revision::method;

/// How many messages are posted concurrently: a slow one must not delay the answer of
/// another client.
const MAX_CONCURRENT: usize = 64;

/// How long the last messages, and ending the session, may each take.
const CLOSING_TIMEOUT: Duration = Duration::from_secs(2);

impl Http {
    /// Queues a message.
    pub(super) fn enqueue(&self, delivery: Delivery) {
        if self.outbox.try_send(delivery).is_err() {
            tracing::warn!(target: "upstream", upstream = self.label, "too many messages are waiting; one is dropped");
        }
    }

    /// Sends `notifications/initialized` and waits until it is accepted: servers refuse
    /// requests that come before it.
    pub(in crate::connect) async fn send_initialized(&self) {
        self.deliver(Delivery::notification(method::INITIALIZED, None)).await;
    }

    /// Posts queued messages concurrently until the connection closes; then ends the
    /// session.
    pub(super) async fn run_outbox(
        self: Arc<Http>,
        mut waiting: mpsc::Receiver<Delivery>,
        shutdown: Shutdown,
    ) {
        let mut under_way = JoinSet::new();
        loop {
            let delivery = tokio::select! {
                biased;
                Some(_) = under_way.join_next() => continue,
                delivery = waiting.recv(), if under_way.len() < MAX_CONCURRENT => delivery,
                () = self.closing.cancelled() => None,
                () = shutdown.requested() => {
                    self.relay.expect_end();
                    self.close("gatelet ends");
                    None
                }
            };
            let Some(delivery) = delivery else { break };
            let http = Arc::clone(&self);
            under_way.spawn(async move { http.deliver(delivery).await });
        }
        let finished = async { while under_way.join_next().await.is_some() {} };
        timeout(CLOSING_TIMEOUT, finished).await.ok();
        let session = self.session().clone();
        self.end_session(&session).await;
        let why = self.why_closed.lock().clone();
        self.relay.mark_gone(&why.unwrap_or_default());
    }

    /// Posts one message. If an answer cannot be delivered, the call that the server asked
    /// about fails.
    async fn deliver(&self, delivery: Delivery) {
        let Delivery { body, answered } = delivery;
        let headers = self.headers_of(&self.session().clone());
        let post = |authorization: Option<&HeaderValue>| {
            let headers = credential::with_authorization(&headers, authorization);
            let post = self.client.post(self.address()).headers(headers);
            post.timeout(DELIVERY_TIMEOUT).body(body.clone())
        };
        let Err(undelivered) = delivery::deliver(self.credential.as_deref(), post).await else {
            return;
        };
        let why = undelivered.failure();
        match answered {
            Some(AnsweredRequest { id, reply }) => {
                tracing::warn!(target: "upstream", upstream = self.label, "it did not get an answer that it asked for: {why}");
                // A server that refuses an error reply goes on without an answer.
                if !matches!((&undelivered, reply), (Undelivered::Refused(_), Reply::Error(_))) {
                    self.relay.question_unanswered(&id, why);
                }
            }
            None => {
                tracing::debug!(target: "upstream", upstream = self.label, "a message was not sent: {why}");
            }
        }
    }

    /// Ends a session with DELETE.
    pub(super) async fn end_session(&self, session: &Session) {
        if session.id.is_none() {
            return;
        }
        let Some(headers) = self.with_credential(self.headers_of(session)).await else { return };
        let delete = self.client.delete(self.address()).headers(headers).send();
        // A server may refuse to end sessions; it will forget this one.
        timeout(CLOSING_TIMEOUT, delete).await.ok();
    }
}
