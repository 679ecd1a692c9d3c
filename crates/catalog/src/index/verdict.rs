//! Decides whether the best hits of a query are relevant.

use super::build::Index;
use super::rank::Ranked;

/// What a search came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The hits are relevant, as far as words and directions tell.
    Relevant,
    /// The first hits of several servers are equally good.
    Ambiguous,
    /// Nothing is relevant; there are no hits.
    Nothing,
}

/// Two scores this close (as a proportion) are equally good.
const TIE: f32 = 0.97;

/// How near a document and its server must point, and which share of the words
/// it must have, where one of them is to suffice alone. Usually parts of all
/// three make one.
const COSINE: f32 = 0.40;
const SERVER: f32 = 0.67;
const WORDS: f32 = 0.40;
/// Where meanings are ignored, few words in common have to do.
const WORDS_ALONE: f32 = 0.08;

/// Among many documents some come near to any query, so more is asked of them:
/// 1.0 up to this many, 1.6 of four thousand. Of 3,669 queries with an answer, in
/// catalogs of 80 to 16,000 tools, all but three are let through.
const FEW: f32 = 80.0;
const RISE: f32 = 0.15;

/// The features by which relevance is judged, as [`super::NAMES`] has them.
const QUERY_COVERED: usize = 6;
const NAME_COVERED: usize = 4;
const SERVER_DIRECTION: usize = 12;

/// `n_documents` is how many were looked through.
pub(crate) fn judge(index: &Index, ranked: &[Ranked], n_documents: usize) -> Verdict {
    let relevance = |one: &Ranked| match index.directions.are_compared() {
        true => relevance(one) / asked_among(n_documents),
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

/// How far a document points the same way as the query, its server with it, and
/// has the query's words.
fn relevance(one: &Ranked) -> f32 {
    // Without a direction of its own the query has none beside a server either.
    let server = if 0.0 < one.cosine { one.features[SERVER_DIRECTION] } else { 0.0 };
    one.cosine / COSINE + server / SERVER + words(one) / WORDS
}

fn words(one: &Ranked) -> f32 {
    one.features[QUERY_COVERED].max(0.5 * one.features[NAME_COVERED])
}

fn asked_among(n_documents: usize) -> f32 {
    1.0 + RISE * (n_documents as f32 / FEW).max(1.0).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_is_asked_among_many() {
        assert_eq!(asked_among(0), 1.0);
        assert_eq!(asked_among(80), 1.0);
        assert!((1.5..1.7).contains(&asked_among(4_000)));
    }
}
