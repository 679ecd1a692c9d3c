//! Ranks the documents of an index for a query.
//!
//! First every document gets a cheap score, by words and by direction. Then the
//! best hundred are looked at closely: how much of the name the query covers,
//! whether the verbs agree, which clause fits best. The weights of that second
//! look were fitted once, by `scripts/fit_ranking.py`, over sets of gold queries.

use super::actions::Relation;
use super::build::Index;
use super::directions::Directions;
use super::fields::{DESCRIPTION, NAME, SERVER};
use super::names::QueryNames;
use super::reading::{Origin, Reader, Reading};
use super::vectors::Steps;
use super::{clauses, words};

/// How many documents get the second look.
const CANDIDATES: usize = 100;
/// How many of many documents are compared in full.
const SHORTLIST: usize = 400;
/// The weight of the best clause in the first look.
const CLAUSE: f32 = 0.3;

/// A word with a smaller share of its document covers a query only in part.
const AMONG_OTHERS: f32 = 0.1;

/// How near parameters are to a query, as a share of how near their whole
/// document is: about what those of relevant tools reach. Who has none, or none
/// that is known, should not lose by it.
const WITHOUT_PARAMETERS: f32 = 0.6;

/// What the second look sees of one document, in the order of [`NAMES`].
pub type Features = [f32; NAMES.len()];

/// What each feature is called.
pub const NAMES: [&str; 14] = [
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

/// The weight of each feature for a short query, and what a long one adds.
const WEIGHTS: [(f32, f32); NAMES.len()] = [
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

/// One document after the second look.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ranked {
    /// The place among the index's entries.
    pub(crate) entry: usize,
    pub(crate) score: f32,
    pub(crate) features: Features,
    /// The cosine as it is, not in proportion to the best; 0 when the query has
    /// no word that anybody knows, because its direction is noise then.
    pub(crate) cosine: f32,
}

/// A query with its clauses, and which documents count.
struct Look<'a> {
    index: &'a Index,
    asked: QueryNames,
    whole: Reading,
    parts: Vec<Reading>,
    allowed: &'a [bool],
    /// Whether some document does not count.
    hides: bool,
}

/// What the first look saw of every document; 0 for those that do not count.
struct FirstPass {
    /// By words, in proportion to the best.
    words: Vec<f32>,
    /// By the words of the best clause, in proportion to that clause's best
    /// document; empty when there is only one clause.
    clauses: Vec<f32>,
    /// How much words count against directions.
    share: f32,
}

/// The best documents among the allowed ones, best first, ties by id. At most
/// a hundred.
pub(crate) fn rank(index: &Index, text: &str, allowed: &[bool]) -> Vec<Ranked> {
    let text = &*words::plain(text);
    let mut reader = Reader::new(index);
    let parts: Vec<Reading> = clauses::split(text).iter().map(|part| reader.read(part)).collect();
    let whole = reader.read_whole(text, &parts);
    let asked = QueryNames::new(text, whole.steps.is_some());
    let hides = allowed.contains(&false);
    Look { index, asked, whole, parts, allowed, hides }.rank()
}

/// Returns how long a query is, from 0 (six words or fewer) to 1.
pub(crate) fn length(n_words: usize) -> f32 {
    ((n_words as f32 - 6.0) / 19.0).clamp(0.0, 1.0)
}

/// What each feature adds to a score, for a query of this [`length`].
pub(crate) fn weighed(features: &Features, long: f32) -> Features {
    let mut parts = *features;
    for (part, (short, more)) in parts.iter_mut().zip(&WEIGHTS) {
        *part *= short + more * long;
    }
    parts
}

