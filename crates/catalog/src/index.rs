//! The search index: finds the few documents that fit a query in words.
//!
//! An [`Index`] is built whole from [`Document`]s and never changes. It ranks
//! by words (BM25F over fields) and by meaning (directions from a token table
//! inside the binary), both offline. The same documents and the same query give
//! the same order, byte for byte; ties go by id. It knows nothing of callers:
//! who may see what is a filter that comes with each search.

mod actions;
mod build;
mod clauses;
mod directions;
mod document;
mod entry;
mod fields;
mod glossary;
mod idioms;
mod lexicon;
mod names;
mod postings;
mod rank;
mod reading;
mod spread;
mod strings;
mod synonyms;
mod table;
mod typo;
mod vectors;
mod verdict;
mod wordpiece;
pub(crate) mod words;

use std::borrow::Cow;
use std::collections::BTreeMap;

use entry::Entry;
use words::Shape;

pub use build::{Config, Index, Meaning};
pub use document::{Document, Kind};
pub use rank::{Features, NAMES};
pub use verdict::Verdict;

/// What is looked for.
#[derive(Clone, Debug)]
pub struct Query {
    text: String,
    limit: usize,
    kinds: Vec<Kind>,
    boosts: BTreeMap<usize, f32>,
}

/// One document that was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// The place of the document in the list the index was built from.
    pub document: usize,
    /// Comparable within one search only.
    pub score: f32,
}

/// What a search brought to light.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Best first; empty when nothing is relevant.
    pub hits: Vec<Hit>,
    pub verdict: Verdict,
    /// When nothing is relevant: the documents that came nearest.
    pub near: Vec<usize>,
}

/// Bytes of a query that are read.
const LONGEST_QUERY: usize = 8_000;

/// The most that earlier choices can add to a score, whose best is about ten.
const MOST_BOOST: f32 = 1.0;

impl Query {
    /// A query for the first five documents of any kind.
    pub fn new(text: &str) -> Query {
        let text = &text[..text.floor_char_boundary(LONGEST_QUERY)];
        Query { text: text.to_owned(), limit: 5, kinds: Vec::new(), boosts: BTreeMap::new() }
    }

    /// At most a hundred are ever found.
    pub fn limit(self, limit: usize) -> Query {
        Query { limit, ..self }
    }

    /// Looks only for documents of this kind; may be said more than once.
    pub fn kind(mut self, kind: Kind) -> Query {
        self.kinds.push(kind);
        self
    }

    /// Prefers a document that was chosen after such queries before. `share` is
    /// between 0 and 1; more has no more effect.
    pub fn prefer(mut self, document: usize, share: f32) -> Query {
        self.boosts.insert(document, MOST_BOOST * share.clamp(0.0, 1.0));
        self
    }
}

impl Index {
    /// The best documents among those that `visible` lets through.
    pub fn search(&self, query: &Query, visible: impl Fn(usize) -> bool) -> Found {
        let text = self.english(query);
        let allowed = self.allowed(query, &visible);
        let mut ranked = rank::rank(self, &text, &allowed);
        if !query.boosts.is_empty() {
            for one in &mut ranked {
                let place = self.entries[one.entry].document as usize;
                one.score += query.boosts.get(&place).copied().unwrap_or(0.0);
            }
            ranked.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.entry.cmp(&b.entry)));
        }
        spread::declared_first(&mut ranked, |one| self.entries[one.entry].is_declared);
        let n_allowed = allowed.iter().filter(|allowed| **allowed).count();
        let verdict = verdict::judge(self, &ranked, n_allowed);
        spread::over_servers(&mut ranked, query.limit, |one| self.entries[one.entry].server);
        ranked.truncate(query.limit);
        let mut near = Vec::new();
        if verdict == Verdict::Nothing {
            let nearest = ranked.drain(..);
            near.extend(nearest.map(|one| self.entries[one.entry].document as usize));
        }
        let hit = |one: &rank::Ranked| Hit {
            document: self.entries[one.entry].document as usize,
            score: one.score,
        };
        Found { hits: ranked.iter().map(hit).collect(), verdict, near }
    }

    /// Returns why documents rank as they do: what the second look saw of each,
    /// best first. Says nothing about relevance.
    pub fn explain(&self, query: &Query) -> Vec<(usize, Features)> {
        let text = self.english(query);
        let ranked = rank::rank(self, &text, &self.allowed(query, &|_| true));
        let place = |one: &rank::Ranked| self.entries[one.entry].document as usize;
        ranked.iter().map(|one| (place(one), one.features)).collect()
    }

    /// Why documents rank as they do: what each feature adds to the score, best
    /// document first.
    pub fn explain_weighted(&self, query: &Query) -> Vec<(usize, Features)> {
        let long = self.length(query);
        let explained = self.explain(query).into_iter();
        explained.map(|(document, seen)| (document, rank::weighed(&seen, long))).collect()
    }

    /// Returns how long the ranking takes a query to be, from 0 to 1.
    pub fn length(&self, query: &Query) -> f32 {
        let reading = reading::Reader::new(self).read(&self.english(query));
        rank::length(reading.n_words)
    }

    fn english<'a>(&self, query: &'a Query) -> Cow<'a, str> {
        let has = |word: &str| self.lexicon.known(word).flatten().is_some();
        match glossary::english(&query.text, &has) {
            Cow::Borrowed(text) => idioms::explained(text, &|word| {
                has(word) || self.lexicon.term(&words::stem(&words::stemmer(), word)).is_some()
            }),
            translated @ Cow::Owned(_) => translated,
        }
    }

    fn allowed(&self, query: &Query, visible: &dyn Fn(usize) -> bool) -> Vec<bool> {
        let allowed = |entry: &Entry| {
            (query.kinds.is_empty() || query.kinds.contains(&entry.kind))
                && visible(entry.document as usize)
        };
        self.entries.iter().map(allowed).collect()
    }
}

/// The distinct stems of a text that carry meaning, in order.
pub fn terms(text: &str) -> Vec<String> {
    let stemmer = words::stemmer();
    let mut stems = Vec::new();
    words::each(&text[..text.floor_char_boundary(LONGEST_QUERY)], |word, shape| {
        if shape == Shape::Word && !words::is_stop(word) && !words::is_small_talk(word) {
            let stem = words::stem(&stemmer, word).into_owned();
            if !stems.contains(&stem) && stems.len() < 64 {
                stems.push(stem);
            }
        }
    });
    stems
}

#[cfg(test)]
mod tests;
