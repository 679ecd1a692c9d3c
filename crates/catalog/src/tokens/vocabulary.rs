//! The vocabulary of `cl100k_base`, compiled into the binary.
//!
//! Laid out by `examples/pack_tokens.rs`. A library would read the published
//! list into a map of its own at the first count: 50 ms and 10 MB, for 2 MB
//! that never change.

use super::slots::Probe;
use crate::packed::read_u32;

/// No token has more bytes.
pub(super) const LONGEST: usize = 128;

static BYTES: &[u8] = include_bytes!("../../assets/tokens.bytes");
static STARTS: &[u8] = include_bytes!("../../assets/tokens.starts");
static SLOTS: &[u8] = include_bytes!("../../assets/tokens.slots");

/// The number of a token, which is also its rank: lower ones are joined first.
pub(super) fn rank(token: &[u8]) -> Option<u32> {
    if token.len() > LONGEST {
        return None;
    }
    let mut probe = Probe::of_token(token);
    loop {
        let (rank, marked) = probe.read(read_u32(SLOTS, probe.slot))?;
        if marked && bytes(rank) == token {
            return Some(rank);
        }
        probe = probe.next();
    }
}

fn bytes(rank: u32) -> &'static [u8] {
    let at = rank as usize;
    &BYTES[read_u32(STARTS, at) as usize..read_u32(STARTS, at + 1) as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_token_is_the_published_one_and_found_by_its_bytes() {
        let published = tiktoken::get_encoding("cl100k_base").unwrap();
        let n_tokens = STARTS.len() / 4 - 1;
        assert_eq!(n_tokens, 100_256);
        for at in 0..u32::try_from(n_tokens).unwrap() {
            assert_eq!(bytes(at), published.decode(&[at]), "{at}");
            assert_eq!(rank(bytes(at)), Some(at));
        }
    }

    #[test]
    fn what_is_no_token_is_not_found() {
        for text in ["", "no such token", "<|endoftext|>", &" ".repeat(LONGEST + 1)] {
            assert_eq!(rank(text.as_bytes()), None, "{text}");
        }
    }
}
