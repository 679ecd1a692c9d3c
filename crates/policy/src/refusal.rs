//! [`Refusal`]: the pipeline refuses a call, and why.

use std::time::Duration;

use artifacts::Unreadable;

use crate::code::Code;

/// The pipeline refuses a call.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    pub code: RefusalCode,
    pub message: String,
    pub retry_after: Option<Duration>,
}

/// The artifact store cannot say whether the call ran before, so it must not run.
impl From<Unreadable> for Refusal {
    fn from(unreadable: Unreadable) -> Refusal {
        let message = format!("{unreadable}. Nothing was called; try again in a moment");
        Refusal { code: RefusalCode::Unavailable, message, retry_after: None }
    }
}

/// Why the pipeline refuses a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalCode {
    /// The request itself cannot be understood.
    BadCall,
    BadArguments,
    /// The tool's own schema is not a valid JSON Schema.
    BadSchema,
    UnknownFunction,
    UnknownResource,
    UnknownPrompt,
    /// The upstream cannot be reached and its listing is unknown; or it is unknown
    /// whether the call has run before.
    Unavailable,
    RateLimited,
    /// An operator's rule denies it.
    Denied,
    /// The tool is not trusted.
    Untrusted,
    /// The user was asked and said no.
    Declined,
    /// The user has to be asked first.
    ApprovalRequired,
}

impl RefusalCode {
    /// A stable name, for records.
    pub fn as_str(self) -> &'static str {
        match self {
            RefusalCode::BadCall => "bad-call",
            RefusalCode::BadArguments => "bad-arguments",
            RefusalCode::BadSchema => "bad-schema",
            RefusalCode::UnknownFunction => "unknown-function",
            RefusalCode::UnknownResource => "unknown-resource",
            RefusalCode::UnknownPrompt => "unknown-prompt",
            RefusalCode::Unavailable => "unavailable",
            RefusalCode::RateLimited => "rate-limited",
            RefusalCode::Denied => "policy-denied",
            RefusalCode::Untrusted => "untrusted",
            RefusalCode::Declined => "declined",
            RefusalCode::ApprovalRequired => "approval-required",
        }
    }

    /// The error code that models and records see.
    pub fn code(self) -> Code {
        match self {
            RefusalCode::BadCall | RefusalCode::BadArguments => Code::ArgsInvalid,
            RefusalCode::BadSchema => Code::SchemaInvalid,
            RefusalCode::UnknownFunction => Code::HydrateFailed,
            RefusalCode::UnknownResource => Code::ResourceNotFound,
            RefusalCode::UnknownPrompt => Code::PromptNotFound,
            RefusalCode::Unavailable => Code::UpstreamUnavailable,
            RefusalCode::RateLimited => Code::RateLimited,
            RefusalCode::Denied | RefusalCode::Declined => Code::PolicyDenied,
            RefusalCode::Untrusted => Code::PermissionDenied,
            RefusalCode::ApprovalRequired => Code::AuthRequired,
        }
    }

    /// The refusal for a call that a surface rejected before the pipeline, by the
    /// code of its answer.
    pub fn from_surface_code(code: Code) -> RefusalCode {
        let found = [
            RefusalCode::UnknownFunction,
            RefusalCode::UnknownResource,
            RefusalCode::UnknownPrompt,
            RefusalCode::BadSchema,
            RefusalCode::Unavailable,
        ];
        found.into_iter().find(|why| why.code() == code).unwrap_or(RefusalCode::BadCall)
    }
}
