//! The other replicas of a gate, as a server sees them: where sessions are noted,
//! and how a message reaches the replica that holds something.

use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;
use tool::Json;

/// The other replicas, and what all of them know of sessions.
#[async_trait]
pub trait Replicas: Debug + Send + Sync {
    /// What tells this replica from the others. Not zero.
    fn tag(&self) -> u32;

    /// Notes a session for a while. When that fails the session stays here.
    async fn note_session(&self, id: &str, note: String, life: Duration) -> Result<(), String>;

    async fn find_session(&self, id: &str) -> Option<String>;

    /// Keeps the note of a session that is used.
    async fn touch_session(&self, id: &str, life: Duration);

    async fn forget_session(&self, id: &str);

    /// Sends a message to another replica and waits for the answer, if there is to
    /// be one. `Err` says why there is none.
    async fn ask(&self, replica: u32, message: Json) -> Result<Json, NotCarried>;
}

/// Why another replica did not answer. One variant per remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotCarried {
    /// Nothing reached it.
    #[error("the replica that holds it is gone")]
    Gone,
    #[error("the replica that holds it did not answer; it may have run all the same")]
    NoAnswer,
}
