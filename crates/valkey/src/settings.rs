//! The settings of a Valkey store, its limits, and why it cannot be used.

use crate::address::Address;

/// The settings of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    pub address: Address,
    /// Begins every key, so that several gateways may share a server.
    pub prefix: String,
    pub eviction: Eviction,
    pub limits: Limits,
}

/// Whether a server may be used that drops keys when it is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eviction {
    /// No: it would silently lose tokens, leases and limits.
    Refuse,
    /// Yes, as the operator has configured.
    Accept,
}

/// The limits of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The maximum size of a document, value, line or message.
    pub value_bytes: u64,
    /// The maximum size of a blob.
    pub blob_bytes: u64,
    /// About the maximum number of lines in a log.
    pub n_lines: usize,
    /// The maximum number of messages in a mailbox; the oldest are dropped first.
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
    /// The server does not answer; it may later.
    #[error("the store does not answer: {0}")]
    Away(String),
    /// The server is too old or wrongly configured.
    #[error("{0}")]
    Unfit(String),
}
