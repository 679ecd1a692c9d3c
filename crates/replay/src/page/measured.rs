//! What the page is about.

use super::sizes::Sizes;
use crate::recording::Recording;
use crate::replay::Replay;

/// Everything that was measured.
pub struct Measured<'a> {
    pub recording: &'a Recording,
    /// The ways through gateways; `cash` comes first.
    pub ways: &'a [Replay],
    /// The gateways that did not run, and why.
    pub left_out: &'a [String],
    pub sizes: &'a Sizes,
}
