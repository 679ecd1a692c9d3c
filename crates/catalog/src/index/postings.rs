//! Which term occurs where, and how much that is worth.
//!
//! Everything about a posting that does not depend on the query is computed
//! when the index is built: the BM25F share of the term in the document, as one
//! small integer. A search then only multiplies and adds.

use std::collections::HashMap;

use rust_stemmers::Stemmer;

use super::fields::{Fields, SURROUNDINGS, WEIGHTS};
use super::words::{self, Shape};

/// BM25 saturation: how soon repetition stops to count.
const K1: f32 = 1.6;
const SCALE: f32 = 65_535.0;

/// An inverted index in flat arrays.
#[derive(Clone, Debug)]
pub(crate) struct Postings {
    terms: HashMap<Box<str>, u32>,
    /// By term: where its postings start. One longer than there are terms.
    starts: Vec<u32>,
    idf: Vec<f32>,
    documents: Vec<u32>,
    /// Beside `documents`: the saturated term frequency, 65,535 being one.
    shares: Vec<u16>,
}

/// Collects documents, then turns them into [`Postings`].
pub(crate) struct Builder {
    stemmer: Stemmer,
    terms: HashMap<Box<str>, u32>,
    /// Word to term, so that each distinct word is stemmed once.
    stems: HashMap<Box<str>, Option<u32>>,
    /// One entry per term, document and field, in order of document.
    counts: Vec<Count>,
    lengths: Vec<[u32; 6]>,
}

#[derive(Clone, Copy, Debug)]
struct Count {
    term: u32,
    document: u32,
    field: u8,
    times: u16,
}

impl Builder {
    pub(crate) fn new() -> Builder {
        Builder {
            stemmer: words::stemmer(),
            terms: HashMap::new(),
            stems: HashMap::new(),
            counts: Vec::new(),
            lengths: Vec::new(),
        }
    }

    /// The terms of a text, repeated as they occur.
    pub(crate) fn terms(&mut self, text: &str) -> Vec<u32> {
        let mut found = Vec::new();
        words::each(text, |word, shape| found.extend(self.term(word, shape)));
        found
    }

    fn term(&mut self, word: &str, shape: Shape) -> Option<u32> {
        if let Some(known) = self.stems.get(word) {
            return *known;
        }
        let term = (shape == Shape::Compound || !words::is_stop(word)).then(|| {
            let stem = words::stem(&self.stemmer, word);
            let next = u32::try_from(self.terms.len()).expect("fewer than 2^32 terms");
            *self.terms.entry(stem.into()).or_insert(next)
        });
        self.stems.insert(word.into(), term);
        term
    }

    /// Adds the next document. `surroundings` are terms, each counted once.
    pub(crate) fn add(&mut self, fields: &Fields, surroundings: &[u32]) {
        let document = u32::try_from(self.lengths.len()).expect("fewer than 2^32 documents");
        let mut lengths = [0; 6];
        for (field, text) in fields.text.iter().enumerate() {
            let mut terms =
                if field == SURROUNDINGS { surroundings.to_vec() } else { self.terms(text) };
            terms.sort_unstable();
            if field == SURROUNDINGS {
                terms.dedup();
            }
            lengths[field] = u32::try_from(terms.len()).unwrap_or(u32::MAX);
            self.counts.extend(terms.chunk_by(|a, b| a == b).map(|same| Count {
                term: same[0],
                document,
                field: field as u8,
                times: u16::try_from(same.len()).unwrap_or(u16::MAX),
            }));
        }
        self.lengths.push(lengths);
    }

    pub(crate) fn finish(mut self) -> Postings {
        let n_documents = self.lengths.len();
        let average = averages(&self.lengths);
        self.counts.sort_unstable_by_key(|c| (c.term, c.document, c.field));
        let mut starts = vec![0; self.terms.len() + 1];
        let mut frequency = vec![0_u32; self.terms.len()];
        let (mut documents, mut shares) = (Vec::new(), Vec::new());
        for posting in self.counts.chunk_by(|a, b| (a.term, a.document) == (b.term, b.document)) {
            let Count { term, document, .. } = posting[0];
            let lengths = &self.lengths[document as usize];
            let weight: f32 = posting.iter().map(|count| count.weight(lengths, &average)).sum();
            documents.push(document);
            shares.push((weight / (K1 + weight) * SCALE) as u16);
            starts[term as usize + 1] += 1;
            frequency[term as usize] +=
                u32::from(posting.iter().any(|count| usize::from(count.field) != SURROUNDINGS));
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let idf = frequency.iter().map(|df| idf(*df, n_documents)).collect();
        documents.shrink_to_fit();
        shares.shrink_to_fit();
        Postings { terms: self.terms, starts, idf, documents, shares }
    }
}

impl Count {
    /// The part of BM25F's weighted term frequency that comes from this field.
    fn weight(&self, lengths: &[u32; 6], average: &[f32; 6]) -> f32 {
        let field = usize::from(self.field);
        let (weight, b) = WEIGHTS[field];
        let length = lengths[field] as f32 / average[field].max(1.0);
        weight * f32::from(self.times) / (1.0 - b + b * length)
    }
}

fn averages(lengths: &[[u32; 6]]) -> [f32; 6] {
    let mut sums = [0_u64; 6];
    for document in lengths {
        for (sum, length) in sums.iter_mut().zip(document) {
            *sum += u64::from(*length);
        }
    }
    sums.map(|sum| sum as f32 / lengths.len().max(1) as f32)
}

fn idf(frequency: u32, n_documents: usize) -> f32 {
    let frequency = frequency.max(1) as f32;
    (1.0 + (n_documents as f32 - frequency + 0.5).max(0.0) / (frequency + 0.5)).ln()
}

impl Postings {
    pub(crate) fn term(&self, stem: &str) -> Option<u32> {
        self.terms.get(stem).copied()
    }

    pub(crate) fn idf(&self, term: u32) -> f32 {
        self.idf[term as usize]
    }

    /// Every document with the term, and the term's share there (0 to 1).
    pub(crate) fn of(&self, term: u32) -> impl Iterator<Item = (u32, f32)> {
        let range = self.starts[term as usize] as usize..self.starts[term as usize + 1] as usize;
        let shares = &self.shares[range.clone()];
        self.documents[range]
            .iter()
            .zip(shares)
            .map(|(document, share)| (*document, f32::from(*share) * (1.0 / SCALE)))
    }

    /// Heap bytes, near enough to compare and to promise a bound.
    pub(crate) fn bytes(&self) -> usize {
        let terms: usize = self.terms.keys().map(|stem| stem.len() + 16 + 4 + 8).sum();
        terms * 8 / 7
            + self.starts.capacity() * 4
            + self.idf.capacity() * 4
            + self.documents.capacity() * 4
            + self.shares.capacity() * 2
    }
}
