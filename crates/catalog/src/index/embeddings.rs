//! The embeddings of all documents of an index, and of their parts.

use super::document::Document;
use super::entry::Entry;
use super::fields::Fields;
use super::table::WIDTH;
use super::vectors::{self, Embedding, SHORT_WIDTH, Vectors};

/// Embeddings by entry; all empty when meanings are ignored.
#[derive(Clone, Debug, Default)]
pub(crate) struct Embeddings {
    /// Of whole documents.
    pub(crate) whole: Vectors<WIDTH>,
    /// Shortened embeddings of whole documents, where there are many; otherwise empty.
    pub(crate) short: Vectors<SHORT_WIDTH>,
    /// Of their names alone.
    pub(crate) names: Vectors<WIDTH>,
    /// Of their parameters alone.
    pub(crate) parameters: Vectors<WIDTH>,
    /// By server: the mean of its documents.
    pub(crate) servers: Vectors<WIDTH>,
}

/// From this many documents on, shortened embeddings preselect the candidates.
const MANY: usize = 1_000;

impl Embeddings {
    pub(crate) fn are_compared(&self) -> bool {
        0 < self.whole.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        let Embeddings { whole, short, names, parameters, servers } = self;
        whole.bytes() + short.bytes() + names.bytes() + parameters.bytes() + servers.bytes()
    }
}

/// Collects documents in the order of their entries.
pub(crate) struct Builder {
    embeddings: Embeddings,
    has_short: bool,
    /// By server: the sum of its documents' embeddings.
    server_sums: Vec<Embedding>,
}

impl Builder {
    pub(crate) fn new(n_documents: usize, n_servers: usize) -> Builder {
        Builder {
            embeddings: Embeddings::default(),
            has_short: MANY <= n_documents,
            server_sums: vec![[0.0; WIDTH]; n_servers],
        }
    }

    pub(crate) fn add(&mut self, document: &Document, fields: &Fields, entry: &Entry) {
        let embedding = vectors::embed_document(fields);
        let all = &mut self.embeddings;
        all.whole.add(&embedding);
        if self.has_short {
            let (short, _) = embedding.split_first_chunk().expect("it is shorter");
            all.short.add(short);
        }
        all.names.add(&vectors::embed(&vectors::spaced(&document.name)));
        all.parameters.add(&vectors::embed_parameters(fields));
        if let Some(server) = entry.related_server() {
            let sum = &mut self.server_sums[server];
            sum.iter_mut().zip(&embedding).for_each(|(sum, value)| *sum += value);
        }
    }

    pub(crate) fn finish(self) -> Embeddings {
        let mut all = self.embeddings;
        self.server_sums.into_iter().for_each(|sum| all.servers.add(&vectors::normalized(sum)));
        all.whole.shrink();
        all.short.shrink();
        all.names.shrink();
        all.parameters.shrink();
        all.servers.shrink();
        all
    }
}
