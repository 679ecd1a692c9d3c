//! Measures the cost of the tasks with catalogues of different sizes.

use std::io;
use std::path::Path;

use cost::{HOST_MODELS, HostModel, Loading, Prices, Totals};

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

/// The cost of the tasks by the size of the catalogue.
pub struct Sizes {
    pub rows: Vec<SizeRow>,
}

/// The cost of the tasks with one size of the catalogue.
pub struct SizeRow {
    pub n_tools: usize,
    /// Tokens of all definitions.
    pub definitions: u64,
    /// Without a gateway, every definition with every request.
    pub listed: Totals,
    /// Without a gateway, definitions on search.
    pub deferred: Totals,
    /// Through gatelet's `cash`.
    pub cash: Totals,
}

impl Sizes {
    /// Replays the tasks through `cash` with catalogues of every size; `report` is called
    /// with each size.
    pub fn measure(
        recording: &Recording,
        gatelet: &Path,
        report: impl Fn(usize),
    ) -> io::Result<Sizes> {
        let gateway = Gateway::Gatelet { program: gatelet.to_owned(), surface: Surface::Cash };
        let tasks = &recording.tasks[..recording.tasks.len().min(OWN_TASKS)];
        let mut rows = Vec::new();
        for n_tools in SIZES {
            report(n_tools);
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
                let through = replay(&small, &gateway)?;
                let all = replay_listed(&small);
                row.definitions += all.definitions / groups.len() as u64;
                row.listed = row.listed + all.totals();
                row.deferred =
                    row.deferred + replay_deferred(&small, deferring_host(), &through).totals();
                row.cash = row.cash + through.totals();
            }
            rows.push(row);
        }
        Ok(Sizes { rows })
    }

    /// Returns the number of definition tokens from which on `cash` is cheaper, interpolated
    /// between two sizes. `price` returns the price without a gateway and that of `cash`.
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
    /// Returns the prices of `listed`, `deferred` and `cash`.
    pub(super) fn price(&self, prices: Prices) -> (f64, f64, f64) {
        (self.listed.price(prices), self.deferred.price(prices), self.cash.price(prices))
    }
}

/// Returns the host model that loads definitions on search.
pub(super) fn deferring_host() -> &'static HostModel {
    let is_it = |host: &&HostModel| matches!(host.loading, Loading::OnSearch { .. });
    HOST_MODELS.iter().find(is_it).unwrap_or(&HOST_MODELS[0])
}

/// Returns the replay through `cash`, which is the first.
pub(super) fn cash_replay(replays: &[Replay]) -> Option<&Replay> {
    replays.first()
}
