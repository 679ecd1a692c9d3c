//! The reasons why the pipeline refuses a call.

use std::time::Duration;

use artifacts::Unreadable;

use crate::code::Code;

/// The pipeline does not let a call through.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    pub code: Refused,
    pub message: String,
    pub retry_after: Option<Duration>,
}

/// Whether the call ran before is not known, so it must not run.
impl From<Unreadable> for Refusal {
    fn from(unreadable: Unreadable) -> Refusal {
        let message = format!("{unreadable}. Nothing was called; try again in a moment");
        Refusal { code: Refused::Unavailable, message, retry_after: None }
    }
}

/// Why the pipeline does not let a call through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Nothing can be made of what was asked.
    BadCall,
    BadArguments,
    /// The tool has a schema that is none.
    BadSchema,
    UnknownFunction,
    UnknownResource,
    UnknownPrompt,
    /// Nothing is known of the upstream, and it cannot be reached; or nobody can
    /// say whether the call has run before.
    Unavailable,
    RateLimited,
    /// A rule says no.
    Denied,
    Untrusted,
    /// The user was asked and said no.
    Declined,
    /// The user has to be asked first.
    ApprovalRequired,
}

impl Refused {
    /// A stable word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Refused::BadCall => "bad-call",
            Refused::BadArguments => "bad-arguments",
            Refused::BadSchema => "bad-schema",
            Refused::UnknownFunction => "unknown-function",
            Refused::UnknownResource => "unknown-resource",
            Refused::UnknownPrompt => "unknown-prompt",
            Refused::Unavailable => "unavailable",
            Refused::RateLimited => "rate-limited",
            Refused::Denied => "policy-denied",
            Refused::Untrusted => "untrusted",
            Refused::Declined => "declined",
            Refused::ApprovalRequired => "approval-required",
        }
    }

    /// The code of the taxonomy.
    pub fn code(self) -> Code {
        match self {
            Refused::BadCall | Refused::BadArguments => Code::ArgsInvalid,
            Refused::BadSchema => Code::SchemaInvalid,
            Refused::UnknownFunction => Code::HydrateFailed,
            Refused::UnknownResource => Code::ResourceNotFound,
            Refused::UnknownPrompt => Code::PromptNotFound,
            Refused::Unavailable => Code::UpstreamUnavailable,
            Refused::RateLimited => Code::RateLimited,
            Refused::Denied | Refused::Declined => Code::PolicyDenied,
            Refused::Untrusted => Code::PermissionDenied,
            Refused::ApprovalRequired => Code::AuthRequired,
        }
    }

    /// Why a surface did not even carry a call, by the code of its answer.
    pub fn before(code: Code) -> Refused {
        let found = [
            Refused::UnknownFunction,
            Refused::UnknownResource,
            Refused::UnknownPrompt,
            Refused::BadSchema,
            Refused::Unavailable,
        ];
        found.into_iter().find(|why| why.code() == code).unwrap_or(Refused::BadCall)
    }
}
