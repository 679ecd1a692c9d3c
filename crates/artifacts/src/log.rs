//! The log of an artifact: bytes that are added to what is stored, by one writer at a
//! time.
//!
//! A store gives the log to one writer and refuses all others, on every replica. A
//! writer that lost the log without noticing, because its machine stood still, finds
//! out when it writes: nothing of it is stored then.

use async_trait::async_trait;

/// The log of an artifact, open for writing. Dropping it lets others open it.
#[async_trait]
pub trait Log: Send + Sync {
    /// Adds bytes, which are stored by the next [`Log::flush`]. Bytes of a flush that
    /// failed or was dropped are stored by the next one, once.
    fn add(&self, bytes: &[u8]);

    /// Stores what was added.
    async fn flush(&self) -> Result<(), LogError>;

    /// Returns a number that no other writer of this log has.
    fn fence(&self) -> u64;
}

/// A log that was opened, and what it has.
pub struct OpenLog {
    pub log: Box<dyn Log>,
    pub bytes: Vec<u8>,
}

/// Why a log cannot be opened or written. One variant per remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// Somebody else writes it, or has written since.
    #[error("somebody else has it open")]
    Taken,
    /// Its store failed over or restarted since, so its end may be lost.
    #[error("the store that keeps it failed over or restarted, so its end may be lost")]
    Void,
    /// The artifact with its log would be larger than what an owner may store.
    #[error("it has over {limit} bytes, and no more are stored for one caller")]
    TooLarge { limit: usize },
    /// It cannot be written or read now.
    #[error("{reason}")]
    Unavailable { reason: String },
}

impl LogError {
    pub fn unavailable(reason: impl std::fmt::Display) -> LogError {
        LogError::Unavailable { reason: reason.to_string() }
    }
}
