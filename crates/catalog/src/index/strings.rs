//! A compact list of short strings, numbered in order of insertion.
//!
//! All strings are in one text, found by a hash table of numbers: a word costs its
//! letters and a dozen bytes, and a lookup allocates nothing. The hash is keyed, so that
//! no listing can cause collisions.

use std::hash::{BuildHasher, RandomState};

/// A set of strings with numbers.
#[derive(Clone, Debug)]
pub(crate) struct Strings {
    text: String,
    /// By number: the end of the string; it starts at the end of the one before.
    ends: Vec<u32>,
    /// Numbers plus one, by hash; 0 is a free slot. Its length is a power of two.
    slots: Vec<u32>,
    hasher: RandomState,
}

impl Strings {
    pub(crate) fn new() -> Strings {
        Strings {
            text: String::new(),
            ends: Vec::new(),
            slots: vec![0; 64],
            hasher: RandomState::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn get(&self, number: u32) -> &str {
        let at = number as usize;
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start as usize..self.ends[at] as usize]
    }

    pub(crate) fn find(&self, wanted: &str) -> Option<u32> {
        self.seek(wanted).ok()
    }

    /// The number of a string, and whether it is new.
    pub(crate) fn intern(&mut self, string: &str) -> (u32, bool) {
        match self.seek(string) {
            Ok(number) => (number, false),
            Err(slot) => {
                let number = u32::try_from(self.ends.len()).expect("fewer than 2^32 strings");
                self.text.push_str(string);
                self.ends.push(u32::try_from(self.text.len()).expect("less than 4 GB of words"));
                self.slots[slot] = number + 1;
                if self.slots.len() < 2 * self.ends.len() {
                    self.grow();
                }
                (number, true)
            }
        }
    }

    pub(crate) fn shrink(&mut self) {
        self.text.shrink_to_fit();
        self.ends.shrink_to_fit();
    }

    pub(crate) fn bytes(&self) -> usize {
        self.text.capacity() + 4 * (self.ends.capacity() + self.slots.capacity())
    }

    /// The number of a string, or the free slot where it belongs.
    fn seek(&self, wanted: &str) -> Result<u32, usize> {
        let mask = self.slots.len() - 1;
        let mut slot = self.hash(wanted) & mask;
        while let Some(number) = self.slots[slot].checked_sub(1) {
            if self.get(number) == wanted {
                return Ok(number);
            }
            slot = (slot + 1) & mask;
        }
        Err(slot)
    }

    fn hash(&self, string: &str) -> usize {
        self.hasher.hash_one(string) as usize
    }

    fn grow(&mut self) {
        let mask = 2 * self.slots.len() - 1;
        let mut slots = vec![0; mask + 1];
        for number in 0..self.ends.len() as u32 {
            let mut slot = self.hash(self.get(number)) & mask;
            while slots[slot] != 0 {
                slot = (slot + 1) & mask;
            }
            slots[slot] = number + 1;
        }
        self.slots = slots;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_string_keeps_its_number_through_growth() {
        let mut strings = Strings::new();
        let word = |n: u32| format!("word{}", n * n);
        for n in 0..10_000 {
            assert_eq!(strings.intern(&word(n)), (n, true));
        }
        for n in 0..10_000 {
            assert_eq!(strings.intern(&word(n)), (n, false));
            assert_eq!((strings.find(&word(n)), strings.get(n)), (Some(n), &*word(n)));
        }
        assert_eq!((strings.find("word"), strings.find(""), strings.len()), (None, None, 10_000));
    }
}
