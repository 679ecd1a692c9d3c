//! Splits names into words.
//!
//! A name is the best that a tool says of itself, but it says it in two or three
//! words. So every word of a name is compared with every word of a query by
//! meaning, in outline.

use super::strings::Strings;
use super::vectors::{self, OUTLINE, Steps, Vectors};
use super::words::{self, Shape};

/// The names of all entries.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    /// By entry: where its words start. One longer than there are entries.
    starts: Vec<u32>,
    words: Vec<u32>,
    /// By word: where it points; empty when meanings are ignored.
    outlines: Vectors<OUTLINE>,
    /// By word: how much it says.
    weights: Vec<f32>,
}

/// Gathers names.
pub(crate) struct Builder {
    names: Names,
    known: Strings,
    compares: bool,
}

/// What a query asks for, word by word.
pub(crate) struct QueryNames {
    outlines: Vec<Steps<OUTLINE>>,
}

/// The most words of a query or a name that are compared.
const MOST_WORDS: usize = 32;

impl Builder {
    pub(crate) fn new(compares: bool) -> Builder {
        let names = Names {
            starts: vec![0],
            words: Vec::new(),
            outlines: Vectors::default(),
            weights: Vec::new(),
        };
        Builder { names, known: Strings::new(), compares }
    }

    pub(crate) fn add(&mut self, name: &str) {
        let names = &mut self.names;
        content(name, |word| {
            let (number, is_new) = self.known.intern(word);
            if is_new && self.compares {
                names.outlines.add(&vectors::word(word));
            }
            names.words.push(number);
        });
        names.starts.push(names.words.len() as u32);
    }

    /// `weight` says how much a word says.
    pub(crate) fn finish(self, weight: impl Fn(&str) -> f32) -> Names {
        let Builder { mut names, known, .. } = self;
        names.weights = (0..known.len() as u32).map(|word| weight(known.get(word))).collect();
        names.outlines.shrink();
        names.words.shrink_to_fit();
        names
    }
}

impl Names {
    /// How far a query understands each name, from 0 to 1: of each word of a
    /// name, how near the nearest word of the query is.
    pub(crate) fn understood<'a>(&'a self, asked: &'a QueryNames) -> impl FnMut(usize) -> f32 + 'a {
        let mut nearest: Vec<f32> = vec![f32::NAN; self.outlines.len()];
        move |entry| {
            let (mut sum, mut all) = (0.0, 0.0);
            for word in self.words_of(entry) {
                let Some(near) = nearest.get_mut(*word as usize) else { return 0.0 };
                if near.is_nan() {
                    let cosines = asked.outlines.iter();
                    let cosines = cosines.map(|one| self.outlines.cosine(*word as usize, one));
                    *near = cosines.fold(0.0, f32::max);
                }
                let weight = self.weights[*word as usize];
                sum += weight * *near;
                all += weight;
            }
            if all == 0.0 { 0.0 } else { sum / all }
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        4 * (self.starts.capacity() + self.words.capacity() + self.weights.capacity())
            + self.outlines.bytes()
    }

    fn words_of(&self, entry: usize) -> &[u32] {
        &self.words[self.starts[entry] as usize..self.starts[entry + 1] as usize]
    }
}

impl QueryNames {
    /// `compares` says whether meanings count.
    pub(crate) fn new(query: &str, compares: bool) -> QueryNames {
        let mut outlines = Vec::new();
        if compares {
            content(query, |word| outlines.push(Steps::new(&vectors::word(word))));
        }
        QueryNames { outlines }
    }
}

/// Calls `take` with the words that say something, each once.
fn content(text: &str, mut take: impl FnMut(&str)) {
    let mut seen = String::new();
    let mut places: Vec<(usize, usize)> = Vec::new();
    words::each(text, |word, shape| {
        let is_known = |(start, end): &(usize, usize)| &seen[*start..*end] == word;
        if shape == Shape::Word
            && places.len() < MOST_WORDS
            && !words::is_stop(word)
            && !places.iter().any(is_known)
        {
            take(word);
            places.push((seen.len(), seen.len() + word.len()));
            seen.push_str(word);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(all: &[&str]) -> Names {
        let mut builder = Builder::new(true);
        all.iter().for_each(|name| builder.add(name));
        builder.finish(|_| 1.0)
    }

    #[test]
    fn a_word_near_in_meaning_counts_almost_like_the_word() {
        let names = names(&["delete_file", "get_weather"]);
        let of = |query: &str| -> Vec<f32> {
            let asked = QueryNames::new(query, true);
            let mut understood = names.understood(&asked);
            vec![understood(0), understood(1)]
        };
        let same = of("delete the file");
        assert!(0.99 < same[0] && same[1] < 0.7, "{same:?}");
        let near = of("erase a document");
        assert!(near[1] + 0.1 < near[0], "{near:?}");
        assert_eq!(of("🎉"), [0.0, 0.0]);
    }
}
