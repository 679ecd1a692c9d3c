//! Decides whether the best hits of a query are relevant.

use super::build::Index;
use super::rank::Ranked;

/// Whether a search found something relevant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The hits are relevant, by words and embeddings.
    Relevant,
    /// The first hits of several servers are equally good.
    Ambiguous,
    /// Nothing is relevant; there are no hits.
    Nothing,
}

/// Two scores this close (as a proportion) are equally good.
const TIE: f32 = 0.97;

/// The cosine of a document, the cosine of its server, and the covered share of the words
/// at which each would suffice alone. Usually the sum of all three fractions reaches 1.
const COSINE: f32 = 0.40;
const SERVER: f32 = 0.67;
const WORDS: f32 = 0.40;
/// The covered share of the words that suffices where meanings are ignored.
const WORDS_ALONE: f32 = 0.08;

/// Among many documents some are near to any query, so the threshold rises: 1.0 up to
/// this many documents, 1.6 for four thousand. Of 3,669 queries with an answer, in
/// catalogs of 80 to 16,000 tools, all but three pass.
const FEW: f32 = 80.0;
const RISE: f32 = 0.15;

/// The positions of features in [`super::FEATURE_NAMES`].
const QUERY_COVERED: usize = 6;
const NAME_COVERED: usize = 4;
const SERVER_DIRECTION: usize = 12;

/// Judges the best documents of a search among `n_documents`.
pub(crate) fn judge(index: &Index, ranked: &[Ranked], n_documents: usize) -> Verdict {
    let relevance = |one: &Ranked| match index.embeddings.are_compared() {
        true => relevance(one) / threshold(n_documents),
        false => words(one) / WORDS_ALONE,
    };
    if !ranked.iter().take(5).any(|one| 1.0 <= relevance(one)) {
        return Verdict::Nothing;
    }
    if let [first, second, ..] = ranked
        && index.entries[first.entry].server != index.entries[second.entry].server
        && TIE * first.score <= second.score
    {
        return Verdict::Ambiguous;
    }
    Verdict::Relevant
}

/// The relevance of a document by its embedding, its server's embedding and its words.
fn relevance(one: &Ranked) -> f32 {
    // Where the query's embedding is noise, it cannot be compared with a server either.
    let server = if 0.0 < one.cosine { one.features[SERVER_DIRECTION] } else { 0.0 };
    one.cosine / COSINE + server / SERVER + words(one) / WORDS
}

fn words(one: &Ranked) -> f32 {
    one.features[QUERY_COVERED].max(0.5 * one.features[NAME_COVERED])
}

/// The threshold of relevance for this many documents.
fn threshold(n_documents: usize) -> f32 {
    1.0 + RISE * (n_documents as f32 / FEW).max(1.0).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_is_asked_among_many() {
        assert_eq!(threshold(0), 1.0);
        assert_eq!(threshold(80), 1.0);
        assert!((1.5..1.7).contains(&threshold(4_000)));
    }
}
