//! Ranks the documents of an index for a query.
//!
//! The first pass gives every document a cheap score, by words and by embedding. The
//! second pass computes more features of the best hundred: how much of the name the query
//! covers, whether the verbs agree, which clause fits best. The weights of the features
//! were fitted by `scripts/fit_ranking.py` on sets of gold queries.

use super::actions::Relation;
use super::build::Index;
use super::embeddings::Embeddings;
use super::fields::{DESCRIPTION, NAME, SERVER};
use super::name_words::QueryWords;
use super::query_terms::{Origin, ParsedQuery, QueryParser};
use super::vectors::QuantizedVector;
use super::{clauses, words};

/// How many documents get the second pass.
const CANDIDATES: usize = 100;
/// Where there are many documents: how many are compared with full embeddings.
const SHORTLIST: usize = 400;
/// The weight of the best clause in the first pass.
const CLAUSE: f32 = 0.3;

/// A word with a smaller share of its document covers the query only partly.
const AMONG_OTHERS: f32 = 0.1;

/// Stands in for the similarity of a document's parameters where it has none, as a
/// fraction of the whole document's: about the value of relevant tools.
const WITHOUT_PARAMETERS: f32 = 0.6;

/// The features of one document, in the order of [`FEATURE_NAMES`].
pub type Features = [f32; FEATURE_NAMES.len()];

/// The name of each feature.
pub const FEATURE_NAMES: [&str; 14] = [
    "words",
    "direction",
    "words of a clause",
    "direction of a clause",
    "name covered",
    "server covered",
    "query covered",
    "direction of the name",
    "verbs agree",
    "verbs conflict",
    "name understood",
    "direction of the parameters",
    "direction of the server",
    "query covered, squared",
];

/// The weight of each feature for a short query, and what is added for a long one.
const WEIGHTS: [(f32, f32); FEATURE_NAMES.len()] = [
    (1.16, 0.68),
    (1.89, 0.19),
    (0.43, 0.46),
    (1.82, 0.41),
    (0.60, -0.08),
    (0.38, 0.09),
    (0.71, 0.23),
    (1.06, 0.13),
    (0.75, -0.28),
    (-0.42, 0.60),
    (0.87, 0.03),
    (0.70, 0.00),
    (1.60, 0.00),
    (0.54, 0.00),
];

/// One document after the second pass.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ranked {
    /// The position among the index's entries.
    pub(crate) entry: usize,
    pub(crate) score: f32,
    pub(crate) features: Features,
    /// The cosine, not relative to the best; 0 when the query has no known word, because
    /// its embedding is noise then.
    pub(crate) cosine: f32,
}

/// Ranks the documents for one query.
struct Ranker<'a> {
    index: &'a Index,
    query_words: QueryWords,
    whole: ParsedQuery,
    /// The clauses; empty where there is only one.
    clauses: Vec<ParsedQuery>,
    allowed: &'a [bool],
    /// Whether some document is not allowed.
    hides: bool,
}

/// The scores of every document after the first pass; 0 for those that are not allowed.
struct FirstPass {
    /// By words, relative to the best.
    words: Vec<f32>,
    /// By the words of the best clause, relative to that clause's best document; empty when
    /// there is only one clause.
    clauses: Vec<f32>,
    /// The weight of words; the rest is the weight of embeddings.
    share: f32,
}

/// The best documents among the allowed ones, best first, ties by id. At most
/// a hundred.
pub(crate) fn rank(index: &Index, text: &str, allowed: &[bool]) -> Vec<Ranked> {
    let text = &*words::with_ascii_punctuation(text);
    let mut parser = QueryParser::new(index);
    let clauses: Vec<ParsedQuery> =
        clauses::split(text).iter().map(|clause| parser.parse(clause)).collect();
    let whole = parser.parse_whole(text, &clauses);
    let query_words = QueryWords::new(text, whole.vector.is_some());
    let hides = allowed.contains(&false);
    Ranker { index, query_words, whole, clauses, allowed, hides }.rank()
}

