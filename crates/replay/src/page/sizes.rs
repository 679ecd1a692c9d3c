//! Measures the cost of the tasks with catalogues of different sizes.

use std::io;
use std::path::Path;

use cost::{HOST_MODELS, HostModel, Listed, Loading, Totals};

use crate::direct::{replay_deferred, replay_listed};
use crate::gateway::{Gateway, Surface};
use crate::recording::{Recording, Task};
use crate::replay::{Replay, replay};

/// The numbers of tools in the catalogues.
pub const SIZES: [usize; 6] = [5, 10, 30, 100, 500, 5000];

/// From this size on, one catalogue is used for all tasks; below, each task has its own.
const COMMON: usize = 100;

/// How many tasks are replayed.
const OWN_TASKS: usize = 10;

/// The characters of a result that gatelet returns whole.
pub const MAX_SHORT_CHARS: usize = 10_000;

/// The cost of the tasks by the size of the catalogue.
pub struct Sizes {
    pub n_tasks: usize,
    pub rows: Vec<SizeRow>,
}

/// The cost of the tasks with one size of the catalogue.
#[derive(Clone, Copy, Debug, Default)]
pub struct SizeRow {
    pub n_tools: usize,
    /// Tokens of all definitions.
    pub definitions: u64,
    /// Without a gateway, every definition with every request.
    pub listed: Totals,
    /// Every definition listed beside gatelet's own, as `auto` does with few tools. Results
    /// are as without a gateway, so it says nothing of tasks with long ones.
    pub listed_beside: Totals,
    /// Without a gateway, definitions on search, the names of all tools listed.
    pub names_listed: Totals,
    /// The same, only servers listed.
    pub servers_listed: Totals,
    /// Through gatelet's `cash`.
    pub cash: Totals,
}

impl Sizes {
    /// Replays the tasks through `cash` with catalogues of these sizes; `report` is called
    /// with each size.
    pub fn measure(
        recording: &Recording,
        gatelet: &Path,
        sizes: &[usize],
        report: impl Fn(usize),
    ) -> io::Result<Sizes> {
        let gateway = Gateway::Gatelet { program: gatelet.to_owned(), surface: Surface::Cash };
        let tasks = &recording.tasks[..recording.tasks.len().min(OWN_TASKS)];
        let mut rows = Vec::new();
        for n_tools in sizes.iter().copied() {
            report(n_tools);
            let groups: Vec<&[Task]> = match n_tools < COMMON {
                true => tasks.chunks(1).collect(),
                false => vec![tasks],
            };
            let mut row = SizeRow { n_tools, ..SizeRow::default() };
            for group in &groups {
                let small = recording.with_tools(group, n_tools);
                let through = replay(&small, &gateway)?;
                let all = replay_listed(&small);
                let deferred = |listed| match deferring_host(listed) {
                    Some(host) => replay_deferred(&small, host, &through).totals(),
                    None => Totals::default(),
                };
                row.definitions += all.definitions / groups.len() as u64;
                row.listed = row.listed + all.totals();
                row.listed_beside = row.listed_beside + with_more(&all, through.definitions);
                row.names_listed = row.names_listed + deferred(Listed::Tools);
                row.servers_listed = row.servers_listed + deferred(Listed::Servers);
                row.cash = row.cash + through.totals();
            }
            rows.push(row);
        }
        Ok(Sizes { n_tasks: tasks.len(), rows })
    }

    /// Returns from how many definition tokens on `cash` is cheaper, interpolated between two
    /// sizes. `price` returns the price without a gateway and that of `cash`.
    pub fn break_even(&self, price: impl Fn(&SizeRow) -> (f64, f64)) -> BreakEven {
        #[expect(clippy::cast_precision_loss, reason = "token counts are far below 2^52")]
        let gain = |row: &SizeRow| {
            let (direct, cash) = price(row);
            (row.definitions as f64, direct - cash)
        };
        let points: Vec<(f64, f64)> = self.rows.iter().map(gain).collect();
        let Some(loss) = points.iter().rposition(|point| point.1 < 0.0) else {
            return BreakEven::Always;
        };
        let Some(&(x1, y1)) = points.get(loss + 1) else { return BreakEven::Never };
        let (x0, y0) = points[loss];
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a small positive number"
        )]
        let tokens = (x0 - y0 * (x1 - x0) / (y1 - y0)).round() as u64;
        BreakEven::From(tokens)
    }
}

/// At which of the measured sizes `cash` costs less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakEven {
    /// At all of them.
    Always,
    /// From this many tokens of definitions on.
    From(u64),
    /// Not even at the largest.
    Never,
}

/// Returns the cost of a replay with more tokens of definitions.
fn with_more(replay: &Replay, definitions: u64) -> Totals {
    let conversations = replay.tasks.iter().map(|task| {
        let mut conversation = task.conversation.clone();
        conversation.definitions += definitions;
        conversation.totals()
    });
    conversations.sum()
}

/// Returns the host model that loads definitions on search and lists this.
pub(super) fn deferring_host(wanted: Listed) -> Option<&'static HostModel> {
    let is_it = |host: &&HostModel| match host.loading {
        Loading::OnSearch { listed, .. } => listed == wanted,
        Loading::Everything => false,
    };
    HOST_MODELS.iter().find(is_it)
}

/// Returns the replay through `cash`, which is the first.
pub(super) fn cash_replay(replays: &[Replay]) -> Option<&Replay> {
    replays.first()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where `cash` costs 10, and the direct way what the sizes of 1 to 3 cost.
    #[track_caller]
    fn check(direct: [f64; 3], expected: BreakEven) {
        let row = |n_tools: usize| SizeRow {
            n_tools,
            definitions: 100 * n_tools as u64,
            ..SizeRow::default()
        };
        let sizes = Sizes { n_tasks: 1, rows: (1..=3).map(row).collect() };
        assert_eq!(sizes.break_even(|row| (direct[row.n_tools - 1], 10.0)), expected);
    }

    #[test]
    fn more_definitions_are_sent_with_every_request() {
        let own = Recording::own();
        let all = replay_listed(&own);
        let (before, after) = (all.totals(), with_more(&all, 100));
        assert_eq!(after.context, before.context + 100 * before.requests);
    }

    #[test]
    fn the_break_even_lies_behind_the_last_size_that_loses() {
        check([11.0, 12.0, 13.0], BreakEven::Always);
        check([1.0, 2.0, 3.0], BreakEven::Never);
        check([8.0, 12.0, 14.0], BreakEven::From(150));
        check([11.0, 9.0, 11.0], BreakEven::From(250));
    }
}
