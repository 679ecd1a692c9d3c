//! From a query to an order.
//!
//! First every document gets a cheap score, by words and by direction. Then the
//! best hundred are looked at closely: how much of the name the query covers,
//! whether the verbs agree, which clause fits best. The weights of that second
//! look were fitted once, by `scripts/fit_ranking.py`, over sets of gold queries.

use rust_stemmers::Stemmer;

use super::actions::Relation;
use super::fields::{DESCRIPTION, NAME, SERVER};
use super::reading::{Origin, Reading};
use super::{Index, clauses, words};

/// How many documents get the second look.
const CANDIDATES: usize = 100;
/// The weight of the best clause in the first look.
const CLAUSE: f32 = 0.3;

/// What the second look sees of one document, in the order of [`NAMES`].
pub type Features = [f32; 10];

/// What each feature is called.
pub const NAMES: [&str; 10] = [
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
];

/// The weight of each feature for a short query, and what a long one adds.
const WEIGHTS: [(f32, f32); 10] = [
    (1.52, 0.80),
    (2.27, -0.05),
    (0.33, 0.45),
    (2.11, 0.25),
    (0.77, -0.17),
    (0.54, -0.02),
    (1.11, 0.31),
    (1.46, 0.21),
    (0.83, -0.41),
    (-0.34, 0.60),
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
    whole: Reading,
    parts: Vec<Reading>,
    text: &'a str,
    allowed: &'a [bool],
    stemmer: Stemmer,
}

/// The best documents among the allowed ones, best first, ties by id. At most
/// a hundred.
pub(crate) fn rank(index: &Index, text: &str, allowed: &[bool]) -> Vec<Ranked> {
    let stemmer = words::stemmer();
    let whole = Reading::of(index, text, &stemmer);
    let parts: Vec<Reading> =
        clauses::of(text).iter().map(|part| Reading::of(index, part, &stemmer)).collect();
    Look { index, whole, parts, text, allowed, stemmer }.rank()
}

/// How long a query is, from 0 (six words or fewer) to 1.
pub(crate) fn length(n_words: usize) -> f32 {
    ((n_words as f32 - 6.0) / 19.0).clamp(0.0, 1.0)
}

