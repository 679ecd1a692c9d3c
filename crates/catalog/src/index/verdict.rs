//! Whether what ranks first is any good.

use super::Index;
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

/// The cosine and the share of words that suffice alone. Of queries that have an
/// answer, 997 in 1,000 have a cosine of 0.28 or more; of those put to the wrong
/// catalog, a third have less.
const COSINE: f32 = 0.28;
const WORDS: f32 = 0.30;
/// Where meanings are ignored, few words in common have to do.
const WORDS_ALONE: f32 = 0.08;

/// The features by which relevance is judged, as [`super::NAMES`] has them.
const QUERY_COVERED: usize = 6;
const NAME_COVERED: usize = 4;

pub(crate) fn of(index: &Index, ranked: &[Ranked]) -> Verdict {
    let words = if index.directions.are_compared() { WORDS } else { WORDS_ALONE };
    if !ranked.iter().take(5).any(|one| is_relevant(one, words)) {
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

/// A document is relevant when it points the same way as the query, or when it
/// has a good part of the query's words; half of each will do too.
fn is_relevant(one: &Ranked, enough: f32) -> bool {
    let words = one.features[QUERY_COVERED].max(0.5 * one.features[NAME_COVERED]);
    1.0 <= one.cosine / COSINE + words / enough
}
