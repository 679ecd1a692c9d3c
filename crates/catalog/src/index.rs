//! The search index: finds the few documents that fit a query in words.
//!
//! An [`Index`] is built whole from [`Document`]s and never changes. It ranks by words
//! (BM25F over fields) and by meaning (embeddings from a token table inside the binary),
//! both offline. The same documents and the same query give the same order; ties go by
//! id. It does not know callers: each search comes with a visibility filter.

mod actions;
mod build;
mod clauses;
mod document;
mod embeddings;
mod entry;
mod fields;
mod glossary;
mod idioms;
mod lexicon;
mod name_words;
mod postings;
mod query_terms;
mod rank;
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
pub use rank::{FEATURE_NAMES, Features};
pub use verdict::Verdict;

/// A search query.
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
    /// The position of the document in the list that the index was built from.
    pub document: usize,
    /// Comparable within one search only.
    pub score: f32,
}

/// The result of a search in the index.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexSearchResult {
    /// Best first; empty when nothing is relevant.
    pub hits: Vec<Hit>,
    pub verdict: Verdict,
    /// When nothing is relevant: the nearest documents.
    pub near: Vec<usize>,
}

/// The most bytes of a query that are used.
const LONGEST_QUERY: usize = 8_000;

/// The most that earlier choices can add to a score. The best scores are about ten.
const MOST_BOOST: f32 = 1.0;

impl Query {
    /// A query for the first five documents of any kind.
    pub fn new(text: &str) -> Query {
        let text = &text[..text.floor_char_boundary(LONGEST_QUERY)];
        Query { text: text.to_owned(), limit: 5, kinds: Vec::new(), boosts: BTreeMap::new() }
    }

    /// Sets the most hits. There are never more than a hundred.
    pub fn limit(self, limit: usize) -> Query {
        Query { limit, ..self }
    }

    /// Restricts the search to this kind; may be called several times.
    pub fn kind(mut self, kind: Kind) -> Query {
        self.kinds.push(kind);
        self
    }

    /// Prefers a document that was chosen after similar queries before. `share` is from 0
    /// to 1.
    pub fn prefer(mut self, document: usize, share: f32) -> Query {
        self.boosts.insert(document, MOST_BOOST * share.clamp(0.0, 1.0));
        self
    }
}

impl Index {
    /// The best documents among those that `visible` accepts.
    pub fn search(&self, query: &Query, visible: impl Fn(usize) -> bool) -> IndexSearchResult {
        let text = self.translated(query);
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
        IndexSearchResult { hits: ranked.iter().map(hit).collect(), verdict, near }
    }

    /// Explains a ranking: the features of each document, best first. Does not say whether
    /// they are relevant.
    pub fn explain(&self, query: &Query) -> Vec<(usize, Features)> {
        let text = self.translated(query);
        let ranked = rank::rank(self, &text, &self.allowed(query, &|_| true));
        let place = |one: &rank::Ranked| self.entries[one.entry].document as usize;
        ranked.iter().map(|one| (place(one), one.features)).collect()
    }

    /// Explains a ranking: what each feature adds to the score, best document first.
    pub fn explain_weighted(&self, query: &Query) -> Vec<(usize, Features)> {
        let long = self.length(query);
        let explained = self.explain(query).into_iter();
        explained.map(|(document, features)| (document, rank::weighted(&features, long))).collect()
    }

    /// The length of a query as the ranking uses it, from 0 (short) to 1 (long).
    pub fn length(&self, query: &Query) -> f32 {
        let parsed = query_terms::QueryParser::new(self).parse(&self.translated(query));
        rank::length(parsed.n_words)
    }

    /// The query in English, with the meanings of its idioms added.
    fn translated<'a>(&self, query: &'a Query) -> Cow<'a, str> {
        let has = |word: &str| self.lexicon.look_up(word).flatten().is_some();
        match glossary::english(&query.text, &has) {
            Cow::Borrowed(text) => idioms::with_meanings(text, &|word| {
                has(word) || self.lexicon.term(&words::stem(&words::stemmer(), word)).is_some()
            }),
            translated @ Cow::Owned(_) => translated,
        }
    }

    /// By entry: whether it is of a wanted kind and visible.
    fn allowed(&self, query: &Query, visible: &dyn Fn(usize) -> bool) -> Vec<bool> {
        let allowed = |entry: &Entry| {
            (query.kinds.is_empty() || query.kinds.contains(&entry.kind))
                && visible(entry.document as usize)
        };
        self.entries.iter().map(allowed).collect()
    }
}

/// The distinct stems of a text, without stop words, in order.
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
