//! Compares the words of names with the words of a query by meaning.
//!
//! A tool's name describes it best, but in two or three words. So every word of a name is
//! compared with every word of a query, by shortened embeddings.

use super::strings::Strings;
use super::vectors::{self, QuantizedVector, SHORT_WIDTH, Vectors};
use super::words::{self, Shape};

/// The words of the names of all entries.
#[derive(Clone, Debug)]
pub(crate) struct NameWords {
    /// By entry: the start of its words. One longer than there are entries.
    starts: Vec<u32>,
    words: Vec<u32>,
    /// By word: its shortened embedding; empty when meanings are ignored.
    short_vectors: Vectors<SHORT_WIDTH>,
    /// By word: its idf.
    weights: Vec<f32>,
}

/// Collects names.
pub(crate) struct Builder {
    names: NameWords,
    known: Strings,
    compares: bool,
}

/// The shortened embeddings of the words of a query.
pub(crate) struct QueryWords {
    short_vectors: Vec<QuantizedVector<SHORT_WIDTH>>,
}

/// The most words of a query or a name that are compared.
const MOST_WORDS: usize = 32;

impl Builder {
    pub(crate) fn new(compares: bool) -> Builder {
        let names = NameWords {
            starts: vec![0],
            words: Vec::new(),
            short_vectors: Vectors::default(),
            weights: Vec::new(),
        };
        Builder { names, known: Strings::new(), compares }
    }

    pub(crate) fn add(&mut self, name: &str) {
        let names = &mut self.names;
        for_each_content_word(name, |word| {
            let (number, is_new) = self.known.intern(word);
            if is_new && self.compares {
                names.short_vectors.add(&vectors::embed_word(word));
            }
            names.words.push(number);
        });
        names.starts.push(names.words.len() as u32);
    }

    /// `weight` gives the idf of a word.
    pub(crate) fn finish(self, weight: impl Fn(&str) -> f32) -> NameWords {
        let Builder { mut names, known, .. } = self;
        names.weights = (0..known.len() as u32).map(|word| weight(known.get(word))).collect();
        names.short_vectors.shrink();
        names.words.shrink_to_fit();
        names
    }
}

impl NameWords {
    /// The similarity of each name to a query, from 0 to 1: the weighted mean over the words
    /// of the name of the similarity to the nearest word of the query.
    pub(crate) fn similarity_to<'a>(
        &'a self,
        query: &'a QueryWords,
    ) -> impl FnMut(usize) -> f32 + 'a {
        let mut nearest: Vec<f32> = vec![f32::NAN; self.short_vectors.len()];
        move |entry| {
            let (mut sum, mut all) = (0.0, 0.0);
            for word in self.words_of(entry) {
                let Some(near) = nearest.get_mut(*word as usize) else { return 0.0 };
                if near.is_nan() {
                    let cosines = query.short_vectors.iter();
                    let cosines = cosines.map(|one| self.short_vectors.cosine(*word as usize, one));
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
            + self.short_vectors.bytes()
    }

    fn words_of(&self, entry: usize) -> &[u32] {
        &self.words[self.starts[entry] as usize..self.starts[entry + 1] as usize]
    }
}

impl QueryWords {
    /// Without `compares`, meanings are ignored and nothing is embedded.
    pub(crate) fn new(query: &str, compares: bool) -> QueryWords {
        let mut short_vectors = Vec::new();
        if compares {
            for_each_content_word(query, |word| {
                short_vectors.push(QuantizedVector::new(&vectors::embed_word(word)))
            });
        }
        QueryWords { short_vectors }
    }
}

/// Calls `take` with the distinct words of a text, without stop words.
fn for_each_content_word(text: &str, mut take: impl FnMut(&str)) {
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

    fn names(all: &[&str]) -> NameWords {
        let mut builder = Builder::new(true);
        all.iter().for_each(|name| builder.add(name));
        builder.finish(|_| 1.0)
    }

    #[test]
    fn a_word_near_in_meaning_counts_almost_like_the_word() {
        let names = names(&["delete_file", "get_weather"]);
        let of = |query: &str| -> Vec<f32> {
            let query = QueryWords::new(query, true);
            let mut understood = names.similarity_to(&query);
            vec![understood(0), understood(1)]
        };
        let same = of("delete the file");
        assert!(0.99 < same[0] && same[1] < 0.7, "{same:?}");
        let near = of("erase a document");
        assert!(near[1] + 0.1 < near[0], "{near:?}");
        assert_eq!(of("🎉"), [0.0, 0.0]);
    }
}
