//! Tells the operator's own service about new requests for approval: one signed message
//! each, as Standard Webhooks specifies.
//!
//! A message is sent a few times at most; the request stays in the queue in any case. The
//! response of the service decides nothing: it decides with a signed message of its own,
//! which the console receives.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use hmac::{Hmac, KeyInit, Mac};
use mcp::http_client;
use policy::approval::QueuedRequest;
use policy::approval::approvals::Announce;
use policy::approval::queued::PageUrl;
use reqwest::redirect::Policy;
use serde_json::json;
use sha2::Sha256;
use tokio::sync::Semaphore;

use crate::time;

/// How often a message is sent at most.
const ATTEMPTS: u32 = 5;
/// The pause before the second attempt, doubled each time.
const PAUSE: Duration = Duration::from_secs(2);
/// How long the service may take to answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How many messages may be in delivery at once.
const MAX_DELIVERIES: usize = 32;

/// Announces requests for approval to the service at the configured URL.
pub(super) struct Webhook(Arc<Sender>);

struct Sender {
    client: reqwest::Client,
    url: String,
    /// The key that messages are signed with.
    key: Vec<u8>,
    /// The console's page for a request, which messages link to.
    page: PageUrl,
    deliveries: Arc<Semaphore>,
}

impl Webhook {
    pub(super) fn new(config: &config::Webhook, page: PageUrl) -> anyhow::Result<Webhook> {
        // Only the operator names the address, so redirects are not followed.
        let client = http_client::builder().redirect(Policy::none()).timeout(TIMEOUT).build()?;
        let (url, key) = (config.url.clone(), config.key.clone());
        let deliveries = Arc::new(Semaphore::new(MAX_DELIVERIES));
        Ok(Webhook(Arc::new(Sender { client, url, key, page, deliveries })))
    }
}

impl Announce for Webhook {
    fn requested(&self, request: &QueuedRequest) {
        let sender = Arc::clone(&self.0);
        let Ok(permit) = Arc::clone(&sender.deliveries).try_acquire_owned() else {
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

/// One message; its id is the same in every attempt.
struct Message {
    id: String,
    /// The number of the request for approval.
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
        // Unique also over restarts, because a number is never used twice.
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
                Err(DeliveryError::Refused(status)) => {
                    let number = message.number;
                    tracing::warn!(number, status, "the webhook does not take the message");
                    return;
                }
                Err(DeliveryError::Failed(error)) if attempt == ATTEMPTS => {
                    let number = message.number;
                    tracing::warn!(number, error, "the webhook was not reached; the request waits");
                }
                Err(DeliveryError::Failed(_)) => {
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                }
            }
        }
    }

    async fn send(&self, message: &Message) -> Result<(), DeliveryError> {
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
            .map_err(|error| DeliveryError::Failed(http_client::root_cause(&error).to_string()))?;
        match response.status() {
            status if status.is_success() => Ok(()),
            // Too busy, or broken: it may work later.
            status if status.is_server_error() || status.as_u16() == 429 => {
                Err(DeliveryError::Failed(status.to_string()))
            }
            status => Err(DeliveryError::Refused(status.as_u16())),
        }
    }
}

/// Why a message did not arrive.
enum DeliveryError {
    /// The service answered with this status; sending again would not help.
    Refused(u16),
    /// It may work later.
    Failed(String),
}

/// The signature of a message by the scheme `v1` of Standard Webhooks.
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
