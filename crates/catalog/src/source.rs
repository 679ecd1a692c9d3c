//! One upstream as the catalog sees it.

use std::sync::Arc;

use tool::Listing;

/// An upstream's listing under the operator's label.
#[derive(Clone, Debug)]
pub struct Source {
    /// The operator's name for the upstream: the first namespace level.
    pub label: String,
    /// The operator's description; the server's own description counts when `None`.
    pub description: Option<String>,
    pub listing: Arc<Listing>,
    pub state: State,
    pub role: Role,
    /// The skills that come with it.
    pub skills: Arc<[Skill]>,
}

/// The searchable part of a skill (instructions for a task).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    /// A dotted path; empty for the root.
    pub namespace: String,
    pub name: String,
    pub description: String,
}

/// Whose functions these are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Upstream,
    /// gatelet's own functions: listed last, and their label is reserved.
    Builtin,
}

/// Whether an upstream can be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    Available,
    /// The listing is from an earlier run and not verified yet.
    Remembered,
    /// It cannot be reached; the reason is one line.
    Unavailable {
        reason: String,
    },
}

impl Source {
    /// An available upstream.
    pub fn new(label: &str, listing: Arc<Listing>) -> Source {
        Source {
            label: label.to_owned(),
            description: None,
            listing,
            state: State::Available,
            role: Role::Upstream,
            skills: Arc::default(),
        }
    }

    /// The reason why it cannot be called, if it cannot.
    pub fn unavailable(&self) -> Option<&str> {
        match &self.state {
            State::Available | State::Remembered => None,
            State::Unavailable { reason } => Some(reason),
        }
    }
}
