//! The interface to the other replicas of gatelet: a shared record of sessions, and
//! messages to a certain replica.

use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;
use tool::Json;

/// The other replicas, and the session records that all share.
#[async_trait]
pub trait Replicas: Debug + Send + Sync {
    /// Returns the unique tag of this replica. Not zero.
    fn tag(&self) -> u32;

    /// Returns the record of a session.
    async fn read_session(&self, id: &str) -> Result<Option<String>, RecordError>;

    /// Replaces the record of a session, if it is still `expected` (`None`: there is none),
    /// for the time `life`.
    async fn swap_session(
        &self,
        id: &str,
        expected: Option<String>,
        next: String,
        life: Duration,
    ) -> Result<(), RecordError>;

    /// Extends the record of a session that is in use.
    async fn touch_session(&self, id: &str, life: Duration);

    /// Sends a message to the replica with this tag, and waits for its answer.
    async fn ask(&self, replica: u32, message: Json) -> Result<Json, ReplicaError>;
}

/// Why the record of a session was not read or replaced. One variant per remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// Another replica was quicker: read it again.
    #[error("another replica changed it")]
    Conflict,
    #[error("{0}")]
    Unavailable(String),
}

/// Why another replica did not answer. One variant per remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplicaError {
    /// The replica is gone; it did not get the message.
    #[error("the replica that holds it is gone")]
    Gone,
    /// The replica runs another release or another configuration; it did nothing.
    #[error("the replica that holds it is of another release and does not know the request")]
    Refused,
    #[error("the replica that holds it did not answer; it may have run all the same")]
    NoAnswer,
}
