//! From a query to an order.

use rust_stemmers::Stemmer;

use super::vectors::{self, Steps};
use super::words::{self, Shape};
use super::{Hit, Index, Query, clauses};

/// The weight of a synonym beside the word that was written.
const SYNONYM: f32 = 0.3;
/// The weight of the best clause beside the whole query.
const CLAUSE: f32 = 0.3;

/// A part of a query, ready to be scored.
struct Part {
    /// Term and weight, without idf.
    terms: Vec<(u32, f32)>,
    n_words: usize,
    steps: Option<Steps>,
}

pub(crate) fn search(index: &Index, query: &Query, visible: &dyn Fn(usize) -> bool) -> Vec<Hit> {
    let stemmer = words::stemmer();
    let whole = part(index, &query.text, &stemmer);
    let allowed: Vec<bool> = index
        .entries
        .iter()
        .map(|entry| {
            (query.kinds.is_empty() || query.kinds.contains(&entry.kind))
                && visible(entry.document as usize)
        })
        .collect();
    let mut lexical = vec![0.0; index.len()];
    accumulate(index, &whole, &mut lexical);
    let mut cosines = vec![0.0; index.len()];
    if let Some(steps) = &whole.steps {
        for (document, cosine) in cosines.iter_mut().enumerate() {
            *cosine = index.vectors.cosine(document, steps).max(0.0);
        }
    }
    let mut scores = fuse(&whole, &lexical, &cosines, &allowed);
    let parts: Vec<Part> =
        clauses::of(&query.text).iter().map(|text| part(index, text, &stemmer)).collect();
    if !parts.is_empty() {
        let mut best = vec![0.0_f32; index.len()];
        for part in &parts {
            lexical.fill(0.0);
            accumulate(index, part, &mut lexical);
            if let Some(steps) = &part.steps {
                for (document, cosine) in cosines.iter_mut().enumerate() {
                    *cosine = index.vectors.cosine(document, steps).max(0.0);
                }
            }
            let scores = fuse(part, &lexical, &cosines, &allowed);
            for (best, score) in best.iter_mut().zip(&scores) {
                *best = best.max(*score);
            }
        }
        for (score, best) in scores.iter_mut().zip(&best) {
            *score += CLAUSE * best;
        }
    }
    top(index, &scores, &allowed, query.limit)
}

fn part(index: &Index, text: &str, stemmer: &Stemmer) -> Part {
    let mut counted: Vec<(String, u32)> = Vec::new();
    let mut n_words = 0;
    words::each(text, |word, shape| {
        if shape == Shape::Word && words::is_stop(word) {
            return;
        }
        n_words += usize::from(shape == Shape::Word);
        let stem = words::stem(stemmer, word);
        match counted.iter_mut().find(|(known, _)| *known == stem) {
            Some((_, times)) => *times += 1,
            None => counted.push((stem, 1)),
        }
    });
    let mut terms: Vec<(u32, f32)> = Vec::new();
    for (stem, times) in &counted {
        let weight = 1.0 + 0.5 * (*times as f32).ln();
        if let Some(term) = index.postings.term(stem) {
            terms.push((term, weight));
        }
        for other in index.synonyms.of(stem) {
            if !counted.iter().any(|(stem, _)| stem == other)
                && let Some(term) = index.postings.term(other)
            {
                terms.push((term, weight * SYNONYM));
            }
        }
    }
    let compares = 0 < index.vectors.len();
    let steps = compares.then(|| Steps::of(&vectors::direction(text)));
    Part { terms, n_words, steps }
}

fn accumulate(index: &Index, part: &Part, scores: &mut [f32]) {
    for (term, weight) in &part.terms {
        let weight = weight * index.postings.idf(*term);
        for (document, share) in index.postings.of(*term) {
            scores[document as usize] += weight * share;
        }
    }
}

fn fuse(part: &Part, lexical: &[f32], cosines: &[f32], allowed: &[bool]) -> Vec<f32> {
    let most = |scores: &[f32]| {
        let allowed = scores.iter().zip(allowed).filter(|(_, allowed)| **allowed);
        allowed.fold(f32::MIN_POSITIVE, |most, (score, _)| most.max(*score))
    };
    let (most_lexical, most_cosine) = (most(lexical), most(cosines));
    let words = if part.steps.is_none() {
        1.0
    } else {
        (0.35 + 0.30 * (part.n_words as f32 - 6.0) / 19.0).clamp(0.35, 0.65)
    };
    lexical
        .iter()
        .zip(cosines)
        .map(|(lexical, cosine)| {
            words * lexical / most_lexical + (1.0 - words) * cosine / most_cosine
        })
        .collect()
}

/// The best documents, ties by id, which is the order of the entries.
fn top(index: &Index, scores: &[f32], allowed: &[bool], limit: usize) -> Vec<Hit> {
    let mut order: Vec<usize> =
        (0..scores.len()).filter(|at| allowed[*at] && 0.0 < scores[*at]).collect();
    let better = |a: &usize, b: &usize| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b));
    if limit < order.len() {
        order.select_nth_unstable_by(limit, better);
        order.truncate(limit);
    }
    order.sort_unstable_by(better);
    let hit = |at: usize| Hit { document: index.entries[at].document as usize, score: scores[at] };
    order.into_iter().map(hit).collect()
}
