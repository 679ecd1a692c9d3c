//! The queue of messages that are posted beside the requests: responses to the
//! server's own requests, and notifications.

use std::sync::Arc;

use http::HeaderValue;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Duration, timeout};
use tool::Reply;

use super::delivery::{Answered, DELIVERY_TIMEOUT, Delivery};
use super::{Http, Session};
use crate::connect::credential;
use crate::connect::delivery::{self, Undelivered};
use crate::connect::shutdown::Shutdown;
use crate::revision::method;

/// How many may be on their way at once: a server that takes one slowly must
/// not keep another client's answer waiting.
const AT_ONCE: usize = 64;

/// How long the last words may take.
const CLOSING_TIMEOUT: Duration = Duration::from_secs(2);

impl Http {
    /// Puts a message in line to be sent.
    pub(super) fn send(&self, delivery: Delivery) {
        if self.outbox.try_send(delivery).is_err() {
            tracing::warn!(target: "upstream", upstream = self.label, "too many messages are waiting; one is dropped");
        }
    }

    /// Says that the session is open, and waits until that has arrived:
    /// servers refuse questions that come before it.
    pub(in crate::connect) async fn opened(&self) {
        self.run(Delivery::news(method::INITIALIZED, None)).await;
    }

    /// Sends what is in line, side by side, and says goodbye at the end.
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
                delivery = waiting.recv(), if under_way.len() < AT_ONCE => delivery,
                () = self.closing.cancelled() => None,
                () = shutdown.asked() => {
                    self.relay.expect_end();
                    self.close("gatelet ends");
                    None
                }
            };
            let Some(delivery) = delivery else { break };
            let http = Arc::clone(&self);
            under_way.spawn(async move { http.run(delivery).await });
        }
        let finished = async { while under_way.join_next().await.is_some() {} };
        timeout(CLOSING_TIMEOUT, finished).await.ok();
        let session = self.session().clone();
        self.leave(&session).await;
        let why = self.why_closed.lock().clone();
        self.relay.gone(&why.unwrap_or_default());
    }

    /// Sends one message. A call whose server waits for it in vain fails.
    async fn run(&self, delivery: Delivery) {
        let Delivery { body, answers } = delivery;
        let headers = self.headers_of(&self.session().clone());
        let post = |shown: Option<&HeaderValue>| {
            let headers = credential::signed(&headers, shown);
            let post = self.client.post(self.address()).headers(headers);
            post.timeout(DELIVERY_TIMEOUT).body(body.clone())
        };
        let Err(undelivered) = delivery::deliver(self.credential.as_deref(), post).await else {
            return;
        };
        let why = undelivered.failure();
        match answers {
            Some(Answered { id, with }) => {
                tracing::warn!(target: "upstream", upstream = self.label, "it did not get an answer that it asked for: {why}");
                // What is told that something cannot be had goes on without,
                // and may not want to hear it.
                if !matches!((&undelivered, with), (Undelivered::Refused(_), Reply::Error(_))) {
                    self.relay.unanswered(&id, why);
                }
            }
            None => {
                tracing::debug!(target: "upstream", upstream = self.label, "a message was not sent: {why}");
            }
        }
    }

    /// Tells the server that a session is over.
    pub(super) async fn leave(&self, session: &Session) {
        if session.id.is_none() {
            return;
        }
        let Some(headers) = self.signed(self.headers_of(session)).await else { return };
        let delete = self.client.delete(self.address()).headers(headers).send();
        // A server may refuse to end sessions; it will forget this one.
        timeout(CLOSING_TIMEOUT, delete).await.ok();
    }
}
