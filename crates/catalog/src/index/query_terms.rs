//! Parses a query into weighted terms and an embedding.

use std::collections::HashMap;

use rust_stemmers::Stemmer;

use super::actions::Actions;
use super::build::Index;
use super::table::WIDTH;
use super::vectors::{self, Embedding, QuantizedVector};
use super::words::{self, Shape};
use super::{clauses, table};

/// The weight of a synonym beside the word that was written.
const SYNONYM: f32 = 0.2;
/// The weight of a synonym where no document has the word itself.
const INSTEAD: f32 = 1.0;
/// The weight of each correction of a misspelt word.
const STAND_IN: f32 = 0.7;
/// The most distinct words that are looked up.
const MOST_WORDS: usize = 160;
/// The most misspelt words of a query and its clauses that are looked up.
const MOST_TYPOS: usize = 8;

/// A query or one clause of it, ready to be scored.
#[derive(Clone, Debug)]
pub(crate) struct ParsedQuery {
    /// In the order of the terms, each once.
    pub(crate) terms: Vec<Term>,
    /// The number of words without stop words; repeated ones count.
    pub(crate) n_words: usize,
    /// Whether the index or the embedding table knows a word of it.
    pub(crate) makes_sense: bool,
    /// The total idf of its words, including those that no document has.
    pub(crate) total_idf: f32,
    /// The actions that its verbs name.
    pub(crate) actions: Actions,
    /// Its embedding; `None` when meanings are ignored.
    pub(crate) vector: Option<QuantizedVector>,
    /// The embedding before normalization; all zero when meanings are ignored.
    sum: Embedding,
}

/// A weighted term of a query.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Term {
    pub(crate) term: u32,
    pub(crate) weight: f32,
    pub(crate) origin: Origin,
}

/// Where a term of a query comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Written,
    /// Two neighbouring words, joined as a name might join them.
    Joined,
    Synonym,
}

/// Parses a query and its clauses. It caches the words that no document has, because
/// looking up their corrections is expensive.
pub(crate) struct QueryParser<'a> {
    index: &'a Index,
    stemmer: Stemmer,
    unknown: Vec<UnknownWord<'a>>,
    /// How many more misspelt words may be looked up.
    typos_left: usize,
    /// By text: the position in `unknown`.
    positions: HashMap<String, usize>,
}

/// A word that no document has in this spelling.
struct UnknownWord<'a> {
    text: String,
    stem: String,
    term: Option<u32>,
    /// Similar words with their terms, once they were looked up.
    near: Option<Vec<(&'a str, u32)>>,
}

/// One distinct word of a query.
struct Word {
    key: Key,
    times: u32,
    origin: Origin,
}

/// Identifies a word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Key {
    Term(u32),
    /// A position among the unknown words.
    Unknown(usize),
}

/// The words of a text.
#[derive(Default)]
struct Words {
    distinct: Vec<Word>,
    /// How many words there are without stop words.
    count: usize,
    actions: Actions,
}

/// Whether small talk counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SmallTalk {
    Counts,
    Skipped,
}

impl Word {
    fn weight(&self) -> f32 {
        1.0 + 0.5 * (self.times as f32).ln()
    }
}

