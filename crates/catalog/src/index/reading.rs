//! Parses a query into weighted terms.

use std::collections::HashMap;

use rust_stemmers::Stemmer;

use super::actions::Actions;
use super::build::Index;
use super::table::WIDTH;
use super::vectors::{self, Direction, Steps};
use super::words::{self, Shape};
use super::{clauses, table};

/// The weight of a synonym beside the word that was written.
const SYNONYM: f32 = 0.2;
/// The weight of a synonym where no document has the word: it is all there is.
const INSTEAD: f32 = 1.0;
/// The weight of each stand-in for a misspelt word.
const STAND_IN: f32 = 0.7;
/// The most distinct words that are looked up; a pasted page has no more to say.
const MOST_WORDS: usize = 160;
/// The most misspelt words of a query and its clauses that are looked up.
const MOST_SLIPS: usize = 8;

/// A query or one clause of it, ready to be scored.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    /// In the order of the terms, each once.
    pub(crate) terms: Vec<Term>,
    /// Words that carry meaning, repeated ones counted.
    pub(crate) n_words: usize,
    /// Whether the index or the table knows a word of it.
    pub(crate) makes_sense: bool,
    /// The idf of everything that was written, whether the index has it or not.
    pub(crate) wanted: f32,
    /// What its verbs ask for.
    pub(crate) actions: Actions,
    /// None when meanings are ignored.
    pub(crate) steps: Option<Steps>,
    /// What the direction was made of; all zero when meanings are ignored.
    sum: Direction,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Term {
    pub(crate) term: u32,
    pub(crate) weight: f32,
    pub(crate) origin: Origin,
}

/// Where a term of a reading comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Written,
    /// Two neighbouring words, joined as a name might join them.
    Joined,
    Synonym,
}

/// Reads a query and its clauses, and remembers the words that no document has:
/// those are the dear ones.
pub(crate) struct Reader<'a> {
    index: &'a Index,
    stemmer: Stemmer,
    strange: Vec<Strange<'a>>,
    /// How many more misspelt words may be looked up.
    slips: usize,
    /// By text: the place in `strange`.
    places: HashMap<String, usize>,
}

/// A word that no document has as it is written.
struct Strange<'a> {
    text: String,
    stem: String,
    term: Option<u32>,
    /// The nearest words, once they were looked for.
    near: Option<Vec<(&'a str, u32)>>,
}

