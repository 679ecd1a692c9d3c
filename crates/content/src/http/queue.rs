//! The configuration of the queue of dispatched requests.

/// Whether dispatched requests are queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// Queued in the state file, to be run by [`Edge::work`](super::Edge::work).
    Durable,
    /// Not queued.
    Off(Failover),
}

/// What happens to a dispatched request without a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failover {
    /// The request is answered at once.
    Sync,
    /// The request is refused.
    Fail,
}
