//! How a store is used, what it may hold, and why it cannot be used.

use crate::address::Address;

/// How a store is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    pub address: Address,
    /// What every key begins with, so that several gates may share a server.
    pub prefix: String,
    pub eviction: Eviction,
    pub limits: Limits,
}

/// Whether a server that may drop keys to make room is used at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eviction {
    /// It would forget tokens, leases and limits without a word.
    Refuse,
    /// The operator knows.
    Accept,
}

/// What a store may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest document, value, line or message.
    pub value_bytes: u64,
    /// The longest blob.
    pub blob_bytes: u64,
    /// About how many lines a log keeps.
    pub n_lines: usize,
    /// How many messages may wait in a mailbox; the oldest go first.
    pub n_messages: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        let (value_bytes, blob_bytes) = (16 << 20, 16 << 20);
        Limits { value_bytes, blob_bytes, n_lines: 10_000, n_messages: 10_000 }
    }
}

/// Why a store cannot be used. One variant per remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// It may answer later, and is asked again then.
    #[error("the store does not answer: {0}")]
    Away(String),
    /// Another server or another setting of it is needed.
    #[error("{0}")]
    Unfit(String),
}
