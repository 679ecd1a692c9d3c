//! The input of the results page: everything that was measured.

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
    pub sizes: &'a Sizes,
    /// The same for the tasks in which every result is short.
    pub short_results: &'a Sizes,
}
