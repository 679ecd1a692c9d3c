//! Confirmation tokens that several replicas share: each is used once, whichever
//! replica issued it.
//!
//! The store holds a digest of each token, so nobody can use one that they read there,
//! with the signature of its call, so nobody can add one.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use policy::approval::{TokenStore, TokensAway};
use ring::{digest, hmac};

use crate::state::{SingleUse, StateError};

/// How long one operation of the store may hold up a call.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The first bytes of the signed text; the number is the version of the format.
const DOMAIN: &[u8] = b"gatelet confirm token 1\n";

/// Tokens in a store that several replicas share.
pub struct SharedTokens {
    values: Arc<dyn SingleUse>,
    key: hmac::Key,
}

impl SharedTokens {
    /// Creates the store of tokens. Only the replicas know the key.
    pub fn new(values: Arc<dyn SingleUse>, key: &[u8]) -> SharedTokens {
        SharedTokens { values, key: hmac::Key::new(hmac::HMAC_SHA256, key) }
    }
}

/// The text whose signature is stored under the name of a token.
fn signed_text(name: &str, binding: &str) -> Vec<u8> {
    [DOMAIN, name.as_bytes(), b"\n", binding.as_bytes()].concat()
}

/// The name of a token in the store.
fn name(token: &str) -> String {
    let digest = digest::digest(&digest::SHA256, token.as_bytes());
    format!("confirm {}", tool::hex::encode(digest.as_ref()))
}

#[async_trait]
impl TokenStore for SharedTokens {
    async fn issue(&self, token: &str, binding: &str, life: Duration) -> Result<(), TokensAway> {
        let name = name(token);
        let signature = hmac::sign(&self.key, &signed_text(&name, binding));
        let value = Bytes::copy_from_slice(signature.as_ref());
        self.values.put(&name, value, life, TIMEOUT).await.map_err(away)
    }

    async fn redeem(&self, token: &str, binding: &str) -> Result<bool, TokensAway> {
        let name = name(token);
        match self.values.take(&name, TIMEOUT).await {
            Ok(Some(value)) => {
                Ok(hmac::verify(&self.key, &signed_text(&name, binding), &value).is_ok())
            }
            // After a failover nobody knows whether it was used.
            Ok(None) | Err(StateError::Gone) => Ok(false),
            Err(error) => Err(away(error)),
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is given to `map_err`")]
fn away(error: StateError) -> TokensAway {
    TokensAway(error.to_string())
}

#[cfg(test)]
mod tests {
    use tool::clock::Fake;

    use super::*;
    use crate::memory::{Limits, Memory};

    const LIFE: Duration = Duration::from_secs(300);

    #[tokio::test]
    async fn a_token_is_good_once_at_one_replica_for_its_call() {
        let clock: Arc<Fake> = Arc::default();
        let store = Arc::new(Memory::new(Arc::clone(&clock) as _, Limits::default()));
        let replica = |key: &[u8]| SharedTokens::new(Arc::clone(&store) as _, key);
        let (one, other, stranger) = (replica(b"key"), replica(b"key"), replica(b"another"));
        one.issue("a", "call", LIFE).await.unwrap();
        assert_eq!(other.redeem("a", "call").await, Ok(true));
        assert_eq!(one.redeem("a", "call").await, Ok(false), "a second time");
        one.issue("b", "call", LIFE).await.unwrap();
        assert_eq!(other.redeem("b", "another call").await, Ok(false));
        assert_eq!(other.redeem("b", "call").await, Ok(false), "spent by the wrong one");
        stranger.issue("c", "call", LIFE).await.unwrap();
        assert_eq!(one.redeem("c", "call").await, Ok(false), "nobody of us issued it");
        one.issue("d", "call", LIFE).await.unwrap();
        clock.advance(LIFE);
        assert_eq!(other.redeem("d", "call").await, Ok(false), "its life is over");
    }
}
