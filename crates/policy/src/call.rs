//! The request that enters the pipeline: a [`Request`] for a [`Target`], which
//! has names ([`Callee`]) and a kind ([`TargetKind`]: tool, resource, prompt, …).

use std::sync::Arc;

use catalog::{Slot, name};
use tool::{Json, Object};

use crate::pattern::{ExposedNameRef, Names};
use crate::uri::Readings;
use artifacts::pick::Pick;

/// The method that asks a CaSH server for the help text of a function; its
/// params are the arguments of `help`.
pub const HELP: &str = "cash/help";

/// The method that asks a CaSH server for one skill; its params are the
/// arguments of `skill`.
pub const SKILL: &str = "cash/skill";

/// One request to an upstream, after a surface has resolved its target.
#[derive(Clone, Debug)]
pub struct Request {
    pub target: Target,
    pub arguments: Option<Json>,
    /// All other members of the request's params, such as `_meta`.
    pub rest: Object,
    /// The size limit for the answer, in characters, if the caller gave one.
    pub wanted: Option<usize>,
    /// The size limit for the answer, in characters, where it is one of a batch.
    pub share: Option<usize>,
    /// The part of the answer that the caller asks for; all of it when `None`.
    pub pick: Option<Pick>,
    /// The id of the script that makes the call, if one does.
    pub script: Option<Arc<str>>,
    pub mode: CallMode,
}

/// What a request is for: its names and its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub callee: Arc<Callee>,
    pub kind: TargetKind,
}

/// All names of the tool, resource or prompt that is called.
///
/// Records, approvals and quotas share it; a snapshot makes it once per function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Callee {
    /// The canonical id.
    pub id: String,
    /// The operator's label for the upstream.
    pub upstream: String,
    /// The upstream's own name for it: a tool name, a URI or a prompt name.
    pub tool: String,
    /// `upstream/tool`: the key of trust ledgers and records.
    pub path: String,
    pub exposed_name: ExposedName,
}

/// The name under which callers know an item. Owned; [`ExposedNameRef`] borrows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ExposedName {
    /// The upstream's own name.
    #[default]
    UpstreamName,
    /// The dotted path of a function, as `help` shows it. `has_lookalike` says
    /// that another function's path differs from it only in spelling.
    Path { path: String, has_lookalike: bool },
    /// The URI of a resource, as servers may read it.
    Uri(Arc<Readings>),
}

/// The kind of thing that is asked for, and where it is in the catalog.
///
/// `source` is always the position of its upstream in the catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetKind {
    Tool(Slot),
    Resource {
        source: usize,
        uri: String,
    },
    /// A prompt, by the upstream's own name.
    Prompt {
        source: usize,
        name: String,
    },
    /// A skill of a CaSH server, by its namespace and name in our catalog.
    Skill {
        source: usize,
        namespace: String,
        name: String,
    },
    /// A request about a task that a function began, such as `tasks/get`.
    Task {
        slot: Slot,
        method: String,
    },
    /// The help text of a function of a CaSH server.
    Help {
        slot: Slot,
    },
    /// The completion of an argument of a prompt or of a resource template.
    Completion {
        source: usize,
        subject: CompletionSubject,
    },
    /// The begin or end of a subscription to a resource.
    Subscription {
        source: usize,
        uri: String,
        change: SubscriptionChange,
    },
}

/// The prompt or resource whose argument is completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompletionSubject {
    /// A prompt, by the upstream's own name.
    Prompt(String),
    /// A resource template or a resource, by its URI.
    Resource(String),
}

/// Whether a subscription begins or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubscriptionChange {
    Begin,
    End,
}

impl SubscriptionChange {
    pub const BEGIN: &str = "resources/subscribe";
    pub const END: &str = "resources/unsubscribe";

    /// The change that an MCP method asks for.
    pub fn from_method(method: &str) -> Option<SubscriptionChange> {
        match method {
            SubscriptionChange::BEGIN => Some(SubscriptionChange::Begin),
            SubscriptionChange::END => Some(SubscriptionChange::End),
            _ => None,
        }
    }

    pub fn method(self) -> &'static str {
        match self {
            SubscriptionChange::Begin => SubscriptionChange::BEGIN,
            SubscriptionChange::End => SubscriptionChange::END,
        }
    }
}

