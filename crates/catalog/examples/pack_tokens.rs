//! Packs the vocabulary of `cl100k_base` into the files that counting compiles in.
//!
//! `pack_tokens ASSETS_DIR` writes, all little endian:
//!
//! - `tokens.bytes`: the tokens, one after the other, by rank
//! - `tokens.starts`: a u32 per token and one more, where each starts in there
//! - `tokens.slots`: a hash of the tokens, one u32 a slot

#![expect(clippy::disallowed_methods, reason = "a program of its own, with files and a clock")]

#[path = "../src/tokens/slots.rs"]
#[expect(dead_code, reason = "this side only writes")]
mod slots;

use std::path::PathBuf;

use slots::{N_SLOTS, Probe};

const N_TOKENS: u32 = 100_256;

fn main() -> std::io::Result<()> {
    let assets = PathBuf::from(std::env::args().nth(1).expect("usage: pack_tokens ASSETS_DIR"));
    let published = tiktoken::get_encoding("cl100k_base").expect("part of the library");
    let (mut bytes, mut starts, mut slots) = (Vec::new(), vec![0], vec![0; N_SLOTS]);
    for rank in 0..N_TOKENS {
        let token = published.decode(&[rank]);
        let mut probe = Probe::of_token(&token);
        while slots[probe.slot] != 0 {
            probe = probe.next();
        }
        slots[probe.slot] = probe.mark | (rank + 1);
        bytes.extend(token);
        starts.push(u32::try_from(bytes.len()).expect("less than a megabyte"));
    }
    let numbers = |numbers: Vec<u32>| numbers.into_iter().flat_map(u32::to_le_bytes).collect();
    let files: [(&str, Vec<u8>); 3] = [
        ("tokens.bytes", bytes),
        ("tokens.starts", numbers(starts)),
        ("tokens.slots", numbers(slots)),
    ];
    files.into_iter().try_for_each(|(name, content)| std::fs::write(assets.join(name), content))
}