/// The length of a query, from 0 (six words or fewer) to 1.
pub(crate) fn length(n_words: usize) -> f32 {
    ((n_words as f32 - 6.0) / 19.0).clamp(0.0, 1.0)
}

/// What each feature adds to a score, for a query of this [`length`].
pub(crate) fn weighted(features: &Features, long: f32) -> Features {
    let mut parts = *features;
    for (part, (short, more)) in parts.iter_mut().zip(&WEIGHTS) {
        *part *= short + more * long;
    }
    parts
}

impl Ranker<'_> {
    fn rank(&self) -> Vec<Ranked> {
        let first_pass = self.first_pass();
        let (candidates, cosines) = match &self.whole.vector {
            Some(vector) => self.with_embeddings(&first_pass, vector),
            None => {
                let scores: Vec<f32> = (0..self.index.len()).map(|at| first_pass.at(at)).collect();
                let candidates = best(&scores, CANDIDATES);
                (candidates, vec![0.0; CANDIDATES])
            }
        };
        let farthest = most(&cosines).max(f32::MIN_POSITIVE);
        let mut ranked: Vec<Ranked> = Vec::with_capacity(candidates.len());
        for (at, cosine) in candidates.into_iter().zip(cosines) {
            let mut features = Features::default();
            features[0] = first_pass.words[at];
            features[1] = cosine / farthest;
            features[2] = first_pass.clauses.get(at).copied().unwrap_or(first_pass.words[at]);
            let cosine = if self.whole.makes_sense { cosine } else { 0.0 };
            ranked.push(Ranked { entry: at, score: 0.0, features, cosine });
        }
        self.second_pass(&mut ranked);
        let long = length(self.whole.n_words);
        for one in &mut ranked {
            one.score = weighted(&one.features, long).iter().sum();
        }
        ranked.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.entry.cmp(&b.entry)));
        ranked
    }

    fn first_pass(&self) -> FirstPass {
        let n_documents = self.index.len();
        let share = match &self.whole.vector {
            Some(_) => 0.35 + 0.30 * length(self.whole.n_words),
            None => 1.0,
        };
        let mut words = vec![0.0; n_documents];
        let factor = self.add_scores(&self.whole, &mut words);
        words.iter_mut().for_each(|score| *score *= factor);
        let mut clauses = Vec::new();
        if !self.clauses.is_empty() {
            clauses.resize(n_documents, 0.0);
            let mut scores = vec![0.0; n_documents];
            for clause in &self.clauses {
                let factor = self.add_scores(clause, &mut scores);
                for (clause, score) in clauses.iter_mut().zip(&mut scores) {
                    let share = *score * factor;
                    *clause = if *clause < share { share } else { *clause };
                    *score = 0.0;
                }
            }
        }
        FirstPass { words, clauses, share }
    }

    /// Adds the BM25F score of every allowed document. Returns the factor that makes the
    /// best one 1.
    fn add_scores(&self, query: &ParsedQuery, scores: &mut [f32]) -> f32 {
        for term in &query.terms {
            let weight = term.weight * self.index.postings.idf(term.term);
            for posting in self.index.postings.of_term(term.term) {
                scores[posting.document as usize] += weight * posting.share;
            }
        }
        self.hide(scores);
        1.0 / most(scores).max(f32::MIN_POSITIVE)
    }

    /// Sets the scores of documents that are not allowed to 0.
    fn hide(&self, scores: &mut [f32]) {
        if self.hides {
            for (score, allowed) in scores.iter_mut().zip(self.allowed) {
                *score = if *allowed { *score } else { 0.0 };
            }
        }
    }

    /// The candidates by words and embeddings, with their cosines. Where there are many
    /// documents, short vectors decide which of them are compared in full.
    fn with_embeddings(
        &self,
        first_pass: &FirstPass,
        vector: &QuantizedVector,
    ) -> (Vec<usize>, Vec<f32>) {
        let Embeddings { whole, short, .. } = &self.index.embeddings;
        if short.len() == 0 {
            let mut cosines: Vec<f32> = whole.cosines(vector).map(not_below_zero).collect();
            self.hide(&mut cosines);
            let candidates = best(&first_pass.scores(&cosines), CANDIDATES);
            let cosines = candidates.iter().map(|at| cosines[*at]).collect();
            return (candidates, cosines);
        }
        let short_query = vector.shortened();
        let guesses = short.cosines(&short_query).map(not_below_zero);
        let mut guesses: Vec<f32> = guesses.collect();
        self.hide(&mut guesses);
        let listed = best(&first_pass.scores(&guesses), SHORTLIST);
        let cosine = |at: &usize| not_below_zero(whole.cosine(*at, vector));
        let cosines: Vec<f32> = listed.iter().map(cosine).collect();
        let farthest = most(&cosines).max(f32::MIN_POSITIVE);
        let score = |(at, cosine): (&usize, &f32)| first_pass.with(*at, cosine / farthest);
        let scores: Vec<f32> = listed.iter().zip(&cosines).map(score).collect();
        best(&scores, CANDIDATES).into_iter().map(|at| (listed[at], cosines[at])).unzip()
    }

    /// Fills in the features that need more than a sum over postings. `ranked`
    /// is in the order of the entries.
    fn second_pass(&self, ranked: &mut [Ranked]) {
        self.compute_coverage(ranked);
        let embeddings = &self.index.embeddings;
        let mut name_similarity = self.index.name_words.similarity_to(&self.query_words);
        let mut best_of_part = vec![f32::MIN_POSITIVE; self.clauses.len()];
        let mut by_part = vec![0.0; self.clauses.len() * ranked.len()];
        for (place, one) in ranked.iter_mut().enumerate() {
            let entry = &self.index.entries[one.entry];
            match self.whole.actions.relation(entry.actions) {
                Relation::Agree => one.features[8] = 1.0,
                Relation::Conflict => one.features[9] = 1.0,
                Relation::Unknown => {}
            }
            one.features[3] = one.features[1];
            one.features[10] = name_similarity(one.entry);
            if let Some(vector) = &self.whole.vector {
                one.features[7] = embeddings.names.cosine(one.entry, vector).max(0.0);
                let own = embeddings.whole.cosine(one.entry, vector).max(0.0);
                one.features[11] = if entry.has_parameters {
                    embeddings.parameters.cosine(one.entry, vector).max(0.0)
                } else {
                    own * WITHOUT_PARAMETERS
                };
                one.features[12] = match entry.related_server() {
                    Some(server) => embeddings.servers.cosine(server, vector).max(0.0),
                    None => own,
                };
            }
            if self.clauses.is_empty() || self.whole.vector.is_none() {
                continue;
            }
            for (part, reading) in self.clauses.iter().enumerate() {
                if let Some(vector) = &reading.vector {
                    let cosine = embeddings.whole.cosine(one.entry, vector).max(0.0);
                    by_part[place * self.clauses.len() + part] = cosine;
                    best_of_part[part] = best_of_part[part].max(cosine);
                }
            }
        }
        if !self.clauses.is_empty() {
            for (one, cosines) in ranked.iter_mut().zip(by_part.chunks(self.clauses.len())) {
                let shares = cosines.iter().zip(&best_of_part).map(|(cosine, best)| cosine / best);
                one.features[3] = shares.fold(0.0, f32::max);
            }
        }
    }

    /// Computes how much of the document's name, of its server and of the query the other
    /// covers.
    fn compute_coverage(&self, ranked: &mut [Ranked]) {
        for term in &self.whole.terms {
            if term.origin == Origin::Joined {
                continue;
            }
            let idf = self.index.postings.idf(term.term);
            let mut next = 0;
            for posting in self.index.postings.of_term(term.term) {
                let document = posting.document as usize;
                while ranked.get(next).is_some_and(|one| one.entry < document) {
                    next += 1;
                }
                let Some(one) = ranked.get_mut(next) else { break };
                if one.entry != document {
                    continue;
                }
                let written = term.origin == Origin::Written;
                if posting.is_in(NAME) {
                    one.features[4] += if written { idf } else { idf * 0.5 };
                }
                if written && posting.is_in(SERVER) {
                    one.features[5] += idf;
                }
                if written && posting.is_in(NAME) {
                    one.features[6] += idf;
                } else if written && posting.is_in(DESCRIPTION) {
                    // One word of a long description covers little.
                    one.features[6] += idf * (posting.share / AMONG_OTHERS).min(1.0);
                }
            }
        }
        for one in ranked {
            let weights = self.index.entries[one.entry].weights;
            one.features[4] /= weights.name.max(1e-6);
            one.features[5] /= weights.server.max(1e-6);
            one.features[6] /= self.whole.total_idf.max(1e-6);
            // The square rewards covering nearly all of a query.
            one.features[13] = one.features[6] * one.features[6];
        }
    }
}

