//! Finding: from a wish in words to the few documents that serve it.
//!
//! An [`Index`] is built whole from [`Document`]s and never changes. It ranks
//! by words (BM25F over fields) and by meaning (directions from a token table
//! inside the binary), both offline. The same documents and the same query give
//! the same order, byte for byte; ties go by id. It knows nothing of callers:
//! who may see what is a filter that comes with each search.

mod actions;
mod clauses;
mod directions;
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
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use tool::Json;

use actions::{Actions, Verbs};
use directions::Directions;
use fields::{Fields, bounded};
use lexicon::Lexicon;
use names::Names;
use postings::{Builder, Postings, Weights};
use synonyms::Synonyms;
use words::Shape;

pub use rank::{Features, NAMES};
pub use verdict::Verdict;

/// What a document describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Tool,
    Resource,
    Prompt,
    Skill,
}

/// One thing that can be found.
#[derive(Clone, Debug)]
pub struct Document {
    /// Unique within the index; breaks ties.
    pub id: String,
    pub kind: Kind,
    /// The namespace it belongs to, empty where there is none.
    pub server: String,
    /// What that server says of itself, empty when it says nothing.
    pub server_description: String,
    pub name: String,
    pub title: Option<String>,
    pub description: String,
    pub input_schema: Option<Json>,
}

/// Whether a search also compares meanings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    Compared,
    Ignored,
}

/// How an index is built.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    pub meaning: Meaning,
}

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

/// An immutable index over documents.
#[derive(Clone, Debug)]
pub struct Index {
    /// Documents sorted by id; everything below is in this order.
    entries: Vec<Entry>,
    postings: Postings,
    lexicon: Lexicon,
    synonyms: Synonyms,
    verbs: Verbs,
    directions: Directions,
    /// Their names, word by word.
    words: Names,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The place in the list the index was built from.
    document: u32,
    kind: Kind,
    /// A number for the server; the same for documents of one server.
    server: u32,
    has_parameters: bool,
    actions: Actions,
    weights: Weights,
}

impl Entry {
    /// The place among the servers of the one whose tools tell what this is for.
    /// Resources are data: what the tools of their server do says little of them.
    fn belongs_to(&self) -> Option<usize> {
        let server = (self.server as usize).checked_sub(1)?;
        (self.kind != Kind::Resource).then_some(server)
    }
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
    pub fn build(documents: &[Document], config: &Config) -> Index {
        let n_documents = u32::try_from(documents.len()).expect("fewer than 2^32 documents");
        let mut order: Vec<u32> = (0..n_documents).collect();
        order.sort_by(|a, b| documents[*a as usize].id.cmp(&documents[*b as usize].id));
        let stemmer = words::stemmer();
        let mut verbs = Verbs::new(&stemmer);
        let mut builder = Builder::new();
        let surroundings = surroundings(documents, &mut builder);
        let compares = config.meaning == Meaning::Compared;
        let mut directions =
            compares.then(|| directions::Builder::new(documents.len(), surroundings.len()));
        let mut words = names::Builder::new(compares);
        let mut entries = Vec::with_capacity(documents.len());
        for place in order {
            let document = &documents[place as usize];
            let fields = Fields::new(document);
            let own: BTreeSet<u32> =
                builder.terms(&document.name).into_iter().map(|(term, _)| term).collect();
            let (server, around) =
                surroundings.get(&*document.server).map_or((0, &[][..]), |(n, terms)| (*n, terms));
            let around: Vec<(u32, Shape)> =
                around.iter().copied().filter(|(term, _)| !own.contains(term)).collect();
            builder.add(&fields, &around);
            words.add(&document.name);
            let entry = Entry {
                document: place,
                kind: document.kind,
                server,
                has_parameters: !fields.text[fields::PARAMETERS].is_empty(),
                actions: verbs.of_text(&stemmer, &document.name),
                weights: Weights::default(),
            };
            if let Some(directions) = &mut directions {
                directions.add(document, &fields, &entry);
            }
            entries.push(entry);
        }
        let directions = directions.map(directions::Builder::finish).unwrap_or_default();
        let (lexicon, postings, weights) = builder.finish();
        for (entry, weights) in entries.iter_mut().zip(weights) {
            entry.weights = weights;
        }
        let words = words.finish(|word| match lexicon.known(word).flatten() {
            Some(term) => postings.idf(term),
            None => 0.0,
        });
        let synonyms = Synonyms::new(&stemmer, |stem| lexicon.term(stem));
        verbs.number(|stem| lexicon.term(stem));
        Index { entries, postings, lexicon, synonyms, verbs, directions, words }
    }

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

    /// Why documents rank as they do: what the second look saw of each, best
    /// first. Says nothing about relevance.
    pub fn explain(&self, query: &Query) -> Vec<(usize, Features)> {
        let text = self.english(query);
        let ranked = rank::rank(self, &text, &self.allowed(query, &|_| true));
        let place = |one: &rank::Ranked| self.entries[one.entry].document as usize;
        ranked.iter().map(|one| (place(one), one.features)).collect()
    }

    /// How long the ranking takes a query to be, from 0 to 1.
    pub fn length(&self, query: &Query) -> f32 {
        let reading = reading::Reader::new(self).read(&self.english(query));
        rank::length(reading.n_words)
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Heap bytes, near enough to compare and to promise a bound.
    pub fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
            + self.postings.bytes()
            + self.lexicon.bytes()
            + self.directions.bytes()
            + self.words.bytes()
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

/// How many terms stand around the documents of a server. Every document has
/// all of them, so without a bound a server of a thousand tools would cost a
/// million.
const N_AROUND: usize = 200;

/// The number of a server, and the terms around its documents.
type Surroundings = (u32, Vec<(u32, Shape)>);

/// By server: its number, and the terms of its tools' names and of its own
/// description, each once. The names of resources are data: there may be
/// thousands, and they say little about what the server does.
fn surroundings<'a>(
    documents: &'a [Document],
    builder: &mut Builder,
) -> BTreeMap<&'a str, Surroundings> {
    let mut by_server: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for document in documents.iter().filter(|document| !document.server.is_empty()) {
        let texts = by_server.entry(&document.server).or_default();
        if document.kind != Kind::Resource {
            texts.insert(&document.name);
        }
        texts.insert(bounded(&document.server_description));
    }
    let terms = |(number, (server, texts)): (u32, (&'a str, BTreeSet<&str>))| {
        let mut counts: BTreeMap<u32, (usize, Shape)> = BTreeMap::new();
        for (term, shape) in texts.iter().flat_map(|text| builder.terms(text)) {
            let held = counts.entry(term).or_insert((0, shape));
            *held = (held.0 + 1, shape);
        }
        let mut terms: Vec<(u32, (usize, Shape))> = counts.into_iter().collect();
        if N_AROUND < terms.len() {
            // What most of its tools have in common says most about a server.
            terms.sort_by_key(|(term, (count, _))| (Reverse(*count), *term));
            terms.truncate(N_AROUND);
            terms.sort_unstable_by_key(|(term, _)| *term);
        }
        (server, (number, terms.into_iter().map(|(term, (_, shape))| (term, shape)).collect()))
    };
    (1..).zip(by_server).map(terms).collect()
}

#[cfg(test)]
mod tests;
