//! Asks a person to agree to a call, for a rule that says `ask` or for a
//! destructive tool that is not trusted enough.
//!
//! The user is asked through the client where the client can. Where it cannot,
//! the call waits in a [queue] for somebody outside of the conversation
//! ([`QueuedApproval`]); nothing that a model is given lets the call through. An
//! operator may choose the older way instead, in which the model is handed a
//! token ([`TokenApproval`]). What an operator wants to be asked about no more is
//! [remembered].

pub mod queue;
pub mod request;

pub mod desk;
pub mod remembered;

pub mod elicit;
pub mod queued;
mod shown;
pub mod token;

pub use desk::{Approvals, InMemoryQueue, QueueStore, QueueUnavailable};
pub use queue::{DecideError, Queue, QueuedRequest, RequestState, Verdict};
pub use queued::QueuedApproval;
pub use remembered::{Remembered, WORD};
pub use request::{Approval, ApprovalRequest, caller_hash};
pub use token::TokenApproval;
