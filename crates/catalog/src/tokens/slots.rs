//! How the hash of the vocabulary is laid out, for counting, which reads it, and
//! for `examples/pack_tokens.rs`, which writes it.
//!
//! Open addressing with linear probing. A slot holds a token's rank and one in
//! its lower bits, and the upper bits of the token's hash, by which most tokens
//! that are not meant are told without a look at their bytes; or zero.

pub(crate) const N_SLOTS: usize = 1 << 18;

const RANK: u32 = (1 << 17) - 1;

/// Where a token belongs, and how its slot is marked.
#[derive(Clone, Copy)]
pub(crate) struct Probe {
    pub(crate) slot: usize,
    pub(crate) mark: u32,
}

impl Probe {
    pub(crate) fn of_token(token: &[u8]) -> Probe {
        let hash = hash(token);
        Probe { slot: hash as usize % N_SLOTS, mark: (hash >> 32) as u32 & !RANK }
    }

    /// The next probe, where this one is taken by another.
    pub(crate) fn next(self) -> Probe {
        Probe { slot: (self.slot + 1) % N_SLOTS, ..self }
    }

    /// The rank that a slot holds, and whether it may be the one that is meant;
    /// `None` where the slot is empty.
    pub(crate) fn read(self, slot: u32) -> Option<(u32, bool)> {
        Some(((slot & RANK).checked_sub(1)?, slot & !RANK == self.mark))
    }
}

/// Multiplies eight bytes at a time. Fewer are read as two words that overlap,
/// which is no loss: the length is part of the hash.
fn hash(token: &[u8]) -> u64 {
    token.chunks(8).fold(token.len() as u64, |value, bytes| {
        let word = match (bytes.first_chunk(), bytes.last_chunk()) {
            (Some(first), Some(last)) => {
                u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << 32
            }
            _ => bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)),
        };
        let value = (value ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        value ^ (value >> 32)
    })
}