impl Look<'_> {
    fn rank(&self) -> Vec<Ranked> {
        let lexical = self.proportions(self.lexical(&self.whole));
        let cosines = self.cosines();
        let most = self.most(&cosines).max(f32::MIN_POSITIVE);
        let clauses = self.clause_words();
        let words = match &self.whole.steps {
            Some(_) => 0.35 + 0.30 * length(self.whole.n_words),
            None => 1.0,
        };
        let first: Vec<f32> = (0..self.index.len())
            .map(|at| {
                let clause = clauses.as_ref().map_or(0.0, |clauses| clauses[at]);
                words * lexical[at] + (1.0 - words) * cosines[at] / most + CLAUSE * clause
            })
            .collect();
        let candidates = self.best(&first);
        let mut ranked: Vec<Ranked> = candidates
            .iter()
            .map(|at| {
                let mut features = [0.0; 10];
                features[0] = lexical[*at];
                features[1] = cosines[*at] / most;
                features[2] = clauses.as_ref().map_or(lexical[*at], |clauses| clauses[*at]);
                let cosine = if self.whole.makes_sense { cosines[*at] } else { 0.0 };
                Ranked { entry: *at, score: 0.0, features, cosine }
            })
            .collect();
        self.look_closely(&mut ranked);
        let long = length(self.whole.n_words);
        for one in &mut ranked {
            let weigh =
                |(feature, (short, more)): (&f32, &(f32, f32))| feature * (short + more * long);
            one.score = one.features.iter().zip(&WEIGHTS).map(weigh).sum();
        }
        ranked.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.entry.cmp(&b.entry)));
        ranked
    }

    /// BM25F of every document.
    fn lexical(&self, reading: &Reading) -> Vec<f32> {
        let mut scores = vec![0.0; self.index.len()];
        for term in &reading.terms {
            let weight = term.weight * self.index.postings.idf(term.term);
            for posting in self.index.postings.of(term.term) {
                scores[posting.document as usize] += weight * posting.share;
            }
        }
        scores
    }

    /// The cosine of every allowed document, none below zero.
    fn cosines(&self) -> Vec<f32> {
        let Some(steps) = &self.whole.steps else { return vec![0.0; self.index.len()] };
        let cosine = |(at, allowed): (usize, &bool)| match allowed {
            true => self.index.vectors.cosine(at, steps).max(0.0),
            false => 0.0,
        };
        self.allowed.iter().enumerate().map(cosine).collect()
    }

    /// By document: the best clause's score, in proportion to that clause's best
    /// document.
    fn clause_words(&self) -> Option<Vec<f32>> {
        let mut best: Option<Vec<f32>> = None;
        for part in &self.parts {
            let scores = self.proportions(self.lexical(part));
            match &mut best {
                Some(best) => best.iter_mut().zip(&scores).for_each(|(a, b)| *a = a.max(*b)),
                None => best = Some(scores),
            }
        }
        best
    }

    fn most(&self, scores: &[f32]) -> f32 {
        let allowed = scores.iter().zip(self.allowed).filter(|(_, allowed)| **allowed);
        allowed.fold(0.0, |most, (score, _)| most.max(*score))
    }

    fn proportions(&self, mut scores: Vec<f32>) -> Vec<f32> {
        let factor = 1.0 / self.most(&scores).max(f32::MIN_POSITIVE);
        scores.iter_mut().for_each(|score| *score *= factor);
        scores
    }

    /// The candidates for the second look.
    fn best(&self, scores: &[f32]) -> Vec<usize> {
        let mut order: Vec<usize> =
            (0..scores.len()).filter(|at| self.allowed[*at] && 0.0 < scores[*at]).collect();
        let better = |a: &usize, b: &usize| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b));
        if CANDIDATES < order.len() {
            order.select_nth_unstable_by(CANDIDATES, better);
            order.truncate(CANDIDATES);
        }
        order.sort_unstable();
        order
    }

    /// Fills in the features that need more than a sum over postings. `ranked`
    /// is in the order of the entries.
    fn look_closely(&self, ranked: &mut [Ranked]) {
        self.cover(ranked);
        let asked = self.index.verbs.of(&self.stemmer, self.text);
        let mut best_of_part = vec![f32::MIN_POSITIVE; self.parts.len()];
        let mut by_part = vec![0.0; self.parts.len() * ranked.len()];
        for (place, one) in ranked.iter_mut().enumerate() {
            let entry = &self.index.entries[one.entry];
            match asked.relation(entry.actions) {
                Relation::Agree => one.features[8] = 1.0,
                Relation::Conflict => one.features[9] = 1.0,
                Relation::Open => {}
            }
            one.features[3] = one.features[1];
            if let Some(steps) = &self.whole.steps {
                one.features[7] = self.index.names.cosine(one.entry, steps).max(0.0);
            }
            for (part, reading) in self.parts.iter().enumerate() {
                if let Some(steps) = &reading.steps {
                    let cosine = self.index.vectors.cosine(one.entry, steps).max(0.0);
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

    /// How much of the name, of the server and of the query is common to both.
    fn cover(&self, ranked: &mut [Ranked]) {
        for term in &self.whole.terms {
            if term.origin == Origin::Joined {
                continue;
            }
            let idf = self.index.postings.idf(term.term);
            let mut next = 0;
            for posting in self.index.postings.of(term.term) {
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
                if written && (posting.is_in(NAME) || posting.is_in(DESCRIPTION)) {
                    one.features[6] += idf;
                }
            }
        }
        for one in ranked {
            let weights = self.index.entries[one.entry].weights;
            one.features[4] /= weights.name.max(1e-6);
            one.features[5] /= weights.server.max(1e-6);
            one.features[6] /= self.whole.wanted.max(1e-6);
        }
    }
}
