//! How a call ends.

use std::sync::Arc;

use catalog::Problem;
use tool::{Failure, Reply};

use artifacts::gate;
use artifacts::pick::PickError;
use artifacts::{Artifact, TooLarge};
use policy::refusal::Refusal;
use policy::validate::ValidCall;

/// Turns an upstream's answer into what its reader gets, before it is measured.
pub(crate) type RenderReply<'a> = &'a (dyn Fn(&Reply) -> Reply + Send + Sync);

/// How a call ended well.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// An answer that may go out.
    Reply(Reply),
    /// The answer is too long; it is kept under a handle.
    Kept { artifact: Arc<Artifact>, over: gate::Over },
    /// The answer is too long, and too long to be kept.
    Unkept { artifact: Arc<Artifact>, over: gate::Over, why: TooLarge, beginning: String },
    /// The part that the caller asked for cannot be had, or is too long; the
    /// whole answer is kept under a handle, unless it is too long for that.
    Unpicked { artifact: Arc<Artifact>, why: PickError, stored: Result<(), TooLarge> },
    /// What would be asked, and of whom.
    Plan(Box<Plan>),
}

/// What a dry run came to.
#[derive(Clone, Debug)]
pub struct Plan {
    pub call: ValidCall,
    /// Whether the limits would let the call through now.
    pub is_within_limits: bool,
}

/// Why a call produced no answer. One variant per remedy.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CallError {
    #[error("the arguments do not fit")]
    BadArguments { problems: Vec<Problem> },
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("`{upstream}` did not answer")]
    Failed {
        upstream: String,
        #[source]
        cause: Failure,
    },
}