/// How the pipeline treats the arguments and the answer of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallMode {
    /// Argument names and types are normalized to the schema, then checked.
    Run,
    /// A call by a script: arguments are checked, and the script gets the whole
    /// answer.
    FromScript,
    /// Arguments are checked as they are, without normalizing.
    Strict,
    /// Arguments are checked as in `Strict`, and the upstream is not called.
    DryRun,
    /// Neither arguments nor answer are touched: the upstream validates the
    /// arguments, and the client gets the whole answer.
    PassThrough,
}

impl TargetKind {
    /// The name that rules, quotas and records use for this kind of request: the
    /// meta-tool of the gateway surface where there is one.
    pub fn meta_tool(&self) -> &'static str {
        match self {
            TargetKind::Tool(_) => "tool_execute",
            TargetKind::Resource { .. } => "resource_read",
            TargetKind::Prompt { .. } | TargetKind::Skill { .. } => "prompt_get",
            TargetKind::Task { .. } => "task",
            TargetKind::Help { .. } => "help",
            TargetKind::Completion { .. } => "complete",
            TargetKind::Subscription { .. } => "subscribe",
        }
    }

    /// A second meta-tool whose rules apply as well: whoever may not read a
    /// resource may not subscribe to it either.
    pub fn ruled_as(&self) -> Option<&'static str> {
        match self {
            TargetKind::Completion { subject: CompletionSubject::Prompt(_), .. } => {
                Some("prompt_get")
            }
            TargetKind::Completion { subject: CompletionSubject::Resource(_), .. }
            | TargetKind::Subscription { .. } => Some("resource_read"),
            TargetKind::Tool(_)
            | TargetKind::Resource { .. }
            | TargetKind::Prompt { .. }
            | TargetKind::Skill { .. }
            | TargetKind::Task { .. }
            | TargetKind::Help { .. } => None,
        }
    }

    /// Whether this request only accompanies another call (such as asking for the
    /// state of a task), which needs approval and counts against quotas by itself.
    pub fn belongs_to_other_call(&self) -> bool {
        match self {
            TargetKind::Task { .. }
            | TargetKind::Help { .. }
            | TargetKind::Completion { .. }
            | TargetKind::Subscription { .. } => true,
            TargetKind::Tool(_)
            | TargetKind::Resource { .. }
            | TargetKind::Prompt { .. }
            | TargetKind::Skill { .. } => false,
        }
    }
}

impl Target {
    /// The target for a function of the catalog.
    pub fn function(slot: Slot, callee: Arc<Callee>) -> Target {
        Target { callee, kind: TargetKind::Tool(slot) }
    }
}

impl Callee {
    pub fn new(id: &str, upstream: &str, tool: &str) -> Callee {
        Callee {
            id: id.to_owned(),
            upstream: upstream.to_owned(),
            tool: tool.to_owned(),
            path: path(upstream, tool),
            exposed_name: ExposedName::UpstreamName,
        }
    }

    /// Replaces the name under which callers know it.
    #[must_use]
    pub fn with_exposed_name(self, exposed_name: ExposedName) -> Callee {
        Callee { exposed_name, ..self }
    }

    pub fn exposed_name_ref(&self) -> ExposedNameRef<'_> {
        match &self.exposed_name {
            ExposedName::UpstreamName => ExposedNameRef::UpstreamName,
            ExposedName::Path { path, has_lookalike } => {
                ExposedNameRef::Path { path, has_lookalike: *has_lookalike }
            }
            ExposedName::Uri(readings) => ExposedNameRef::Uri(readings),
        }
    }

    /// All names, for comparison with an operator's [`Pattern`](crate::pattern::Pattern).
    pub fn names(&self) -> Names<'_> {
        Names {
            id: &self.id,
            upstream: &self.upstream,
            name: &self.tool,
            exposed: self.exposed_name_ref(),
        }
    }
}

impl Request {
    /// A call without any options.
    pub fn new(target: Target, arguments: Json) -> Request {
        Request {
            target,
            arguments: Some(arguments),
            rest: Object::new(),
            wanted: None,
            share: None,
            pick: None,
            script: None,
            mode: CallMode::Run,
        }
    }
}

/// `upstream/tool`: the key of a tool in ledgers, records and usage history. A
/// label that is not a legal name is replaced by its alias.
pub fn path(upstream: &str, tool: &str) -> String {
    match name::is_legal(upstream) {
        true => [upstream, "/", tool].concat(),
        false => [name::alias(upstream).as_str(), "/", tool].concat(),
    }
}
