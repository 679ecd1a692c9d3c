//! Packs the vocabulary of `cl100k_base` into the files that counting compiles in.
//!
//! `pack_tokens ASSETS_DIR` writes, all little endian:
//!
//! - `tokens.bytes`: the tokens, one after the other, by rank
//! - `tokens.lengths`: a byte per token, how many it has

#![expect(clippy::disallowed_methods, reason = "a program of its own, with files and a clock")]

use std::path::PathBuf;

const N_TOKENS: u32 = 100_256;

fn main() -> std::io::Result<()> {
    let assets = PathBuf::from(std::env::args().nth(1).expect("usage: pack_tokens ASSETS_DIR"));
    let published = tiktoken::get_encoding("cl100k_base").expect("part of the library");
    let tokens: Vec<Vec<u8>> = (0..N_TOKENS).map(|rank| published.decode(&[rank])).collect();
    let lengths: Result<Vec<u8>, _> = tokens.iter().map(|token| token.len().try_into()).collect();
    std::fs::write(assets.join("tokens.bytes"), tokens.concat())?;
    std::fs::write(assets.join("tokens.lengths"), lengths.expect("no token is that long"))
}
