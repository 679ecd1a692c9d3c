//! The approval stage as a trait, and the request that a person agrees to.

use async_trait::async_trait;
use sha2::{Digest, Sha256};
use tool::{CallerKey, Context, Identity, hex};

use crate::call::Callee;
use crate::question::Question;
use crate::refusal::Refusal;

/// The approval stage: has a person agree to a call, or refuses it.
#[async_trait]
pub trait Approval: Send + Sync {
    /// Asks a person; `Ok` means that they agreed.
    async fn agree(
        &self,
        question: &Question,
        request: &ApprovalRequest<'_>,
        context: &Context,
    ) -> Result<(), Refusal>;

    /// Whether a model cannot approve its own call with anything that it receives.
    fn is_outside_of_the_model(&self) -> bool {
        true
    }
}

/// The call that a person is asked to agree to.
#[derive(Clone, Debug)]
pub struct ApprovalRequest<'a> {
    /// Identifies the call: an approval holds for this key only.
    pub key: String,
    pub callee: &'a Callee,
    /// The digest of the tool's present definition, where a tool is called: a
    /// remembered approval does not hold for a tool that changed.
    pub digest: Option<String>,
    /// The arguments as JSON.
    pub arguments: &'a str,
    /// The value that came with the call under `gatelet/confirm`: a token, or
    /// [`DO_NOT_WAIT`](crate::confirm::DO_NOT_WAIT).
    pub token: Option<&'a str>,
    /// The call as its surface writes it, without the closing bracket so that an
    /// argument can be appended; empty where that is not known.
    pub call_text: String,
}

/// A hash of the caller: of their subject, or of their network address when they are
/// anonymous.
pub fn caller_hash(caller: &Identity) -> String {
    let address = match caller.caller_key() {
        CallerKey::Subject(_) => String::new(),
        CallerKey::Address(address) => format!("{address:?}"),
    };
    hash(&[&caller.subject, &address])
}

/// A hash of everything that an approval is bound to: caller, client, session, and the
/// call with its arguments. A session over stdio has no id, so its client stands for it,
/// and an approval outlives the process.
pub fn binding(context: &Context, call_key: &str) -> String {
    let caller = caller_hash(&context.caller);
    hash(&[&caller, &context.client.name, context.session_or_client(), call_key])
}

/// Hashes the parts with their lengths, so that different lists have different hashes.
fn hash(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(part.as_bytes());
    }
    hex::encode(&hash.finalize())
}
