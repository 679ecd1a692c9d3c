//! Where dispatched requests wait.

/// Where dispatched requests go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// Into the state file, to be run by [`Edge::work`](super::Edge::work).
    Durable,
    Off(Failover),
}

/// What happens without a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failover {
    /// The request is run at once.
    Sync,
    /// The request is refused.
    Fail,
}
