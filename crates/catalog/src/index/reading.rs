//! What a query says, term by term.

use std::collections::{HashMap, HashSet};

use rust_stemmers::Stemmer;

use super::vectors::{self, Steps};
use super::words::{self, Shape};
use super::{Index, table};

/// The weight of a synonym beside the word that was written.
const SYNONYM: f32 = 0.3;
/// The weight of each stand-in for a misspelt word.
const STAND_IN: f32 = 0.7;
/// The most distinct words that are looked up; a pasted page has no more to say.
const MOST_WORDS: usize = 256;
/// The most misspelt words that are looked up.
const MOST_SLIPS: usize = 8;

/// A query or one clause of it, ready to be scored.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    pub(crate) terms: Vec<Term>,
    /// Words that carry meaning, repeated ones counted.
    pub(crate) n_words: usize,
    /// Whether the index or the table knows a word of it.
    pub(crate) makes_sense: bool,
    /// The idf of everything that was written, whether the index has it or not.
    pub(crate) wanted: f32,
    /// None when meanings are ignored.
    pub(crate) steps: Option<Steps>,
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

/// One distinct word of a query.
struct Word {
    text: String,
    stem: String,
    times: u32,
    origin: Origin,
}

impl Word {
    fn weight(&self) -> f32 {
        1.0 + 0.5 * (self.times as f32).ln()
    }
}

impl Reading {
    pub(crate) fn of(index: &Index, text: &str, stemmer: &Stemmer) -> Reading {
        let wordy = |word: &str| !words::is_stop(word) && !words::is_small_talk(word);
        let (mut words, mut n_words) = distinct(text, stemmer, &wordy);
        if n_words == 0 {
            (words, n_words) = distinct(text, stemmer, &|word| !words::is_stop(word));
        }
        let mut terms = Vec::new();
        let (mut wanted, mut makes_sense) = (0.0, false);
        let mut slips = Vec::new();
        for word in &words {
            let known = index.postings.term(&word.stem);
            if let Some(term) = known {
                add(&mut terms, term, word.weight(), word.origin);
            }
            if word.origin == Origin::Written {
                makes_sense |= known.is_some() || table::row("", &word.text).is_some();
                wanted += known.map_or(index.postings.rarest(), |term| index.postings.idf(term));
                if known.is_none() && is_misspelt(&word.text) && slips.len() < MOST_SLIPS {
                    slips.push(word);
                }
            }
        }
        let mut text = text.to_owned();
        for word in slips {
            let near = index.lexicon.nearest(&word.text);
            makes_sense |= !near.is_empty();
            for (_, term) in &near {
                add(&mut terms, *term, word.weight() * STAND_IN, Origin::Written);
            }
            if let Some((right, _)) = near.first() {
                text = text.to_lowercase().replace(&word.text, right);
            }
        }
        synonyms(index, &words, &mut terms);
        let compares = 0 < index.vectors.len();
        let steps = compares.then(|| Steps::of(&vectors::direction(&text)));
        Reading { terms, n_words, makes_sense, wanted, steps }
    }
}

/// Adds a term, unless it is there: a synonym of two words counts for both.
fn add(terms: &mut Vec<Term>, term: u32, weight: f32, origin: Origin) {
    match terms.iter_mut().find(|known| known.term == term) {
        Some(known) if origin == Origin::Synonym => known.weight += weight,
        Some(_) => {}
        None => terms.push(Term { term, weight, origin }),
    }
}

fn synonyms(index: &Index, words: &[Word], terms: &mut Vec<Term>) {
    let written: HashSet<&str> = words.iter().map(|word| &*word.stem).collect();
    for word in words.iter().filter(|word| word.origin == Origin::Written) {
        for other in index.synonyms.of(&word.stem) {
            if !written.contains(&**other)
                && let Some(term) = index.postings.term(other)
            {
                add(terms, term, word.weight() * SYNONYM, Origin::Synonym);
            }
        }
    }
}

/// The distinct words of a text, and how many of its words carry meaning.
fn distinct(text: &str, stemmer: &Stemmer, means: &dyn Fn(&str) -> bool) -> (Vec<Word>, usize) {
    let mut found: Vec<Word> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut n_words = 0;
    let mut before = String::new();
    let mut note = |text: &str, origin: Origin| {
        let stem = words::stem(stemmer, text);
        match places.get(&stem) {
            Some(at) if origin != Origin::Joined => found[*at].times += 1,
            Some(_) => {}
            None if MOST_WORDS <= found.len() => {}
            None => {
                places.insert(stem.clone(), found.len());
                found.push(Word { text: text.to_owned(), stem, times: 1, origin });
            }
        }
    };
    words::each(text, |word, shape| {
        if shape == Shape::Compound {
            note(word, Origin::Joined);
            return;
        }
        if means(word) {
            n_words += 1;
            note(word, Origin::Written);
        }
        let joined = format!("{before}{word}");
        if !before.is_empty() && 4 < joined.len() {
            note(&joined, Origin::Joined);
        }
        word.clone_into(&mut before);
    });
    (found, n_words)
}

/// Whether a word that no document has may be a slip of the pen: the table,
/// which has every common word of English, does not have it whole.
fn is_misspelt(word: &str) -> bool {
    word.chars().all(char::is_alphabetic)
        && !word.chars().any(words::is_unspaced)
        && table::row("", word).is_none()
}
