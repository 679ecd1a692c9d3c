//! What an index stores of one document.

use super::actions::Actions;
use super::document::Kind;
use super::postings::Weights;

/// One document.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// The place in the list the index was built from.
    pub(super) document: u32,
    pub(super) kind: Kind,
    /// A number for the server; the same for documents of one server.
    pub(super) server: u32,
    pub(super) has_parameters: bool,
    /// Whether it says which arguments it takes, be it none.
    pub(super) is_declared: bool,
    pub(super) actions: Actions,
    pub(super) weights: Weights,
}

impl Entry {
    /// The place among the servers of the one whose tools tell what this is for.
    /// Resources are data: what the tools of their server do says little of them.
    pub(super) fn belongs_to(&self) -> Option<usize> {
        let server = (self.server as usize).checked_sub(1)?;
        (self.kind != Kind::Resource).then_some(server)
    }
}