impl FirstPass {
    /// The score of a document by words alone.
    fn at(&self, at: usize) -> f32 {
        self.share * self.words[at] + CLAUSE * self.clauses.get(at).copied().unwrap_or(0.0)
    }

    /// The score of a document with its cosine, relative to the best.
    fn with(&self, at: usize, cosine: f32) -> f32 {
        self.at(at) + (1.0 - self.share) * cosine
    }

    /// The score of every document.
    fn scores(&self, cosines: &[f32]) -> Vec<f32> {
        let weight = (1.0 - self.share) / most(cosines).max(f32::MIN_POSITIVE);
        let both = self.words.iter().zip(cosines);
        let mut scores: Vec<f32> =
            both.map(|(words, cosine)| self.share * words + weight * cosine).collect();
        for (score, clause) in scores.iter_mut().zip(&self.clauses) {
            *score += CLAUSE * clause;
        }
        scores
    }
}

fn not_below_zero(cosine: f32) -> f32 {
    if cosine < 0.0 { 0.0 } else { cosine }
}

/// The largest score, or 0. Computed in lanes, so that the compiler can vectorize it.
fn most(scores: &[f32]) -> f32 {
    let (chunks, rest) = scores.as_chunks::<16>();
    let larger = |a: f32, b: f32| if a < b { b } else { a };
    let mut lanes = [0.0; 16];
    for chunk in chunks {
        for (lane, score) in lanes.iter_mut().zip(chunk) {
            *lane = larger(*lane, *score);
        }
    }
    lanes.iter().chain(rest).copied().fold(0.0, larger)
}

