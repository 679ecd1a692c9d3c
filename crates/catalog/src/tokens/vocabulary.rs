//! The vocabulary of `cl100k_base`, compiled into the binary.
//!
//! `examples/pack_tokens.rs` writes the bytes of the tokens by rank, and how many each has.
//! Where they start and the hash table are computed at the first count, which takes
//! milliseconds and 1.4 MB; in the binary they would be larger than the tokens. Parsing the
//! published list into a map would cost 50 ms and 10 MB.

use std::sync::LazyLock;

use super::slots::{N_SLOTS, Probe};

/// The most bytes of a token.
pub(super) const LONGEST: usize = 128;

static BYTES: &[u8] = include_bytes!("../../assets/tokens.bytes");
static LENGTHS: &[u8] = include_bytes!("../../assets/tokens.lengths");

static TABLES: LazyLock<Tables> = LazyLock::new(Tables::compute);

/// Tables computed from the vocabulary, to look tokens up.
struct Tables {
    /// Where each token starts in `BYTES`, and where the last one ends.
    starts: Box<[u32]>,
    /// The hash table of the tokens, in the layout of [`super::slots`].
    slots: Box<[u32]>,
}

impl Tables {
    fn compute() -> Tables {
        let mut starts = Vec::with_capacity(LENGTHS.len() + 1);
        let mut slots = vec![0; N_SLOTS].into_boxed_slice();
        let mut start = 0;
        for (rank, length) in (0..).zip(LENGTHS) {
            let end = start + usize::from(*length);
            let mut probe = Probe::of_token(&BYTES[start..end]);
            while slots[probe.slot] != 0 {
                probe = probe.next();
            }
            slots[probe.slot] = probe.encode(rank);
            starts.push(start as u32);
            start = end;
        }
        starts.push(start as u32);
        Tables { starts: starts.into(), slots }
    }

    fn bytes(&self, rank: u32) -> &'static [u8] {
        let at = rank as usize;
        &BYTES[self.starts[at] as usize..self.starts[at + 1] as usize]
    }
}

/// The number of a token, which is also its rank: lower ones are merged first.
pub(super) fn rank(token: &[u8]) -> Option<u32> {
    if token.len() > LONGEST {
        return None;
    }
    let tables = &*TABLES;
    let mut probe = Probe::of_token(token);
    loop {
        let (rank, marked) = probe.decode(tables.slots[probe.slot])?;
        if marked && tables.bytes(rank) == token {
            return Some(rank);
        }
        probe = probe.next();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_token_is_the_published_one_and_found_by_its_bytes() {
        let published = tiktoken::get_encoding("cl100k_base").unwrap();
        let n_tokens = LENGTHS.len();
        assert_eq!(n_tokens, 100_256);
        for at in 0..u32::try_from(n_tokens).unwrap() {
            assert_eq!(TABLES.bytes(at), published.decode(&[at]), "{at}");
            assert_eq!(rank(TABLES.bytes(at)), Some(at));
        }
    }

    #[test]
    fn what_is_no_token_is_not_found() {
        for text in ["", "no such token", "<|endoftext|>", &" ".repeat(LONGEST + 1)] {
            assert_eq!(rank(text.as_bytes()), None, "{text}");
        }
    }
}
