//! The layout of the hash table by which tokens of the vocabulary are found.
//!
//! Open addressing with linear probing. An empty slot is zero. Otherwise its lower bits
//! hold a token's rank plus one, and its upper bits are those of the token's hash, by
//! which most other tokens are excluded without comparing bytes.

pub(crate) const N_SLOTS: usize = 1 << 18;

const RANK: u32 = (1 << 17) - 1;

/// One step of a lookup: the slot to try, and the hash bits that it must have.
#[derive(Clone, Copy)]
pub(crate) struct Probe {
    pub(crate) slot: usize,
    mark: u32,
}

impl Probe {
    pub(crate) fn of_token(token: &[u8]) -> Probe {
        let hash = hash(token);
        Probe { slot: hash as usize % N_SLOTS, mark: (hash >> 32) as u32 & !RANK }
    }

    /// The probe after this one, where this slot holds another token.
    pub(crate) fn next(self) -> Probe {
        Probe { slot: (self.slot + 1) % N_SLOTS, ..self }
    }

    /// Returns what the slot of the token with this rank holds.
    pub(crate) fn encode(self, rank: u32) -> u32 {
        self.mark | (rank + 1)
    }

    /// The rank in a slot, and whether its hash bits match; `None` where the slot is
    /// empty.
    pub(crate) fn decode(self, slot: u32) -> Option<(u32, bool)> {
        Some(((slot & RANK).checked_sub(1)?, slot & !RANK == self.mark))
    }
}

/// A multiplicative hash of eight bytes at a time. A shorter rest is read as two words
/// that overlap, which is fine because the length is part of the hash.
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
