//! Verifies the messages by which a team's service decides about requests for approval:
//! signed as Standard Webhooks specifies, and none is accepted twice, over restarts too.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use sha2::{Digest, Sha256};
use store::state::{SingleUse, StateError};
use subtle::ConstantTimeEq;
use tool::hex;

use crate::wire::webhook;

/// How old a message may be, in seconds.
const MESSAGE_AGE: u64 = 5 * 60;
/// How long the id of a message is kept: one may come from a clock that is ahead by its
/// whole age.
const SEEN_LIFE: Duration = Duration::from_secs(2 * MESSAGE_AGE);
/// How long the store of the ids may take.
const STORE_TIMEOUT: Duration = Duration::from_secs(2);

/// The headers and the body of a message.
pub(super) struct Message<'a> {
    pub(super) id: &'a str,
    /// Seconds since 1970.
    pub(super) timestamp: &'a str,
    pub(super) signature: &'a str,
    pub(super) body: &'a [u8],
}

/// Verifies messages by the key of the webhook.
pub(super) struct IncomingWebhook {
    key: Option<Vec<u8>>,
    /// The ids of the messages that were accepted.
    seen: Arc<dyn SingleUse>,
}

impl IncomingWebhook {
    /// Without a `key` no message is accepted.
    pub(super) fn new(key: Option<Vec<u8>>, seen: Arc<dyn SingleUse>) -> IncomingWebhook {
        IncomingWebhook { key, seen }
    }

    /// Verifies a message at `now` (seconds since 1970), and remembers it. The error is a
    /// sentence.
    pub(super) async fn verify(&self, now: u64, message: &Message<'_>) -> Result<(), String> {
        let Message { id, timestamp, signature, body } = message;
        let key = self.key.as_ref().ok_or("no webhook is configured")?;
        let sent: u64 = timestamp.parse().map_err(|_| "the timestamp is no number")?;
        if id.is_empty() || MESSAGE_AGE < now.abs_diff(sent) {
            return Err("the message is too old, or has no id".to_owned());
        }
        let body = std::str::from_utf8(body).map_err(|_| "the body is no text")?;
        let expected = webhook::signature(key, id, timestamp, body);
        // There may be several signatures, while the sender replaces its key.
        let is_ours = |shown: &str| bool::from(shown.as_bytes().ct_eq(expected.as_bytes()));
        if !signature.split(' ').any(is_ours) {
            return Err("the signature is not of this body".to_owned());
        }
        self.remember(id).await
    }

    /// Fails for a message that was accepted already, and where nobody can say.
    async fn remember(&self, id: &str) -> Result<(), String> {
        let key = format!("webhook {}", hex::encode(&Sha256::digest(id.as_bytes())));
        match self.seen.put(&key, Bytes::new(), SEEN_LIFE, STORE_TIMEOUT).await {
            Ok(()) => Ok(()),
            Err(StateError::Conflict) => Err("this message was believed already".to_owned()),
            Err(error) => Err(format!("nobody can say whether it was believed already: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use store::files::Files;

    use super::*;

    const KEY: &[u8] = b"a key of the team's service";
    const NOW: u64 = 1_800_000_000;

    fn at(directory: &Path) -> IncomingWebhook {
        IncomingWebhook::new(Some(KEY.to_vec()), Arc::new(Files::at(directory)))
    }

    /// Sends `{}` with this id, sent at a time; the error, or nothing.
    async fn check(webhook: &IncomingWebhook, id: &str, sent: u64) -> String {
        let timestamp = sent.to_string();
        let signature = format!("v1,b3RoZXI= {}", webhook::signature(KEY, id, &timestamp, "{}"));
        let message = Message { id, timestamp: &timestamp, signature: &signature, body: b"{}" };
        webhook.verify(NOW, &message).await.err().unwrap_or_default()
    }

    #[tokio::test]
    async fn a_message_counts_once_over_restarts_too() {
        let directory = tempfile::tempdir().unwrap();
        let webhook = at(directory.path());
        assert_eq!(check(&webhook, "first", NOW).await, "");
        assert!(check(&webhook, "first", NOW).await.contains("already"));
        assert!(check(&webhook, "first", NOW + 1).await.contains("already"), "signed anew");
        assert_eq!(check(&webhook, "second", NOW).await, "");
        assert!(check(&at(directory.path()), "first", NOW).await.contains("already"));
    }

    #[tokio::test]
    async fn a_message_is_of_its_time_and_of_its_body() {
        let directory = tempfile::tempdir().unwrap();
        let webhook = at(directory.path());
        for sent in [NOW - MESSAGE_AGE - 1, NOW + MESSAGE_AGE + 1] {
            assert!(check(&webhook, "early or late", sent).await.contains("too old"), "{sent}");
        }
        assert!(check(&webhook, "", NOW).await.contains("no id"));
        let timestamp = NOW.to_string();
        let signature = webhook::signature(KEY, "id", &timestamp, "{}");
        let message =
            Message { id: "id", timestamp: &timestamp, signature: &signature, body: b"{ }" };
        assert!(webhook.verify(NOW, &message).await.unwrap_err().contains("not of this body"));
        let keyless = IncomingWebhook::new(None, Arc::new(Files::at(directory.path())));
        assert!(check(&keyless, "id", NOW).await.contains("no webhook"));
    }

    #[tokio::test]
    async fn where_no_id_can_be_kept_no_message_is_believed() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("state");
        std::fs::write(&file, "").unwrap();
        assert!(check(&at(&file), "first", NOW).await.contains("nobody can say"));
    }
}
