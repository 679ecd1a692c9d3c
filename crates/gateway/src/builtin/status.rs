//! The text that `gatelet.status` answers: how many upstreams are available, and
//! what is wrong with the others.

use artifacts::gate::thousands;
use roster::{Phase, Snapshot};
use tool::{CredentialHealth, Listing};

/// The most starting upstreams that get a line each; more are only counted.
const MAX_STARTING_LINES: usize = 5;

/// Counts the upstreams that `shows` lets through, by their index in the catalog, and
/// lists those with a problem, worst first.
pub(super) fn status(snapshot: &Snapshot, shows: &dyn Fn(usize) -> bool) -> String {
    let mut problems: Vec<(Availability, String)> = Vec::new();
    let (mut n_all, mut n_unavailable, mut n_starting) = (0, 0, 0);
    for (at, source) in snapshot.catalog.sources().iter().enumerate() {
        let Some(upstream) = snapshot.upstream(at).filter(|_| shows(at)) else { continue };
        let status = upstream.status();
        let availability = match status.unanswered {
            0 => Availability::from_phase(&status.phase),
            _ => Availability::from_phase(&status.phase).min(Availability::Unavailable),
        };
        n_all += 1;
        n_unavailable += usize::from(availability == Availability::Unavailable);
        n_starting += usize::from(availability == Availability::Starting);
        let wrong = problems_of(&status);
        if !wrong.is_empty() {
            problems.push((availability, format!("- {}: {}", source.label, wrong.join("; "))));
        }
    }
    if MAX_STARTING_LINES < n_starting {
        problems.retain(|(availability, _)| *availability != Availability::Starting);
    }
    problems.sort_by_key(|(availability, _)| *availability);
    let first = tally(n_all, n_unavailable, n_starting);
    let lines: Vec<String> = problems.into_iter().map(|(_, line)| line).collect();
    if lines.is_empty() { first } else { format!("{first}\n\n{}", lines.join("\n")) }
}

/// Returns what is wrong with an upstream; empty if nothing is.
fn problems_of(status: &roster::Status) -> Vec<String> {
    let tools = thousands(status.listing.tools.len());
    let phase = match &status.phase {
        Phase::Up if status.unanswered != 0 => Some(format!(
            "DOES NOT ANSWER: {} calls in a row got no answer in time; {tools} functions",
            status.unanswered
        )),
        Phase::Up | Phase::Asleep => None,
        Phase::Starting => Some(format!("starting, {tools} functions known")),
        Phase::Down { reason, .. } => {
            Some(format!("UNAVAILABLE: {reason}; retried by itself, and when called"))
        }
    };
    let credential = match &status.credential {
        None | Some(CredentialHealth::Fine) => None,
        Some(health) => Some(format!("credentials: {health}")),
    };
    [phase, outdated_lists(&status.listing), credential].into_iter().flatten().collect()
}

/// Whether an upstream can be called, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Availability {
    Unavailable,
    Starting,
    Available,
}

impl Availability {
    fn from_phase(phase: &Phase) -> Availability {
        match phase {
            Phase::Down { .. } => Availability::Unavailable,
            Phase::Starting => Availability::Starting,
            Phase::Up | Phase::Asleep => Availability::Available,
        }
    }
}

/// Says in one sentence how many upstreams are available.
fn tally(all: usize, unavailable: usize, starting: usize) -> String {
    let upstreams = if all == 1 { "upstream" } else { "upstreams" };
    let is = |count: usize| if count == 1 { "is" } else { "are" };
    match (all, unavailable, starting) {
        (0, _, _) => "No upstreams are configured.".to_owned(),
        (1, 0, 0) => "The only upstream is available.".to_owned(),
        (_, 0, 0) => format!("All {all} upstreams are available."),
        (_, n, 0) => format!("{n} of {all} {upstreams} {} unavailable.", is(n)),
        (_, 0, starting) => {
            format!("{starting} of {all} {upstreams} {} still starting.", is(starting))
        }
        (_, unavailable, starting) => format!(
            "{unavailable} of {all} upstreams {} unavailable, {starting} {} still starting.",
            is(unavailable),
            is(starting)
        ),
    }
}

/// Says which lists could not be fetched, so that they may be out of date.
fn outdated_lists(listing: &Listing) -> Option<String> {
    let word = |kind: &tool::Kind| match kind {
        tool::Kind::Tools => "functions",
        tool::Kind::Resources => "resources",
        tool::Kind::Templates => "resource templates",
        tool::Kind::Prompts => "prompts",
    };
    let words: Vec<&str> = listing.failed_lists.iter().map(word).collect();
    (!words.is_empty())
        .then(|| format!("its {} cannot be read and are as last seen", words.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::{Availability, tally};
    use roster::Phase;

    #[test]
    fn what_is_listed_as_starting_is_counted_as_starting() {
        assert_eq!(Availability::from_phase(&Phase::Starting), Availability::Starting);
        let down = Phase::Down { reason: String::new(), failures: 1 };
        assert_eq!(Availability::from_phase(&down), Availability::Unavailable);
        assert_eq!(
            [Phase::Up, Phase::Asleep].map(|phase| Availability::from_phase(&phase)),
            [Availability::Available; 2]
        );
    }

    #[test]
    fn what_is_still_starting_is_not_said_to_be_available() {
        for (all, away, starting, expected) in [
            (0, 0, 0, "No upstreams are configured."),
            (1, 0, 0, "The only upstream is available."),
            (22, 0, 0, "All 22 upstreams are available."),
            (22, 0, 1, "1 of 22 upstreams is still starting."),
            (1, 1, 0, "1 of 1 upstream is unavailable."),
            (3, 2, 1, "2 of 3 upstreams are unavailable, 1 is still starting."),
        ] {
            assert_eq!(tally(all, away, starting), expected);
        }
    }
}
