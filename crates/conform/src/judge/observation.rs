//! The type of a check, and of what it observes.

use crate::survey::Transcript;

/// What a check observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Observation {
    Good(String),
    Bad(String),
    /// It cannot be seen on this server, and why.
    NotVisible(String),
}

/// A check: a function from the transcript to an observation.
pub(super) type Check = fn(&Transcript) -> Observation;

/// Good when `holds`, with evidence either way.
pub(super) fn when(holds: bool, good: impl Into<String>, bad: impl Into<String>) -> Observation {
    if holds { Observation::Good(good.into()) } else { Observation::Bad(bad.into()) }
}

/// Good when nothing was found that is wrong.
pub(super) fn none_of(wrong: &[String], good: impl Into<String>) -> Observation {
    match wrong {
        [] => Observation::Good(good.into()),
        [only] => Observation::Bad(only.clone()),
        [first, rest @ ..] => Observation::Bad(format!("{first} (and {} more)", rest.len())),
    }
}

pub(super) fn not_visible(why: &str) -> Observation {
    Observation::NotVisible(why.to_owned())
}
