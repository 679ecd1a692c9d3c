//! What somebody is asked to agree to, and the stage that asks.

use async_trait::async_trait;
use sha2::{Digest, Sha256};
use tool::{CallerKey, Context, Identity, hex};

use crate::call::Callee;
use crate::question::Question;
use crate::refusal::Refusal;

/// How somebody is asked to agree to a call: the one way, whoever wants it.
#[async_trait]
pub trait Approval: Send + Sync {
    async fn agree(
        &self,
        question: &Question,
        request: &ApprovalRequest<'_>,
        context: &Context,
    ) -> Result<(), Refusal>;

    /// Whether nothing that a model is given lets a call through.
    fn is_outside_of_the_model(&self) -> bool {
        true
    }
}

/// What somebody agrees to.
#[derive(Clone, Debug)]
pub struct ApprovalRequest<'a> {
    /// What identifies it: whoever agrees to one request agrees to no other.
    pub key: String,
    pub callee: &'a Callee,
    /// The tool as it looks now, where a tool is called: what is remembered about
    /// a tool does not hold for one that changed.
    pub digest: Option<String>,
    /// As JSON, for whoever is asked.
    pub arguments: &'a str,
    /// What came with the call under `gatelet/confirm`: a token, or
    /// [`LATER`](crate::confirm::LATER).
    pub token: Option<&'a str>,
    /// The call as it is written on its surface, open at the end for one more
    /// argument; empty where that is not known.
    pub call_text: String,
}

/// Who asks, as a hash: the caller, where they connect from when nobody knows
/// who they are, and how many requests are counted for them.
pub fn caller_hash(caller: &Identity) -> String {
    let address = match caller.caller_key() {
        CallerKey::Subject(_) => String::new(),
        CallerKey::Address(address) => format!("{address:?}"),
    };
    hash(&[&caller.subject, &address])
}

/// What an agreement is bound to: who calls, with which client, on which
/// session, what, with which arguments. A session on a pipe has no name of its
/// own, so it is known by its client, and an agreement outlives the process.
pub fn binding(context: &Context, call_key: &str) -> String {
    let caller = caller_hash(&context.caller);
    hash(&[&caller, &context.client.name, context.session_or_client(), call_key])
}

/// Parts with their lengths, so that no two lists of parts have one hash.
fn hash(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(part.as_bytes());
    }
    hex::encode(&hash.finalize())
}
