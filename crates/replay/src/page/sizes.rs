//! The same tasks with catalogues of other sizes.

use std::io;
use std::path::Path;

use cost::{HOST_MODELS, HostModel, Loading, Prices, Totals};

use crate::direct::{deferred, listed};
use crate::recording::{Recording, Task};
use crate::replay::{Replay, replay};
use crate::way::{Surface, Way};

/// How many tools the catalogues have.
pub const SIZES: [usize; 6] = [5, 10, 30, 100, 500, 5000];

/// So many tools are in a catalogue for all tasks; smaller ones are made for each.
const COMMON: usize = 100;

/// So many tasks are replayed with catalogues of their own.
const OWN_TASKS: usize = 10;

/// What the tasks cost by the size of the catalogue.
pub struct Sizes {
    pub rows: Vec<SizeRow>,
}

/// One size.
pub struct SizeRow {
    pub n_tools: usize,
    /// Tokens of all definitions.
    pub definitions: u64,
    pub listed: Totals,
    pub deferred: Totals,
    pub cash: Totals,
}

impl Sizes {
    /// Replays the tasks through `cash` with catalogues of every size.
    pub fn measure(
        recording: &Recording,
        gatelet: &Path,
        say: impl Fn(usize),
    ) -> io::Result<Sizes> {
        let way = Way::Gatelet { program: gatelet.to_owned(), surface: Surface::Cash };
        let tasks = &recording.tasks[..recording.tasks.len().min(OWN_TASKS)];
        let mut rows = Vec::new();
        for n_tools in SIZES {
            say(n_tools);
            let groups: Vec<&[Task]> = match n_tools < COMMON {
                true => tasks.chunks(1).collect(),
                false => vec![tasks],
            };
            let mut row = SizeRow {
                n_tools,
                definitions: 0,
                listed: Totals::default(),
                deferred: Totals::default(),
                cash: Totals::default(),
            };
            for group in &groups {
                let small = recording.with_tools(group, n_tools);
                let through = replay(&small, &way)?;
                let all = listed(&small);
                row.definitions += all.definitions / groups.len() as u64;
                row.listed = row.listed + all.totals();
                row.deferred = row.deferred + deferred(&small, defers(), &through).totals();
                row.cash = row.cash + through.totals();
            }
            rows.push(row);
        }
        Ok(Sizes { rows })
    }

    /// The tokens of definitions from which on `cash` costs less, by a price: between
    /// the last size that it loses and the first that it wins, in a straight line.
    pub fn break_even(&self, price: impl Fn(&SizeRow) -> (f64, f64)) -> Option<u64> {
        #[expect(clippy::cast_precision_loss, reason = "token counts are far below 2^52")]
        let gain = |row: &SizeRow| {
            let (direct, cash) = price(row);
            (row.definitions as f64, direct - cash)
        };
        let points: Vec<(f64, f64)> = self.rows.iter().map(gain).collect();
        let crossing = points.windows(2).find(|pair| pair[0].1 < 0.0 && 0.0 <= pair[1].1)?;
        let ((x0, y0), (x1, y1)) = (crossing[0], crossing[1]);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a small positive number"
        )]
        let x = (x0 - y0 * (x1 - x0) / (y1 - y0)).round() as u64;
        Some(x)
    }
}

impl SizeRow {
    pub(super) fn price(&self, prices: Prices) -> (f64, f64, f64) {
        (self.listed.price(prices), self.deferred.price(prices), self.cash.price(prices))
    }
}

/// The host that loads definitions on search.
pub(super) fn defers() -> &'static HostModel {
    let is_it = |host: &&HostModel| matches!(host.loading, Loading::OnSearch { .. });
    HOST_MODELS.iter().find(is_it).unwrap_or(&HOST_MODELS[0])
}

/// The first way, which is `cash`.
pub(super) fn cash(ways: &[Replay]) -> Option<&Replay> {
    ways.first()
}