impl Look<'_> {
    fn rank(&self) -> Vec<Ranked> {
        let first_pass = self.first_pass();
        let (candidates, cosines) = match &self.whole.steps {
            Some(steps) => self.with_directions(&first_pass, steps),
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
            one.score = weighed(&one.features, long).iter().sum();
        }
        ranked.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.entry.cmp(&b.entry)));
        ranked
    }

    fn first_pass(&self) -> FirstPass {
        let n_documents = self.index.len();
        let share = match &self.whole.steps {
            Some(_) => 0.35 + 0.30 * length(self.whole.n_words),
            None => 1.0,
        };
        let mut words = vec![0.0; n_documents];
        let factor = self.score(&self.whole, &mut words);
        words.iter_mut().for_each(|score| *score *= factor);
        let mut clauses = Vec::new();
        if !self.parts.is_empty() {
            clauses.resize(n_documents, 0.0);
            let mut scores = vec![0.0; n_documents];
            for part in &self.parts {
                let factor = self.score(part, &mut scores);
                for (clause, score) in clauses.iter_mut().zip(&mut scores) {
                    let share = *score * factor;
                    *clause = if *clause < share { share } else { *clause };
                    *score = 0.0;
                }
            }
        }
        FirstPass { words, clauses, share }
    }

    /// Adds BM25F to the score of every document that counts; says by what to
    /// multiply for the best to have one.
    fn score(&self, reading: &Reading, scores: &mut [f32]) -> f32 {
        for term in &reading.terms {
            let weight = term.weight * self.index.postings.idf(term.term);
            for posting in self.index.postings.of_term(term.term) {
                scores[posting.document as usize] += weight * posting.share;
            }
        }
        self.hide(scores);
        1.0 / most(scores).max(f32::MIN_POSITIVE)
    }

    fn hide(&self, scores: &mut [f32]) {
        if self.hides {
            for (score, allowed) in scores.iter_mut().zip(self.allowed) {
                *score = if *allowed { *score } else { 0.0 };
            }
        }
    }

    /// The candidates by words and directions, with their cosines. Where there
    /// are many documents, outlines decide which of them are compared in full.
    fn with_directions(&self, first_pass: &FirstPass, steps: &Steps) -> (Vec<usize>, Vec<f32>) {
        let Directions { whole, outlines, .. } = &self.index.directions;
        if outlines.len() == 0 {
            let mut cosines: Vec<f32> = whole.cosines(steps).map(not_below_zero).collect();
            self.hide(&mut cosines);
            let candidates = best(&first_pass.scores(&cosines), CANDIDATES);
            let cosines = candidates.iter().map(|at| cosines[*at]).collect();
            return (candidates, cosines);
        }
        let outline = steps.outline();
        let guesses = outlines.cosines(&outline).map(not_below_zero);
        let mut guesses: Vec<f32> = guesses.collect();
        self.hide(&mut guesses);
        let listed = best(&first_pass.scores(&guesses), SHORTLIST);
        let cosine = |at: &usize| not_below_zero(whole.cosine(*at, steps));
        let cosines: Vec<f32> = listed.iter().map(cosine).collect();
        let farthest = most(&cosines).max(f32::MIN_POSITIVE);
        let score = |(at, cosine): (&usize, &f32)| first_pass.with(*at, cosine / farthest);
        let scores: Vec<f32> = listed.iter().zip(&cosines).map(score).collect();
        best(&scores, CANDIDATES).into_iter().map(|at| (listed[at], cosines[at])).unzip()
    }

    /// Fills in the features that need more than a sum over postings. `ranked`
    /// is in the order of the entries.
    fn second_pass(&self, ranked: &mut [Ranked]) {
        self.cover(ranked);
        let directions = &self.index.directions;
        let mut understood = self.index.words.understood(&self.asked);
        let mut best_of_part = vec![f32::MIN_POSITIVE; self.parts.len()];
        let mut by_part = vec![0.0; self.parts.len() * ranked.len()];
        for (place, one) in ranked.iter_mut().enumerate() {
            let entry = &self.index.entries[one.entry];
            match self.whole.actions.relation(entry.actions) {
                Relation::Agree => one.features[8] = 1.0,
                Relation::Conflict => one.features[9] = 1.0,
                Relation::Open => {}
            }
            one.features[3] = one.features[1];
            one.features[10] = understood(one.entry);
            if let Some(steps) = &self.whole.steps {
                one.features[7] = directions.names.cosine(one.entry, steps).max(0.0);
                let own = directions.whole.cosine(one.entry, steps).max(0.0);
                one.features[11] = if entry.has_parameters {
                    directions.parameters.cosine(one.entry, steps).max(0.0)
                } else {
                    own * WITHOUT_PARAMETERS
                };
                one.features[12] = match entry.belongs_to() {
                    Some(server) => directions.servers.cosine(server, steps).max(0.0),
                    None => own,
                };
            }
            if self.parts.is_empty() || self.whole.steps.is_none() {
                continue;
            }
            for (part, reading) in self.parts.iter().enumerate() {
                if let Some(steps) = &reading.steps {
                    let cosine = directions.whole.cosine(one.entry, steps).max(0.0);
                    by_part[place * self.parts.len() + part] = cosine;
                    best_of_part[part] = best_of_part[part].max(cosine);
                }
            }
        }
        if !self.parts.is_empty() {
            for (one, cosines) in ranked.iter_mut().zip(by_part.chunks(self.parts.len())) {
                let shares = cosines.iter().zip(&best_of_part).map(|(cosine, best)| cosine / best);
                one.features[3] = shares.fold(0.0, f32::max);
            }
        }
    }

    /// Returns how much of the name, of the server and of the query is common to
    /// both.
    fn cover(&self, ranked: &mut [Ranked]) {
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
                    // A word among a thousand others covers little.
                    one.features[6] += idf * (posting.share / AMONG_OTHERS).min(1.0);
                }
            }
        }
        for one in ranked {
            let weights = self.index.entries[one.entry].weights;
            one.features[4] /= weights.name.max(1e-6);
            one.features[5] /= weights.server.max(1e-6);
            one.features[6] /= self.whole.wanted.max(1e-6);
            // Nearly all of a query says more than twice what half of it says.
            one.features[13] = one.features[6] * one.features[6];
        }
    }
}

impl FirstPass {
    /// The score of a document by words alone.
    fn at(&self, at: usize) -> f32 {
        self.share * self.words[at] + CLAUSE * self.clauses.get(at).copied().unwrap_or(0.0)
    }

    /// The same with a cosine, in proportion to the best.
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

/// The largest score, or 0. In lanes, because the order of comparisons does not
/// matter and the compiler must not assume that.
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

/// The places of the `limit` largest scores above 0, in order of place. Of
/// equal scores the first count.
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
