//! What an index stores of one document.

use super::actions::Actions;
use super::document::Kind;
use super::postings::Weights;

/// The part of a document that ranking needs, besides words and embeddings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// The position in the list that the index was built from.
    pub(super) document: u32,
    pub(super) kind: Kind,
    /// A number for the server; the same for documents of one server.
    pub(super) server: u32,
    pub(super) has_parameters: bool,
    /// Whether it declares its arguments, even if there are none.
    pub(super) is_declared: bool,
    pub(super) actions: Actions,
    pub(super) weights: Weights,
}

impl Entry {
    /// The position of its server, whose other documents say something about this one;
    /// `None` for resources, which have little in common with the tools of their server.
    pub(super) fn related_server(&self) -> Option<usize> {
        let server = (self.server as usize).checked_sub(1)?;
        (self.kind != Kind::Resource).then_some(server)
    }
}
