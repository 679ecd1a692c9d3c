//! Finding: from a wish in words to the few documents that serve it.
//!
//! An [`Index`] is built whole from [`Document`]s and never changes. It ranks
//! by words (BM25F over fields) and by meaning (directions from a token table
//! inside the binary), both offline. The same documents and the same query give
//! the same order, byte for byte; ties go by id. It knows nothing of callers:
//! who may see what is a filter that comes with each search.

mod clauses;
mod fields;
mod postings;
mod rank;
mod synonyms;
mod table;
mod vectors;
mod wordpiece;
mod words;

use std::collections::{BTreeMap, BTreeSet};

use tool::Json;

use fields::{Fields, bounded};
use postings::{Builder, Postings};
use synonyms::Synonyms;
use vectors::Vectors;

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
}

/// One document that was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// The place of the document in the list the index was built from.
    pub document: usize,
    /// Comparable within one search only.
    pub score: f32,
}

/// An immutable index over documents.
#[derive(Clone, Debug)]
pub struct Index {
    /// Documents sorted by id; everything below is in this order.
    entries: Vec<Entry>,
    postings: Postings,
    synonyms: Synonyms,
    /// Empty when meanings are ignored.
    vectors: Vectors,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The place in the list the index was built from.
    document: u32,
    kind: Kind,
}

/// Bytes of a query that are read.
const LONGEST_QUERY: usize = 8_000;

impl Query {
    /// A query for the first five documents of any kind.
    pub fn new(text: &str) -> Query {
        let text = &text[..text.floor_char_boundary(LONGEST_QUERY)];
        Query { text: text.to_owned(), limit: 5, kinds: Vec::new() }
    }

    pub fn limit(self, limit: usize) -> Query {
        Query { limit, ..self }
    }

    /// Looks only for documents of this kind; may be said more than once.
    pub fn kind(mut self, kind: Kind) -> Query {
        self.kinds.push(kind);
        self
    }
}

impl Index {
    pub fn build(documents: &[Document], config: &Config) -> Index {
        let mut order: Vec<u32> =
            (0..u32::try_from(documents.len()).expect("fewer than 2^32")).collect();
        order.sort_by(|a, b| documents[*a as usize].id.cmp(&documents[*b as usize].id));
        let mut builder = Builder::new();
        let surroundings = surroundings(documents, &mut builder);
        let mut vectors = Vectors::default();
        let mut entries = Vec::with_capacity(documents.len());
        for place in order {
            let document = &documents[place as usize];
            let fields = Fields::of(document);
            let own = builder.terms(&document.name);
            let around = surroundings.get(&*document.server).map_or(&[][..], Vec::as_slice);
            let around: Vec<u32> =
                around.iter().copied().filter(|term| !own.contains(term)).collect();
            builder.add(&fields, &around);
            if config.meaning == Meaning::Compared {
                vectors.add(&vectors::document(&fields));
            }
            entries.push(Entry { document: place, kind: document.kind });
        }
        vectors.shrink();
        Index { entries, postings: builder.finish(), synonyms: Synonyms::new(), vectors }
    }

    /// The best documents among those that `visible` lets through.
    pub fn search(&self, query: &Query, visible: impl Fn(usize) -> bool) -> Vec<Hit> {
        rank::search(self, query, &visible)
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Heap bytes, near enough to compare and to promise a bound.
    pub fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>() + self.postings.bytes() + self.vectors.bytes()
    }
}

/// By server: the terms of its tools' names and of its own description.
fn surroundings<'a>(
    documents: &'a [Document],
    builder: &mut Builder,
) -> BTreeMap<&'a str, Vec<u32>> {
    let mut by_server: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for document in documents.iter().filter(|document| !document.server.is_empty()) {
        let texts = by_server.entry(&document.server).or_default();
        texts.insert(&document.name);
        texts.insert(bounded(&document.server_description));
    }
    let terms = |(server, texts): (&'a str, BTreeSet<&str>)| {
        let terms: BTreeSet<u32> = texts.iter().flat_map(|text| builder.terms(text)).collect();
        (server, terms.into_iter().collect())
    };
    by_server.into_iter().map(terms).collect()
}
