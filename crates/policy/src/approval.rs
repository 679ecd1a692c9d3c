//! Approval: asks a person to agree to a call, where a rule demands it or a
//! destructive tool is not trusted enough.
//!
//! The user is asked through the client where the client can. Where it cannot,
//! the call waits in a [queue] for somebody outside of the conversation
//! ([`QueuedApproval`]); nothing that the model receives can approve the call. An
//! operator may choose tokens instead, which the model receives
//! ([`TokenApproval`]). Calls that an operator no longer wants to be asked about
//! are [remembered].

pub mod queue;
pub mod request;

pub mod approvals;
pub mod remembered;

mod argument_text;
pub mod elicit;
pub mod queued;
pub mod token;

pub use approvals::{Approvals, InMemoryQueue, QueueStore, QueueUnavailable};
pub use queue::{DecideError, Queue, QueuedRequest, RequestState, Verdict};
pub use queued::QueuedApproval;
pub use remembered::{ANY_WORD, RememberedApproval};
pub use request::{Approval, ApprovalRequest, caller_hash};
pub use token::{TokenApproval, TokenStore, TokensAway};
