//! Corrects misspelt words of a query.
//!
//! A query word that no document has is probably misspelt. The closest words of the index
//! replace it, if it is long enough for one typo not to make another word of it.
//!
//! A typo leaves most pairs of neighbouring letters unchanged, so only words that share
//! one of the rarest pairs of the misspelt one are compared.

use super::strings::Strings;

/// The words of an index by pairs of neighbouring letters.
#[derive(Clone, Debug)]
pub(crate) struct TypoIndex {
    /// By bucket: the start of its words. One longer than there are buckets.
    starts: Vec<u32>,
    words: Vec<u32>,
    /// By number of a word: the set of its letters.
    letters: Vec<u32>,
}

/// The number of buckets for pairs; a power of two. Several pairs may share one.
const BUCKETS: usize = 1 << 10;
/// The most corrections of one word.
const MOST: usize = 3;
/// The lengths in bytes of words that can be corrections.
const SHORTEST: usize = 4;
const LONGEST: usize = 24;
/// The most pairs that one typo changes: swapped neighbours change three.
const PAIRS_PER_TYPO: usize = 3;

impl TypoIndex {
    /// Indexes the words that `counts` accepts.
    pub(crate) fn new(words: &Strings, counts: impl Fn(u32) -> bool) -> TypoIndex {
        let eligible = |number: &u32| {
            let word = words.get(*number);
            (SHORTEST..=LONGEST).contains(&word.len())
                && counts(*number)
                && word.chars().all(char::is_alphabetic)
        };
        let numbers: Vec<u32> = (0..words.len() as u32).filter(eligible).collect();
        let mut starts = vec![0; BUCKETS + 1];
        for number in &numbers {
            for bucket in buckets(words.get(*number)) {
                starts[bucket + 1] += 1;
            }
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut next = starts.clone();
        let mut listed = vec![0; starts[BUCKETS] as usize];
        for number in &numbers {
            for bucket in buckets(words.get(*number)) {
                listed[next[bucket] as usize] = *number;
                next[bucket] += 1;
            }
        }
        let letters = (0..words.len() as u32).map(|number| letters(words.get(number))).collect();
        TypoIndex { starts, words: listed, letters }
    }

    /// The closest of `words` to a misspelt one.
    pub(crate) fn nearest(&self, words: &Strings, wanted: &str) -> Vec<u32> {
        let typos = match wanted.chars().count() {
            0..SHORTEST => return Vec::new(),
            4..8 => 1,
            _ => 2,
        };
        let Some(letters) = Letters::new(wanted) else { return Vec::new() };
        let mut found: Vec<(u8, &str, u32)> = Vec::new();
        for number in self.candidates(wanted, typos) {
            let word = words.get(number);
            if word.len().abs_diff(wanted.len()) <= 2 * typos
                && let Some(distance) = distance(&letters, word, typos as u8)
                && (distance < 2 || word.chars().next() == wanted.chars().next())
            {
                found.push((distance, word, number));
            }
        }
        found.sort_unstable();
        let closest = found.first().map_or(0, |(distance, ..)| *distance);
        let same = found.into_iter().take_while(|(distance, ..)| *distance == closest);
        same.take(MOST).map(|(_, _, number)| number).collect()
    }

    pub(crate) fn bytes(&self) -> usize {
        4 * (self.starts.capacity() + self.words.capacity() + self.letters.capacity())
    }

    /// Every word within `typos` of the wanted one, and some others.
    fn candidates(&self, wanted: &str, typos: usize) -> Vec<u32> {
        let range = |bucket: usize| self.starts[bucket] as usize..self.starts[bucket + 1] as usize;
        let mut rarest: Vec<usize> = buckets(wanted).collect();
        let n_pairs = rarest.len();
        rarest.sort_unstable_by_key(|bucket| (range(*bucket).len(), *bucket));
        // A word so near shares all pairs but those that the typos changed.
        rarest.truncate((PAIRS_PER_TYPO * typos + 1).min(n_pairs));
        rarest.dedup();
        // One typo changes at most two letters: one is removed and one is added.
        let own = letters(wanted);
        let may_be = |number: &u32| {
            let others = own ^ self.letters[*number as usize];
            others.count_ones() as usize <= 2 * typos
        };
        let listed = rarest.into_iter().flat_map(|bucket| &self.words[range(bucket)]).copied();
        let mut candidates: Vec<u32> = listed.filter(may_be).collect();
        candidates.sort_unstable();
        candidates.dedup();
        candidates
    }
}

/// The letters of a word as a set; several may share a bit.
fn letters(word: &str) -> u32 {
    word.chars().fold(0, |bits, letter| bits | 1 << (u32::from(letter) % 32))
}

/// The bucket of every pair of neighbouring letters, with spaces around the word.
fn buckets(word: &str) -> impl Iterator<Item = usize> {
    let after = word.chars().chain([' ']);
    [' '].into_iter().chain(word.chars()).zip(after).map(|(before, letter)| {
        let pair = u32::from(before).wrapping_mul(31).wrapping_add(u32::from(letter));
        pair.wrapping_mul(2_654_435_769) as usize >> (32 - BUCKETS.ilog2())
    })
}

/// The letters of a word, and how many there are.
struct Letters([char; WIDTH], usize);

/// Room for the longest correction, and a little more.
const WIDTH: usize = LONGEST + 8;

impl Letters {
    /// `None` when the word is too long.
    fn new(word: &str) -> Option<Letters> {
        let mut letters = Letters([' '; WIDTH], 0);
        for letter in word.chars() {
            *letters.0.get_mut(letters.1)? = letter;
            letters.1 += 1;
        }
        Some(letters)
    }
}

/// The edit distance of two words (insertions, deletions, replacements and swaps of
/// neighbours); `None` when it is more than `most`.
fn distance(Letters(left, n_left): &Letters, right: &str, most: u8) -> Option<u8> {
    let Letters(right, n_right) = Letters::new(right)?;
    let mut before = [0_u8; WIDTH + 1];
    let mut last = [0_u8; WIDTH + 1];
    (0..).zip(&mut last).for_each(|(column, edits)| *edits = column);
    for row in 1..=*n_left {
        let mut line = [0_u8; WIDTH + 1];
        line[0] = row as u8;
        let mut least = line[0];
        for column in 1..=n_right {
            let cost = u8::from(left[row - 1] != right[column - 1]);
            let swapped = 1 < row
                && 1 < column
                && left[row - 1] == right[column - 2]
                && left[row - 2] == right[column - 1];
            let swap = if swapped { before[column - 2] + 1 } else { u8::MAX };
            line[column] =
                (last[column] + 1).min(line[column - 1] + 1).min(last[column - 1] + cost).min(swap);
            least = least.min(line[column]);
        }
        if most < least {
            return None;
        }
        (before, last) = (last, line);
    }
    Some(last[n_right]).filter(|edits| *edits <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typos(wrong: &str, right: &str, most: u8) -> Option<u8> {
        distance(&Letters::new(wrong).unwrap(), right, most)
    }

    #[test]
    fn slips_of_every_kind_are_counted() {
        let cases = [
            ("serach", "search", 1),
            ("creat", "create", 1),
            ("fiile", "file", 1),
            ("fole", "file", 1),
        ];
        for (wrong, right, edits) in cases {
            assert_eq!(typos(wrong, right, 2), Some(edits), "{wrong}");
        }
        assert_eq!(typos("weather", "whether", 1), None);
        assert!(Letters::new(&"x".repeat(100)).is_none());
    }

    /// Whatever one or two slips make of a word, it is found again.
    #[test]
    fn no_near_word_is_overlooked() {
        let all = ["search", "calendar", "repository", "file", "message", "größe", "searches"];
        let mut words = Strings::new();
        all.iter().for_each(|word| _ = words.intern(word));
        let pairs = TypoIndex::new(&words, |_| true);
        for word in all {
            for wrong in slipped(word) {
                if wrong.chars().count() < SHORTEST || all.contains(&&*wrong) {
                    continue;
                }
                let near = pairs.nearest(&words, &wrong);
                let best = near.first().map(|number| typos(&wrong, words.get(*number), 2));
                let linear = all.iter().filter_map(|other| typos(&wrong, other, 1)).min();
                assert_eq!(best.flatten(), linear.map(|_| 1), "{wrong}: {near:?}");
            }
        }
    }

    fn slipped(word: &str) -> Vec<String> {
        let letters: Vec<char> = word.chars().collect();
        let mut made = Vec::new();
        for at in 0..letters.len() {
            let mut dropped = letters.clone();
            dropped.remove(at);
            let (mut doubled, mut changed) = (letters.clone(), letters.clone());
            doubled.insert(at, 'x');
            changed[at] = 'q';
            made.extend([dropped, doubled, changed]);
            if at + 1 < letters.len() {
                let mut swapped = letters.clone();
                swapped.swap(at, at + 1);
                made.push(swapped);
            }
        }
        made.into_iter().map(|letters| letters.into_iter().collect()).collect()
    }
}
