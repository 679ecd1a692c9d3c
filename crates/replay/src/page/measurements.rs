//! The input of the results page: everything that was measured.

use cost::Prices;

use super::sizes::Sizes;
use crate::recording::Recording;
use crate::replay::Replay;

/// Everything that was measured.
pub struct Measurements<'a> {
    pub recording: &'a Recording,
    /// The replays through gateways; gatelet's `cash` comes first.
    pub replays: &'a [Replay],
    /// The gateways that did not run, and why.
    pub left_out: &'a [String],
    /// The cost by size of the catalogue, of all tasks and of those in which every result is
    /// short; none if it was not measured.
    pub sizes: Option<BySize>,
    pub prices: PricePair,
    /// The programs that ran, with their versions.
    pub versions: &'a [String],
}

/// The cost by size of the catalogue.
pub struct BySize {
    pub all: Sizes,
    pub short_results: Sizes,
}

/// What tokens cost without a cache and with one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PricePair {
    pub without_cache: Prices,
    pub with_cache: Prices,
}

impl Default for PricePair {
    fn default() -> PricePair {
        PricePair { without_cache: Prices::WITHOUT_CACHE, with_cache: Prices::WITH_CACHE }
    }
}
