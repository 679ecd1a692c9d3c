//! What is asked of the pipeline, and how that ends.

use std::sync::Arc;
use std::time::Duration;

use catalog::{Problem, Slot};
use tool::{Failure, Json, Object, Reply};

use crate::artifact::{Artifact, TooLong};
use crate::error::Code;
use crate::gate;
use crate::stage::ValidCall;
use crate::stage::pattern::Named;
use crate::trust::ledger;

/// A question, after a surface has found out what is meant.
#[derive(Clone, Debug)]
pub struct Request {
    pub target: Target,
    pub arguments: Option<Json>,
    /// What came with the request beside the name and the arguments.
    pub rest: Object,
    /// How many characters the caller asks for, if they ask.
    pub wanted: Option<usize>,
    pub mode: Mode,
}

/// What is asked for, and what it is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub callee: Arc<Callee>,
    pub what: What,
}

/// What a call is of, by all of its names.
///
/// Shared by everything that tells of a call: for a function, a snapshot makes
/// it once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Callee {
    /// The canonical id.
    pub id: String,
    /// The operator's label for the upstream.
    pub upstream: String,
    /// The upstream's own name for it: a tool's, a URI, a prompt's.
    pub tool: String,
    /// `upstream/tool`, as ledgers know it.
    pub path: String,
}

/// Where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    Tool(Slot),
    /// A resource of a source of the catalog.
    Resource {
        source: usize,
        uri: String,
    },
    /// A prompt of a source, by the upstream's own name.
    Prompt {
        source: usize,
        name: String,
    },
    /// A skill of a CaSH server, where it stands here.
    Skill {
        source: usize,
        namespace: String,
        name: String,
    },
    /// A task that a function began, by the method that asks about it.
    Task {
        slot: Slot,
        method: String,
    },
    /// What a CaSH server says about one of its functions.
    Help {
        slot: Slot,
    },
}

/// Turns an upstream's answer into what its reader gets, before it is measured.
pub(crate) type Telling<'a> = &'a (dyn Fn(&Reply) -> Reply + Send + Sync);

/// How a call is treated on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Arguments in any spelling are brought to the schema's and checked.
    Run,
    /// Arguments are checked as they are.
    Strict,
    /// As strict, but nothing is asked of anybody.
    Plan,
    /// Arguments and answer pass as they are: the upstream judges the one, and
    /// the client asked for the whole of the other.
    Pass,
}

/// How a call ended well.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// An answer that may go out.
    Reply(Reply),
    /// The answer is too long; it is kept under a handle.
    Kept { artifact: Arc<Artifact>, over: gate::Over },
    /// The answer is too long, and too long to be kept.
    Unkept { artifact: Arc<Artifact>, over: gate::Over, why: TooLong },
    /// What would be asked, and of whom.
    Plan(Box<ValidCall>),
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

/// The gate does not let a call through.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    pub code: Refused,
    pub message: String,
    pub retry_after: Option<Duration>,
}

/// Why the gate does not let a call through.
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
    /// Nothing is known of the upstream, and it cannot be reached.
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
    pub(crate) fn before(code: Code) -> Refused {
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

impl What {
    /// The gateway surface's word for what is done; where it has none, ours.
    pub fn meta_tool(&self) -> &'static str {
        match self {
            What::Tool(_) => "tool_execute",
            What::Resource { .. } => "resource_read",
            What::Prompt { .. } | What::Skill { .. } => "prompt_get",
            What::Task { .. } => "task",
            What::Help { .. } => "help",
        }
    }

    /// Whether it belongs to a call that is made elsewhere: it was admitted, or
    /// will have to be, by itself.
    pub fn is_aside(&self) -> bool {
        match self {
            What::Task { .. } | What::Help { .. } => true,
            What::Tool(_) | What::Resource { .. } | What::Prompt { .. } | What::Skill { .. } => {
                false
            }
        }
    }
}

impl Target {
    /// A function.
    pub fn of(slot: Slot, callee: Arc<Callee>) -> Target {
        Target { callee, what: What::Tool(slot) }
    }
}

impl Callee {
    pub fn new(id: &str, upstream: &str, tool: &str) -> Callee {
        Callee {
            id: id.to_owned(),
            upstream: upstream.to_owned(),
            tool: tool.to_owned(),
            path: ledger::name(upstream, tool),
        }
    }

    /// All the names that an operator may use for it.
    pub fn named(&self) -> Named<'_> {
        Named { id: &self.id, upstream: &self.upstream, name: &self.tool }
    }
}

impl Request {
    /// A plain call.
    pub fn new(target: Target, arguments: Json) -> Request {
        Request {
            target,
            arguments: Some(arguments),
            rest: Object::new(),
            wanted: None,
            mode: Mode::Run,
        }
    }
}
