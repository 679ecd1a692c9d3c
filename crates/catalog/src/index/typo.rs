//! Words that are almost words.
//!
//! A query word that no document has is probably misspelt. Its neighbours among
//! the index's own words stand in for it, but only the closest, and only when
//! the word is long enough for one slip not to make another word of it.

/// Every word of an index, with a fingerprint that tells far words at a glance.
#[derive(Clone, Debug)]
pub(crate) struct Lexicon {
    words: Vec<Word>,
}

#[derive(Clone, Debug)]
struct Word {
    /// One bit per pair of neighbouring letters.
    pairs: u64,
    term: u32,
    text: Box<str>,
}

/// The most stand-ins for one word.
const MOST: usize = 3;

impl Lexicon {
    /// `words` are unstemmed, each with the term it is indexed under.
    pub(crate) fn of<'a>(words: impl Iterator<Item = (&'a str, u32)>) -> Lexicon {
        let mut words: Vec<Word> = words
            .filter(|(word, _)| 3 < word.len() && word.len() <= 24)
            .filter(|(word, _)| word.chars().all(char::is_alphabetic))
            .map(|(word, term)| Word { pairs: pairs(word), term, text: word.into() })
            .collect();
        words.sort_unstable_by(|a, b| a.text.cmp(&b.text));
        Lexicon { words }
    }

    /// The closest words to one that is not in the index, with their terms.
    pub(crate) fn nearest(&self, wanted: &str) -> Vec<(&str, u32)> {
        let length = wanted.chars().count();
        let slips = match length {
            0..4 => return Vec::new(),
            4..8 => 1,
            _ => 2,
        };
        let fingerprint = pairs(wanted);
        let mut found: Vec<(usize, &Word)> = Vec::new();
        for word in &self.words {
            // One slip touches at most three pairs on either side.
            if (word.pairs ^ fingerprint).count_ones() as usize <= 6 * slips
                && word.text.len().abs_diff(wanted.len()) <= 2 * slips
                && let Some(distance) = distance(wanted, &word.text, slips)
                && (distance < 2 || word.text.chars().next() == wanted.chars().next())
            {
                found.push((distance, word));
            }
        }
        let closest = found.iter().map(|(distance, _)| *distance).min().unwrap_or(0);
        found.retain(|(distance, _)| *distance == closest);
        found.truncate(MOST);
        found.into_iter().map(|(_, word)| (&*word.text, word.term)).collect()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.words.iter().map(|word| size_of::<Word>() + word.text.len()).sum()
    }
}

fn pairs(word: &str) -> u64 {
    let mut bits = 0;
    let mut before = ' ';
    for letter in word.chars().chain([' ']) {
        let pair = u32::from(before).wrapping_mul(31).wrapping_add(u32::from(letter));
        bits |= 1 << (pair.wrapping_mul(2_654_435_769) >> 26);
        before = letter;
    }
    bits
}

/// Insertions, deletions, replacements and swaps of neighbours between two
/// words, or none when there are more than `most`.
fn distance(left: &str, right: &str, most: usize) -> Option<usize> {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for row in 1..=left.len() {
        let mut line = vec![row; right.len() + 1];
        for column in 1..=right.len() {
            let cost = usize::from(left[row - 1] != right[column - 1]);
            let swapped = 1 < row
                && 1 < column
                && left[row - 1] == right[column - 2]
                && left[row - 2] == right[column - 1];
            let swap = if swapped { before[column - 2] + 1 } else { usize::MAX };
            line[column] =
                (last[column] + 1).min(line[column - 1] + 1).min(last[column - 1] + cost).min(swap);
        }
        if line.iter().all(|edits| most < *edits) {
            return None;
        }
        before = std::mem::replace(&mut last, line);
    }
    last.last().copied().filter(|edits| *edits <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_of_every_kind_are_counted() {
        let cases = [
            ("serach", "search", 1),
            ("creat", "create", 1),
            ("fiile", "file", 1),
            ("fole", "file", 1),
        ];
        for (wrong, right, edits) in cases {
            assert_eq!(distance(wrong, right, 2), Some(edits), "{wrong}");
        }
        assert_eq!(distance("weather", "whether", 1), None);
    }
}
