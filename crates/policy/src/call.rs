//! What is asked of the pipeline: a [`Request`] for a [`Target`], which has a
//! name ([`Callee`]) and a place ([`What`]).

use std::sync::Arc;

use catalog::{Slot, name};
use tool::{Json, Object};

use crate::pattern::{Named, Shown};
use artifacts::pick::Pick;

/// The method that asks a CaSH server for the help of a function, with the
/// arguments of `help`.
pub const HELP: &str = "cash/help";

/// The method that asks a CaSH server for one skill, with the arguments of
/// `skill`; the answer is its result.
pub const SKILL: &str = "cash/skill";

/// A question, after a surface has found out what is meant.
#[derive(Clone, Debug)]
pub struct Request {
    pub target: Target,
    pub arguments: Option<Json>,
    /// What came with the request beside the name and the arguments.
    pub rest: Object,
    /// How many characters the caller asks for, if they ask.
    pub wanted: Option<usize>,
    /// How many characters the answer may have where it is one of several.
    pub share: Option<usize>,
    /// Which part of the answer the caller asks for, if not for all of it.
    pub pick: Option<Pick>,
    /// The script that makes the call, by its id.
    pub script: Option<Arc<str>>,
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
    pub known_as: KnownAs,
}

/// How callers know it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum KnownAs {
    /// As the upstream names it.
    #[default]
    Named,
    /// A function, by its dotted path, as `help` shows it; and whether another
    /// differs from it in nothing but spelling.
    Path { path: String, has_double: bool },
    /// A resource, by its URI.
    Address,
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
    /// Values for an argument of a prompt or of a resource template.
    Completion {
        source: usize,
        of: Completed,
    },
    /// News of a resource, from now on or no longer.
    Subscription {
        source: usize,
        uri: String,
        change: SubscriptionChange,
    },
}

/// What a completion is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Completed {
    /// A prompt, by the upstream's own name.
    Prompt(String),
    /// A resource template, or a resource.
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

    /// Which change a method asks for.
    pub fn of_method(method: &str) -> Option<SubscriptionChange> {
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

/// How a call is treated on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Arguments in any spelling are brought to the schema's and checked.
    Run,
    /// As a script calls a function: arguments as in `Run`, and the answer is for
    /// the script, whole.
    Inner,
    /// Arguments are checked as they are.
    Strict,
    /// As strict, but nothing is asked of anybody.
    Plan,
    /// Arguments and answer pass as they are: the upstream judges the one, and
    /// the client asked for the whole of the other.
    Pass,
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
            What::Completion { .. } => "complete",
            What::Subscription { .. } => "subscribe",
        }
    }

    /// The word of the rules that hold for it as well: whoever may not read a
    /// resource may not subscribe to it either.
    pub fn ruled_as(&self) -> Option<&'static str> {
        match self {
            What::Completion { of: Completed::Prompt(_), .. } => Some("prompt_get"),
            What::Completion { of: Completed::Resource(_), .. } | What::Subscription { .. } => {
                Some("resource_read")
            }
            What::Tool(_)
            | What::Resource { .. }
            | What::Prompt { .. }
            | What::Skill { .. }
            | What::Task { .. }
            | What::Help { .. } => None,
        }
    }

    /// Whether it belongs to a call that is made elsewhere: it was admitted, or
    /// will have to be, by itself.
    pub fn is_aside(&self) -> bool {
        match self {
            What::Task { .. }
            | What::Help { .. }
            | What::Completion { .. }
            | What::Subscription { .. } => true,
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
            path: path(upstream, tool),
            known_as: KnownAs::Named,
        }
    }

    /// The same, known to callers in another way.
    #[must_use]
    pub fn known_as(self, known_as: KnownAs) -> Callee {
        Callee { known_as, ..self }
    }

    pub fn shown(&self) -> Shown<'_> {
        match &self.known_as {
            KnownAs::Named => Shown::AsNamed,
            KnownAs::Path { path, has_double } => Shown::Path { path, has_double: *has_double },
            KnownAs::Address => Shown::Address,
        }
    }

    /// All the names that an operator may use for it.
    pub fn named(&self) -> Named<'_> {
        Named { id: &self.id, upstream: &self.upstream, name: &self.tool, shown: self.shown() }
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
            share: None,
            pick: None,
            script: None,
            mode: Mode::Run,
        }
    }
}

/// `upstream/tool`: how ledgers, records and usage history know a tool. The
/// upstream goes by its legal name, however its label is written.
pub fn path(upstream: &str, tool: &str) -> String {
    match name::is_legal(upstream) {
        true => [upstream, "/", tool].concat(),
        false => [name::alias(upstream).as_str(), "/", tool].concat(),
    }
}
