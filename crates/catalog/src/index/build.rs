//! Builds an index from documents.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::actions::Verbs;
use super::document::{Document, Kind};
use super::embeddings::{self, Embeddings};
use super::entry::Entry;
use super::fields::{self, Fields, bounded};
use super::lexicon::Lexicon;
use super::name_words::{self, NameWords};
use super::postings::{Builder, Postings, Weights};
use super::synonyms::Synonyms;
use super::words::{self, Shape};

/// Whether a search also compares meanings (embeddings).
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

/// An immutable index over documents.
#[derive(Clone, Debug)]
pub struct Index {
    /// Documents sorted by id; everything below is in this order.
    pub(super) entries: Vec<Entry>,
    pub(super) postings: Postings,
    pub(super) lexicon: Lexicon,
    pub(super) synonyms: Synonyms,
    pub(super) verbs: Verbs,
    pub(super) embeddings: Embeddings,
    /// The words of the documents' names.
    pub(super) name_words: NameWords,
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
        let mut embeddings =
            compares.then(|| embeddings::Builder::new(documents.len(), surroundings.len()));
        let mut name_words = name_words::Builder::new(compares);
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
            name_words.add(&document.name);
            let has_parameters = !fields.text[fields::PARAMETERS].is_empty();
            let entry = Entry {
                document: place,
                kind: document.kind,
                server,
                has_parameters,
                is_declared: has_parameters || declares(document),
                actions: verbs.of_text(&stemmer, &document.name),
                weights: Weights::default(),
            };
            if let Some(embeddings) = &mut embeddings {
                embeddings.add(document, &fields, &entry);
            }
            entries.push(entry);
        }
        let embeddings = embeddings.map(embeddings::Builder::finish).unwrap_or_default();
        let (lexicon, postings, weights) = builder.finish();
        for (entry, weights) in entries.iter_mut().zip(weights) {
            entry.weights = weights;
        }
        let name_words = name_words.finish(|word| match lexicon.look_up(word).flatten() {
            Some(term) => postings.idf(term),
            None => 0.0,
        });
        let synonyms = Synonyms::new(&stemmer, |stem| lexicon.term(stem));
        verbs.index_terms(|stem| lexicon.term(stem));
        Index { entries, postings, lexicon, synonyms, verbs, embeddings, name_words }
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The approximate heap bytes.
    pub fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
            + self.postings.bytes()
            + self.lexicon.bytes()
            + self.embeddings.bytes()
            + self.name_words.bytes()
    }
}

/// Whether the schema of a document declares its arguments; `true` without a schema.
fn declares(document: &Document) -> bool {
    document.input_schema.as_ref().is_none_or(|schema| {
        schema.member("properties").is_some() || schema.mentions("additionalProperties")
    })
}

/// The most surrounding terms of a server's documents. Every document gets all of them,
/// so without a bound a server of a thousand tools would cost a million.
pub(super) const MAX_SURROUNDINGS: usize = 200;

/// The number of a server, and the terms that its documents share.
type Surroundings = (u32, Vec<(u32, Shape)>);

/// By server: its number, and the distinct terms of its tools' names and of its own
/// description. Names of resources are left out: there may be thousands, and they say
/// little about what the server does.
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
        if MAX_SURROUNDINGS < terms.len() {
            // The terms that most tools share say most about a server.
            terms.sort_by_key(|(term, (count, _))| (Reverse(*count), *term));
            terms.truncate(MAX_SURROUNDINGS);
            terms.sort_unstable_by_key(|(term, _)| *term);
        }
        (server, (number, terms.into_iter().map(|(term, (_, shape))| (term, shape)).collect()))
    };
    (1..).zip(by_server).map(terms).collect()
}
