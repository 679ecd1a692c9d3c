//! The postings of an index: in which documents a term occurs, and its weight
//! there.
//!
//! Everything about a posting that does not depend on the query is computed
//! when the index is built: the BM25F share of the term in the document, as one
//! small integer. A search then only multiplies and adds.

use super::fields::{Fields, NAME, SERVER, SURROUNDINGS, WEIGHTS};
use super::lexicon::{Lexicon, LexiconBuilder};
use super::words::{self, Shape};

/// The `k1` of BM25: how soon repetition stops counting.
const K1: f32 = 2.2;
/// The most repetitions that count, against keyword stuffing. The length counts in full.
const MOST_TIMES: u16 = 4;
const SCALE: f32 = 65_535.0;

/// An inverted index in flat arrays.
#[derive(Clone, Debug)]
pub(crate) struct Postings {
    /// By term: the start of its postings. One longer than there are terms.
    starts: Vec<u32>,
    idf: Vec<f32>,
    /// The idf of a term that occurs in one document.
    rarest: f32,
    documents: Vec<u32>,
    /// Parallel to `documents`: the saturated term frequency, 65,535 being one.
    shares: Vec<u16>,
    /// Parallel to `documents`: one bit per field that has the term as a word.
    fields: Vec<u8>,
}

/// One occurrence of a term in a document.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Posting {
    pub(crate) document: u32,
    /// BM25F's saturated frequency, 0 to 1.
    pub(crate) share: f32,
    fields: u8,
}

impl Posting {
    pub(crate) fn is_in(&self, field: usize) -> bool {
        self.fields & (1 << field) != 0
    }
}

/// The total idf of a document's name and server, to know how much of them a query
/// covers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Weights {
    pub(crate) name: f32,
    pub(crate) server: f32,
}

/// Collects documents, then turns them into [`Postings`].
pub(crate) struct Builder {
    lexicon: LexiconBuilder,
    /// One entry per term, document and field, in order of document.
    counts: Vec<Count>,
    lengths: Vec<[u32; 6]>,
}

/// How often a term occurs in one field of a document.
#[derive(Clone, Copy, Debug)]
struct Count {
    term: u32,
    document: u32,
    field: u8,
    shape: Shape,
    times: u16,
}

impl Builder {
    pub(crate) fn new() -> Builder {
        Builder { lexicon: LexiconBuilder::new(), counts: Vec::new(), lengths: Vec::new() }
    }

    /// The terms of a text, repeated as they occur.
    pub(crate) fn terms(&mut self, text: &str) -> Vec<(u32, Shape)> {
        let mut found = Vec::new();
        words::each(text, |word, shape| {
            found.extend(self.lexicon.term(word, shape).map(|term| (term, shape)));
        });
        found
    }

    /// Adds the next document. `surroundings` are distinct terms.
    pub(crate) fn add(&mut self, fields: &Fields, surroundings: &[(u32, Shape)]) {
        let document = u32::try_from(self.lengths.len()).expect("fewer than 2^32 documents");
        let mut lengths = [0; 6];
        for (field, text) in fields.text.iter().enumerate() {
            let mut terms =
                if field == SURROUNDINGS { surroundings.to_vec() } else { self.terms(text) };
            terms.sort_unstable();
            lengths[field] = u32::try_from(terms.len()).unwrap_or(u32::MAX);
            self.counts.extend(terms.chunk_by(|a, b| a == b).map(|same| Count {
                term: same[0].0,
                document,
                field: field as u8,
                shape: same[0].1,
                times: u16::try_from(same.len()).unwrap_or(u16::MAX),
            }));
        }
        self.lengths.push(lengths);
    }

    pub(crate) fn finish(mut self) -> (Lexicon, Postings, Vec<Weights>) {
        let lexicon = self.lexicon.finish();
        let n_documents = self.lengths.len();
        let average = averages(&self.lengths);
        self.counts.sort_unstable_by_key(|c| (c.term, c.document, c.field, c.shape));
        let n_terms = lexicon.n_terms();
        let mut postings = Postings {
            starts: vec![0; n_terms + 1],
            idf: vec![0.0; n_terms],
            rarest: idf(1, n_documents),
            documents: Vec::new(),
            shares: Vec::new(),
            fields: Vec::new(),
        };
        let mut weights = vec![Weights::default(); n_documents];
        for same_term in self.counts.chunk_by(|a, b| a.term == b.term) {
            let term = same_term[0].term as usize;
            let first = postings.documents.len();
            let mut frequency = 0;
            for posting in same_term.chunk_by(|a, b| a.document == b.document) {
                frequency += u32::from(posting.iter().any(|one| !one.is_in_surroundings()));
                postings.push(posting, &self.lengths[posting[0].document as usize], &average);
            }
            postings.idf[term] = idf(frequency, n_documents);
            postings.starts[term + 1] = (postings.documents.len() - first) as u32;
            for place in first..postings.documents.len() {
                let weight = &mut weights[postings.documents[place] as usize];
                let bit = |field: usize| f32::from(postings.fields[place] >> field & 1);
                weight.name += bit(NAME) * postings.idf[term];
                weight.server += bit(SERVER) * postings.idf[term];
            }
        }
        for at in 1..postings.starts.len() {
            postings.starts[at] += postings.starts[at - 1];
        }
        postings.documents.shrink_to_fit();
        postings.shares.shrink_to_fit();
        postings.fields.shrink_to_fit();
        (lexicon, postings, weights)
    }
}

impl Count {
    fn is_in_surroundings(&self) -> bool {
        usize::from(self.field) == SURROUNDINGS
    }

    /// The part of BM25F's weighted term frequency that comes from this field.
    fn weight(&self, lengths: &[u32; 6], average: &[f32; 6]) -> f32 {
        let field = usize::from(self.field);
        let (weight, b) = WEIGHTS[field];
        let length = lengths[field] as f32 / average[field].max(1.0);
        weight * f32::from(self.times.min(MOST_TIMES)) / (1.0 - b + b * length)
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
    fn push(&mut self, posting: &[Count], lengths: &[u32; 6], average: &[f32; 6]) {
        let weight: f32 = posting.iter().map(|count| count.weight(lengths, average)).sum();
        let words = posting.iter().filter(|count| count.shape == Shape::Word);
        self.documents.push(posting[0].document);
        self.shares.push((weight / (K1 + weight) * SCALE) as u16);
        self.fields.push(words.fold(0, |bits, count| bits | 1 << count.field));
    }

    pub(crate) fn idf(&self, term: u32) -> f32 {
        self.idf[term as usize]
    }

    /// The idf of a term that occurs in one document.
    pub(crate) fn rarest(&self) -> f32 {
        self.rarest
    }

    /// The postings of a term.
    pub(crate) fn of_term(&self, term: u32) -> impl Iterator<Item = Posting> {
        let range = self.starts[term as usize] as usize..self.starts[term as usize + 1] as usize;
        let (shares, fields) = (&self.shares[range.clone()], &self.fields[range.clone()]);
        self.documents[range].iter().zip(shares).zip(fields).map(|((document, share), fields)| {
            Posting {
                document: *document,
                share: f32::from(*share) * (1.0 / SCALE),
                fields: *fields,
            }
        })
    }

    /// The approximate heap bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.starts.capacity() * 4 + self.idf.capacity() * 4 + self.documents.capacity() * 7
    }
}
