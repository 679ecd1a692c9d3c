//! The embedding vectors of all documents of an index, whole and in parts.

use super::document::Document;
use super::entry::Entry;
use super::fields::Fields;
use super::table::WIDTH;
use super::vectors::{self, Direction, OUTLINE, Vectors};

/// Directions by entry; all empty when meanings are ignored.
#[derive(Clone, Debug, Default)]
pub(crate) struct Directions {
    /// Of whole documents.
    pub(crate) whole: Vectors<WIDTH>,
    /// The same in outline, where there are many documents; otherwise empty.
    pub(crate) outlines: Vectors<OUTLINE>,
    /// Of their names alone.
    pub(crate) names: Vectors<WIDTH>,
    /// Of their parameters alone.
    pub(crate) parameters: Vectors<WIDTH>,
    /// By server: where its documents point together.
    pub(crate) servers: Vectors<WIDTH>,
}

/// From this many documents on, not every one is compared in full.
const MANY: usize = 1_000;

impl Directions {
    pub(crate) fn are_compared(&self) -> bool {
        0 < self.whole.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        let Directions { whole, outlines, names, parameters, servers } = self;
        whole.bytes() + outlines.bytes() + names.bytes() + parameters.bytes() + servers.bytes()
    }
}

/// Takes documents in the order of their entries.
pub(crate) struct Builder {
    directions: Directions,
    outlined: bool,
    /// By server: the sum of its documents' directions.
    together: Vec<Direction>,
}

impl Builder {
    pub(crate) fn new(n_documents: usize, n_servers: usize) -> Builder {
        Builder {
            directions: Directions::default(),
            outlined: MANY <= n_documents,
            together: vec![[0.0; WIDTH]; n_servers],
        }
    }

    pub(crate) fn add(&mut self, document: &Document, fields: &Fields, entry: &Entry) {
        let direction = vectors::document(fields);
        let all = &mut self.directions;
        all.whole.add(&direction);
        if self.outlined {
            let (outline, _) = direction.split_first_chunk().expect("it is shorter");
            all.outlines.add(outline);
        }
        all.names.add(&vectors::direction(&vectors::spaced(&document.name)));
        all.parameters.add(&vectors::parameters(fields));
        if let Some(server) = entry.belongs_to() {
            let sum = &mut self.together[server];
            sum.iter_mut().zip(&direction).for_each(|(sum, value)| *sum += value);
        }
    }

    pub(crate) fn finish(self) -> Directions {
        let mut all = self.directions;
        self.together.into_iter().for_each(|sum| all.servers.add(&vectors::normalised(sum)));
        all.whole.shrink();
        all.outlines.shrink();
        all.names.shrink();
        all.parameters.shrink();
        all.servers.shrink();
        all
    }
}
