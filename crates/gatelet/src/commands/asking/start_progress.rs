//! Says on stderr how far the start of upstreams is: all the time on a terminal, in one line
//! elsewhere, if it takes long.

use std::io::IsTerminal;
use std::time::Duration;

use crate::terminal::{self, foreign_line, say};

/// How long nothing is said where nobody watches.
const PATIENCE: Duration = Duration::from_secs(3);

/// How many labels are named.
const MAX_NAMED: usize = 3;

/// A start is slow from this on.
const SLOW: Duration = Duration::from_secs(3);

/// An upstream that is waited for.
#[derive(Clone, Debug)]
pub(super) struct Awaited {
    pub(super) label: String,
    /// How long its start has been under way; `None` before its turn.
    pub(super) starting_for: Option<Duration>,
}

/// The start of some upstreams.
pub(super) struct StartProgress {
    n_all: usize,
    bar: indicatif::ProgressBar,
    /// Whether the line for a pipe is still to come.
    is_due: bool,
}

impl StartProgress {
    pub(super) fn new(n_all: usize) -> StartProgress {
        let bar = terminal::progress("starting upstreams");
        StartProgress { n_all, bar, is_due: !std::io::stderr().is_terminal() }
    }

    /// Shows which upstreams are still waited for, after so long.
    pub(super) fn update(&mut self, still: &[Awaited], waited: Duration) {
        if self.is_due && PATIENCE <= waited {
            self.is_due = false;
            say(&message(self.n_all, still));
        }
        self.bar.set_message(message(self.n_all, still));
    }

    pub(super) fn finish(self) {
        self.bar.finish_and_clear();
    }
}

fn message(n_all: usize, still: &[Awaited]) -> String {
    let n_ready = n_all.saturating_sub(still.len());
    format!("starting upstreams: {n_ready} of {n_all} ready, waiting for {}", slowest_of(still))
}

/// The labels of those that have been starting for longest, and how many more there are.
pub(super) fn slowest_of(still: &[Awaited]) -> String {
    let mut order: Vec<&Awaited> = still.iter().collect();
    order.sort_by_key(|one| std::cmp::Reverse(one.starting_for));
    let name = |one: &&Awaited| match one.starting_for.filter(|time| SLOW <= *time) {
        Some(time) => format!("{} ({} s)", foreign_line(&one.label), time.as_secs()),
        None => foreign_line(&one.label).into_owned(),
    };
    let named: Vec<_> = order.iter().take(MAX_NAMED).map(name).collect();
    match still.len().saturating_sub(MAX_NAMED) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn awaited(label: &str, seconds: Option<u64>) -> Awaited {
        Awaited { label: label.to_owned(), starting_for: seconds.map(Duration::from_secs) }
    }

    #[test]
    fn the_message_counts_all_and_names_the_slowest() {
        let one = [awaited("a", Some(0))];
        assert_eq!(message(3, &one), "starting upstreams: 2 of 3 ready, waiting for a");
        let many: Vec<Awaited> = (0..990).map(|n| awaited(&format!("s{n}"), None)).collect();
        let slow = [awaited("x", Some(2)), awaited("npx", Some(12)), awaited("y", Some(4))];
        assert_eq!(
            message(1000, &[many, slow.to_vec()].concat()),
            "starting upstreams: 7 of 1000 ready, waiting for npx (12 s), y (4 s), x and 990 more"
        );
    }
}
