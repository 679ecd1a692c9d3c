//! The types of checks and their observations.

use crate::survey::Transcript;

/// The result of a check, with its evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Observation {
    Good(String),
    Bad(String),
    /// The check is impossible on this server, and why.
    NotVisible(String),
}

/// A check: a function from the transcript to an observation.
pub(super) type Check = fn(&Transcript) -> Observation;

/// Returns [`Observation::Good`] if `holds`, with the evidence for either case.
pub(super) fn good_if(holds: bool, good: impl Into<String>, bad: impl Into<String>) -> Observation {
    if holds { Observation::Good(good.into()) } else { Observation::Bad(bad.into()) }
}

/// Returns [`Observation::Good`] if the list of problems is empty.
pub(super) fn good_if_empty(wrong: &[String], good: impl Into<String>) -> Observation {
    match wrong {
        [] => Observation::Good(good.into()),
        [only] => Observation::Bad(only.clone()),
        [first, rest @ ..] => Observation::Bad(format!("{first} (and {} more)", rest.len())),
    }
}

pub(super) fn not_visible(why: &str) -> Observation {
    Observation::NotVisible(why.to_owned())
}