/// One distinct word of a query.
struct Word {
    key: Key,
    times: u32,
    origin: Origin,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Key {
    Term(u32),
    /// A place among the strange words.
    Strange(usize),
}

/// The words of a text.
#[derive(Default)]
struct Words {
    distinct: Vec<Word>,
    /// How many carry meaning.
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

impl<'a> Reader<'a> {
    pub(crate) fn new(index: &'a Index) -> Reader<'a> {
        let stemmer = words::stemmer();
        Reader { index, stemmer, strange: Vec::new(), slips: MOST_SLIPS, places: HashMap::new() }
    }

    /// Reads a query whose clauses were read already: where they are all of it,
    /// so is what they point to.
    pub(crate) fn read_whole(&mut self, text: &str, clauses: &[Reading]) -> Reading {
        if clauses.is_empty() || clauses::MOST <= clauses.len() {
            return self.read(text);
        }
        let mut sum = [0.0; WIDTH];
        for clause in clauses {
            sum.iter_mut().zip(&clause.sum).for_each(|(sum, value)| *sum += value);
        }
        self.reading(text, Some(sum))
    }

    pub(crate) fn read(&mut self, text: &str) -> Reading {
        self.reading(text, None)
    }

    fn reading(&mut self, text: &str, sum: Option<Direction>) -> Reading {
        let mut words = self.words(text, SmallTalk::Skipped);
        if words.count == 0 {
            words = self.words(text, SmallTalk::Counts);
        }
        let postings = &self.index.postings;
        let mut terms = Vec::new();
        let (mut wanted, mut makes_sense) = (0.0, false);
        let mut slips = Vec::new();
        for word in &words.distinct {
            match word.key {
                Key::Term(term) => {
                    terms.push(Term { term, weight: word.weight(), origin: word.origin });
                    if word.origin == Origin::Written {
                        makes_sense = true;
                        wanted += postings.idf(term);
                    }
                }
                Key::Strange(at) => {
                    let is_known = table::row("", &self.strange[at].text).is_some();
                    makes_sense |= is_known;
                    wanted += postings.rarest();
                    if !is_known && is_alphabetic(&self.strange[at].text) {
                        slips.push((at, word.weight()));
                    }
                }
            }
        }
        let mut text = text.to_owned();
        for (at, weight) in slips {
            let Some(near) = self.near(at) else { continue };
            makes_sense |= !near.is_empty();
            let (weight, origin) = (weight * STAND_IN, Origin::Written);
            terms.extend(near.iter().map(|(_, term)| Term { term: *term, weight, origin }));
            if let Some((right, _)) = near.first() {
                text = text.to_lowercase().replace(&self.strange[at].text, right);
            }
        }
        self.synonyms(&words.distinct, &mut terms);
        merge(&mut terms);
        let compares = self.index.directions.are_compared();
        let sum = match (compares, sum) {
            (false, _) => [0.0; WIDTH],
            (true, Some(sum)) => sum,
            (true, None) => vectors::sum(&text),
        };
        let steps = compares.then(|| Steps::new(&vectors::normalised(sum)));
        let (n_words, actions) = (words.count, words.actions);
        Reading { terms, n_words, makes_sense, wanted, actions, steps, sum }
    }

    /// The distinct words of a text. Joined words count only where the index
    /// has them.
    fn words(&mut self, text: &str, small_talk: SmallTalk) -> Words {
        let mut found = Words::default();
        let mut before = String::new();
        let mut strange_before = None;
        let mut joined = String::new();
        words::each(text, |word, shape| {
            if shape == Shape::Compound {
                found.join(self.index.lexicon.joined(word, &self.stemmer));
                return;
            }
            let verbs = &self.index.verbs;
            let mut strange = None;
            if words::is_stop(word) {
                found.actions.add(verbs.of_stop(word));
            } else if small_talk == SmallTalk::Counts || !words::is_small_talk(word) {
                let key = self.key(word);
                found.actions.add(match key {
                    Key::Term(term) => verbs.of_term(term),
                    Key::Strange(at) => verbs.of_stem(&self.strange[at].stem),
                });
                found.write(key);
                strange = Some(key).filter(|key| matches!(key, Key::Strange(_)));
            }
            joined.clear();
            joined.push_str(&before);
            joined.push_str(word);
            if !before.is_empty() && 3 < joined.len() {
                let term = self.index.lexicon.joined(&joined, &self.stemmer);
                match (term, strange_before.zip(strange)) {
                    (Some(term), Some(parts)) => found.unite(term, parts),
                    (term, _) => found.join(term),
                }
            }
            strange_before = strange;
            word.clone_into(&mut before);
        });
        found
    }

    fn key(&mut self, word: &str) -> Key {
        if let Some(Some(term)) = self.index.lexicon.known(word) {
            return Key::Term(term);
        }
        let at = match self.places.get(word) {
            Some(at) => *at,
            None => self.meet(word),
        };
        self.strange[at].term.map_or(Key::Strange(at), Key::Term)
    }

    /// A strange word for the first time; one of the same stem is the same word.
    fn meet(&mut self, word: &str) -> usize {
        let stem = words::stem(&self.stemmer, word);
        let at = self.strange.iter().position(|other| other.stem == *stem);
        let at = at.unwrap_or_else(|| {
            let term = self.index.lexicon.term(&stem);
            let (text, stem) = (word.to_owned(), stem.into_owned());
            self.strange.push(Strange { text, stem, term, near: None });
            self.strange.len() - 1
        });
        self.places.insert(word.to_owned(), at);
        at
    }

    /// The nearest words; none when too many were looked for already.
    fn near(&mut self, at: usize) -> Option<Vec<(&'a str, u32)>> {
        let word = &mut self.strange[at];
        if word.near.is_none() {
            self.slips = self.slips.checked_sub(1)?;
            word.near = Some(self.index.lexicon.nearest(&word.text));
        }
        word.near.clone()
    }

    fn synonyms(&self, words: &[Word], terms: &mut Vec<Term>) {
        let is_said = |term: &u32| words.iter().any(|word| word.key == Key::Term(*term));
        for word in words.iter().filter(|word| word.origin == Origin::Written) {
            let synonyms = &self.index.synonyms;
            let (others, share) = match word.key {
                Key::Term(term) => (synonyms.of_term(term), SYNONYM),
                Key::Strange(at) => (synonyms.of_stem(&self.strange[at].stem), INSTEAD),
            };
            let (weight, origin) = (word.weight() * share, Origin::Synonym);
            let others = others.iter().filter(|other| !is_said(other));
            terms.extend(others.map(|term| Term { term: *term, weight, origin }));
        }
    }
}

impl Words {
    fn write(&mut self, key: Key) {
        self.count += 1;
        let is_full = MOST_WORDS <= self.distinct.len();
        match self.distinct.iter_mut().find(|word| word.key == key) {
            Some(word) => word.times += 1,
            None if is_full => {}
            None => self.distinct.push(Word { key, times: 1, origin: Origin::Written }),
        }
    }

    /// Two words that only together are one, such as `data base`.
    fn unite(&mut self, term: u32, (first, second): (Key, Key)) {
        self.distinct.retain(|word| word.key != first && word.key != second);
        self.write(Key::Term(term));
    }

    fn join(&mut self, term: Option<u32>) {
        let Some(key) = term.map(Key::Term) else { return };
        if self.distinct.iter().all(|word| word.key != key) && self.distinct.len() < MOST_WORDS {
            self.distinct.push(Word { key, times: 1, origin: Origin::Joined });
        }
    }
}

/// Each term once, in order. The first counts, except that a synonym of two
/// words counts for both.
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

/// Returns whether a word that nobody knows may be a slip of the pen.
fn is_alphabetic(word: &str) -> bool {
    word.chars().all(char::is_alphabetic) && !word.chars().any(words::is_unspaced)
}