impl<'a> QueryParser<'a> {
    pub(crate) fn new(index: &'a Index) -> QueryParser<'a> {
        QueryParser {
            index,
            stemmer: words::stemmer(),
            unknown: Vec::new(),
            typos_left: MOST_TYPOS,
            positions: HashMap::new(),
        }
    }

    /// Parses a query whose clauses were parsed already. Where they are all of it, its
    /// embedding is the sum of theirs.
    pub(crate) fn parse_whole(&mut self, text: &str, clauses: &[ParsedQuery]) -> ParsedQuery {
        if clauses.is_empty() || clauses::MOST <= clauses.len() {
            return self.parse(text);
        }
        let mut sum = [0.0; WIDTH];
        for clause in clauses {
            sum.iter_mut().zip(&clause.sum).for_each(|(sum, value)| *sum += value);
        }
        self.parse_with(text, Some(sum))
    }

    pub(crate) fn parse(&mut self, text: &str) -> ParsedQuery {
        self.parse_with(text, None)
    }

    /// `sum` is the embedding before normalization, if it is known.
    fn parse_with(&mut self, text: &str, sum: Option<Embedding>) -> ParsedQuery {
        let mut words = self.words(text, SmallTalk::Skipped);
        if words.count == 0 {
            words = self.words(text, SmallTalk::Counts);
        }
        let postings = &self.index.postings;
        let mut terms = Vec::new();
        let (mut total_idf, mut makes_sense) = (0.0, false);
        let mut typos = Vec::new();
        for word in &words.distinct {
            match word.key {
                Key::Term(term) => {
                    terms.push(Term { term, weight: word.weight(), origin: word.origin });
                    if word.origin == Origin::Written {
                        makes_sense = true;
                        total_idf += postings.idf(term);
                    }
                }
                Key::Unknown(at) => {
                    let is_known = table::row("", &self.unknown[at].text).is_some();
                    makes_sense |= is_known;
                    total_idf += postings.rarest();
                    if !is_known && may_be_typo(&self.unknown[at].text) {
                        typos.push((at, word.weight()));
                    }
                }
            }
        }
        let mut text = text.to_owned();
        for (at, weight) in typos {
            let Some(near) = self.near(at) else { continue };
            makes_sense |= !near.is_empty();
            let (weight, origin) = (weight * STAND_IN, Origin::Written);
            terms.extend(near.iter().map(|(_, term)| Term { term: *term, weight, origin }));
            if let Some((right, _)) = near.first() {
                text = text.to_lowercase().replace(&self.unknown[at].text, right);
            }
        }
        self.add_synonyms(&words.distinct, &mut terms);
        merge(&mut terms);
        let compares = self.index.embeddings.are_compared();
        let sum = match (compares, sum) {
            (false, _) => [0.0; WIDTH],
            (true, Some(sum)) => sum,
            (true, None) => vectors::sum(&text),
        };
        let vector = compares.then(|| QuantizedVector::new(&vectors::normalized(sum)));
        let (n_words, actions) = (words.count, words.actions);
        ParsedQuery { terms, n_words, makes_sense, total_idf, actions, vector, sum }
    }

    /// The distinct words of a text. Joined words count only where the index
    /// has them.
    fn words(&mut self, text: &str, small_talk: SmallTalk) -> Words {
        let mut found = Words::default();
        let mut before = String::new();
        let mut unknown_before = None;
        let mut joined = String::new();
        words::each(text, |word, shape| {
            if shape == Shape::Compound {
                found.join(self.index.lexicon.joined(word, &self.stemmer));
                return;
            }
            let verbs = &self.index.verbs;
            let mut unknown = None;
            if words::is_stop(word) {
                found.actions.add(verbs.of_stop(word));
            } else if small_talk == SmallTalk::Counts || !words::is_small_talk(word) {
                let key = self.key(word);
                found.actions.add(match key {
                    Key::Term(term) => verbs.of_term(term),
                    Key::Unknown(at) => verbs.of_stem(&self.unknown[at].stem),
                });
                found.add(key);
                unknown = Some(key).filter(|key| matches!(key, Key::Unknown(_)));
            }
            joined.clear();
            joined.push_str(&before);
            joined.push_str(word);
            if !before.is_empty() && 3 < joined.len() {
                let term = self.index.lexicon.joined(&joined, &self.stemmer);
                match (term, unknown_before.zip(unknown)) {
                    (Some(term), Some(parts)) => found.unite(term, parts),
                    (term, _) => found.join(term),
                }
            }
            unknown_before = unknown;
            word.clone_into(&mut before);
        });
        found
    }

    fn key(&mut self, word: &str) -> Key {
        if let Some(Some(term)) = self.index.lexicon.look_up(word) {
            return Key::Term(term);
        }
        let at = match self.positions.get(word) {
            Some(at) => *at,
            None => self.add_unknown(word),
        };
        self.unknown[at].term.map_or(Key::Unknown(at), Key::Term)
    }

    /// Adds an unknown word; words of the same stem are the same.
    fn add_unknown(&mut self, word: &str) -> usize {
        let stem = words::stem(&self.stemmer, word);
        let at = self.unknown.iter().position(|other| other.stem == *stem);
        let at = at.unwrap_or_else(|| {
            let term = self.index.lexicon.term(&stem);
            let (text, stem) = (word.to_owned(), stem.into_owned());
            self.unknown.push(UnknownWord { text, stem, term, near: None });
            self.unknown.len() - 1
        });
        self.positions.insert(word.to_owned(), at);
        at
    }

    /// Similar words; `None` when too many were looked up already.
    fn near(&mut self, at: usize) -> Option<Vec<(&'a str, u32)>> {
        let word = &mut self.unknown[at];
        if word.near.is_none() {
            self.typos_left = self.typos_left.checked_sub(1)?;
            word.near = Some(self.index.lexicon.nearest(&word.text));
        }
        word.near.clone()
    }

    /// Adds the synonyms of words as terms.
    fn add_synonyms(&self, words: &[Word], terms: &mut Vec<Term>) {
        let is_written = |term: &u32| words.iter().any(|word| word.key == Key::Term(*term));
        for word in words.iter().filter(|word| word.origin == Origin::Written) {
            let synonyms = &self.index.synonyms;
            let (others, share) = match word.key {
                Key::Term(term) => (synonyms.of_term(term), SYNONYM),
                Key::Unknown(at) => (synonyms.of_stem(&self.unknown[at].stem), INSTEAD),
            };
            let (weight, origin) = (word.weight() * share, Origin::Synonym);
            let others = others.iter().filter(|other| !is_written(other));
            terms.extend(others.map(|term| Term { term: *term, weight, origin }));
        }
    }
}

impl Words {
    /// Counts a word that the query has.
    fn add(&mut self, key: Key) {
        self.count += 1;
        let is_full = MOST_WORDS <= self.distinct.len();
        match self.distinct.iter_mut().find(|word| word.key == key) {
            Some(word) => word.times += 1,
            None if is_full => {}
            None => self.distinct.push(Word { key, times: 1, origin: Origin::Written }),
        }
    }

    /// Replaces two unknown words by the one that they make together, such as `data base`.
    fn unite(&mut self, term: u32, (first, second): (Key, Key)) {
        self.distinct.retain(|word| word.key != first && word.key != second);
        self.add(Key::Term(term));
    }

    /// Adds the term of two neighbouring words, if there is one.
    fn join(&mut self, term: Option<u32>) {
        let Some(key) = term.map(Key::Term) else { return };
        if self.distinct.iter().all(|word| word.key != key) && self.distinct.len() < MOST_WORDS {
            self.distinct.push(Word { key, times: 1, origin: Origin::Joined });
        }
    }
}

/// Makes terms unique, in order. The first one counts; a synonym of two words counts for
/// both.
fn merge(terms: &mut Vec<Term>) {
    terms.sort_by_key(|term| term.term);
    terms.dedup_by(|later, first| {
        let same = later.term == first.term;
        if same && later.origin == Origin::Synonym {
            first.weight += later.weight;
        }
        same
    });
}

/// Whether an unknown word may be a typo.
fn may_be_typo(word: &str) -> bool {
    word.chars().all(char::is_alphabetic) && !word.chars().any(words::is_unspaced)
}
