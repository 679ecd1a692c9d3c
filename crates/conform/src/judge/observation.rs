//! What a check is, and what it can see.

use crate::survey::Transcript;

/// What a check saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Observation {
    Good(String),
    Bad(String),
    /// Not visible here, and why.
    Unseen(String),
}

/// From what the server said to what was seen.
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

pub(super) fn unseen(why: &str) -> Observation {
    Observation::Unseen(why.to_owned())
}
