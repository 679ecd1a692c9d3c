//! How a call ends: with an [`Outcome`], or with a [`CallError`].

use std::sync::Arc;

use catalog::Problem;
use tool::{Failure, Reply};

use artifacts::gate;
use artifacts::pick::PickError;
use artifacts::{Artifact, TooLarge};
use policy::refusal::Refusal;
use policy::validate::ValidCall;

/// Turns an upstream's answer into the form that the client gets, before it is measured.
pub(crate) type RenderReply<'a> = &'a (dyn Fn(&Reply) -> Reply + Send + Sync);

/// How a call ended that produced an answer or a plan.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// An answer that may go out.
    Reply(Reply),
    /// The answer is over the size limit and stored as an artifact.
    Kept { artifact: Arc<Artifact>, over: gate::Excess },
    /// The answer is over the size limit and too large to be stored; only its
    /// beginning goes out.
    Unkept { artifact: Arc<Artifact>, over: gate::Excess, why: TooLarge, beginning: String },
    /// The part that the caller asked for could not be picked, or is too long. The
    /// whole answer is stored as an artifact unless `stored` says that it is too large.
    Unpicked { artifact: Arc<Artifact>, why: PickError, stored: Result<(), TooLarge> },
    /// The call was a dry run.
    Plan(Box<Plan>),
}

/// The result of a dry run: the call that would be made.
#[derive(Clone, Debug)]
pub struct Plan {
    pub call: ValidCall,
    /// Whether the quota would let the call through now.
    pub is_within_limits: bool,
}

/// Why a call produced no answer. One variant per remedy.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CallError {
    #[error("the arguments do not fit")]
    BadArguments { problems: Vec<Problem> },
    /// Refused before the upstream was asked: an unknown function, a rule, a quota.
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("`{upstream}` did not answer")]
    Failed {
        upstream: String,
        #[source]
        cause: Failure,
    },
}

impl CallError {
    pub(super) fn bad_arguments(problems: Vec<Problem>) -> CallError {
        CallError::BadArguments { problems }
    }
}