/// The positions of the `limit` largest scores above 0, in order of position. Of equal
/// scores the first count.
fn best(scores: &[f32], limit: usize) -> Vec<usize> {
    let better = |a: &(f32, usize), b: &(f32, usize)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
    let mut kept: Vec<(f32, usize)> = Vec::with_capacity(2 * limit);
    let mut floor = 0.0;
    for (at, score) in scores.iter().enumerate() {
        if floor < *score {
            kept.push((*score, at));
            if kept.len() == 2 * limit {
                let (_, last, _) = kept.select_nth_unstable_by(limit - 1, better);
                floor = last.0;
                kept.truncate(limit);
            }
        }
    }
    if limit < kept.len() {
        kept.select_nth_unstable_by(limit - 1, better);
        kept.truncate(limit);
    }
    let mut places: Vec<usize> = kept.into_iter().map(|(_, at)| at).collect();
    places.sort_unstable();
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_are_those_that_sorting_would_find() {
        let scores: Vec<f32> = (0_u32..5_000).map(|n| (n * 7919 % 97) as f32 - 3.0).collect();
        let mut order: Vec<usize> = (0..scores.len()).filter(|at| 0.0 < scores[*at]).collect();
        order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b)));
        for limit in [1, 10, 100, 4_000, 9_000] {
            let mut expected = order[..limit.min(order.len())].to_vec();
            expected.sort_unstable();
            assert_eq!(best(&scores, limit), expected, "{limit}");
        }
        assert_eq!(most(&scores), 93.0);
    }
}
