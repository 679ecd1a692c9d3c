//! A team's own service hears of requests for approval: one signed message for
//! each that begins to wait, in the form of Standard Webhooks.
//!
//! A message is tried a few times and then given up; the request waits all the
//! same. Nothing that the service answers agrees to anything: it decides by a
//! signed message of its own.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use hmac::{Hmac, KeyInit, Mac};
use mcp::http_client;
use policy::approval::QueuedRequest;
use policy::approval::desk::Announce;
use policy::approval::queued::Page;
use reqwest::redirect::Policy;
use serde_json::json;
use sha2::Sha256;
use tokio::sync::Semaphore;

use crate::time;

/// How often a message is tried.
const ATTEMPTS: u32 = 5;
/// The pause before the second attempt, doubled each time.
const PAUSE: Duration = Duration::from_secs(2);
/// How long the service may take to answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How many messages may be on their way at once.
const AT_ONCE: usize = 32;

/// Sends messages.
pub(super) struct Webhook(Arc<Sender>);

struct Sender {
    client: reqwest::Client,
    url: String,
    key: Vec<u8>,
    page: Page,
    room: Arc<Semaphore>,
}

impl Webhook {
    pub(super) fn new(config: &config::Webhook, page: Page) -> anyhow::Result<Webhook> {
        // The operator named the address; nobody else leads us to another.
        let client = http_client::builder().redirect(Policy::none()).timeout(TIMEOUT).build()?;
        let (url, key) = (config.url.clone(), config.key.clone());
        let room = Arc::new(Semaphore::new(AT_ONCE));
        Ok(Webhook(Arc::new(Sender { client, url, key, page, room })))
    }
}

impl Announce for Webhook {
    fn requested(&self, request: &QueuedRequest) {
        let sender = Arc::clone(&self.0);
        let Ok(permit) = Arc::clone(&sender.room).try_acquire_owned() else {
            tracing::warn!(
                number = request.number,
                "the webhook is not told: too many wait for it"
            );
            return;
        };
        let message = Message::new(request, (sender.page)(request.number).as_deref());
        tokio::spawn(async move {
            sender.deliver(&message).await;
            drop(permit);
        });
    }
}

/// One message; its id stays the same however often it is tried.
struct Message {
    id: String,
    number: u64,
    body: String,
}

impl Message {
    fn new(request: &QueuedRequest, page: Option<&str>) -> Message {
        let subject = &request.subject;
        let body = json!({
            "type": "approval.requested",
            "timestamp": time::rfc3339(request.asked_at),
            "data": {
                "number": request.number,
                "question": subject.question,
                "caller": subject.caller,
                "client": subject.client,
                "upstream": subject.upstream,
                "tool": subject.tool,
                "arguments": subject.arguments,
                "expires": time::rfc3339(request.expires_at),
                "page": page,
            },
        });
        // Unique over restarts: numbers are never given twice.
        let id = format!(
            "approval-{}-{}",
            request.number,
            &request.binding[..12.min(request.binding.len())]
        );
        Message { id, number: request.number, body: body.to_string() }
    }
}

impl Sender {
    async fn deliver(&self, message: &Message) {
        let mut pause = PAUSE;
        for attempt in 1..=ATTEMPTS {
            match self.send(message).await {
                Ok(()) => return,
                Err(Undelivered::Refused(status)) => {
                    let number = message.number;
                    tracing::warn!(number, status, "the webhook does not take the message");
                    return;
                }
                Err(Undelivered::Failed(error)) if attempt == ATTEMPTS => {
                    let number = message.number;
                    tracing::warn!(number, error, "the webhook was not reached; the request waits");
                }
                Err(Undelivered::Failed(_)) => {
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                }
            }
        }
    }

    async fn send(&self, message: &Message) -> Result<(), Undelivered> {
        let timestamp = time::unix_seconds().to_string();
        let signature = signature(&self.key, &message.id, &timestamp, &message.body);
        let request = self
            .client
            .post(&self.url)
            .header("content-type", "application/json")
            .header("webhook-id", &message.id)
            .header("webhook-timestamp", &timestamp)
            .header("webhook-signature", signature)
            .body(message.body.clone());
        let response = request.send().await;
        let response = response
            .map_err(|error| Undelivered::Failed(http_client::deepest(&error).to_string()))?;
        match response.status() {
            status if status.is_success() => Ok(()),
            // Too busy, or broken: it may work later.
            status if status.is_server_error() || status.as_u16() == 429 => {
                Err(Undelivered::Failed(status.to_string()))
            }
            status => Err(Undelivered::Refused(status.as_u16())),
        }
    }
}

/// Why a message did not arrive.
enum Undelivered {
    /// Trying again is no use.
    Refused(u16),
    Failed(String),
}

/// The signature of a message, by the scheme `v1`.
pub(crate) fn signature(key: &[u8], id: &str, timestamp: &str, body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key may have any length");
    mac.update(format!("{id}.{timestamp}.{body}").as_bytes());
    let engine = base64::engine::general_purpose::STANDARD;
    format!("v1,{}", engine.encode(mac.finalize().into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_the_one_of_the_specification() {
        // The example of the Standard Webhooks specification.
        let engine = base64::engine::general_purpose::STANDARD;
        let key = engine.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let body = r#"{"test": 2432232314}"#;
        let signed = signature(&key, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", body);
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }
}
