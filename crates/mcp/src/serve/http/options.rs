//! The limits of serving over HTTP.

use std::sync::Arc;
use std::time::Duration;

use super::answers::AnswerMemory;
use super::hosts::Hosts;
use super::replicas::Replicas;
use super::sessions::Limits as SessionLimits;
use crate::serve::parked;
use crate::serve::trace::Tracing;

/// What serving over HTTP may cost, and whom it serves.
#[derive(Clone, Debug)]
pub struct Options {
    pub hosts: Hosts,
    /// The largest body that is read, in bytes.
    pub body: usize,
    /// How long a body may take to come.
    pub body_time: Duration,
    /// The largest answer that is given, in bytes.
    pub answer: usize,
    /// What long answers may take together until their clients have them.
    pub memory: AnswerMemory,
    pub sessions: SessionLimits,
    pub parked: parked::Limits,
    /// How often a quiet stream shows that it lives.
    pub alive: Duration,
    /// How long an answer in a session may take before its stream opens, so
    /// that proxies see life and the client can come back for it.
    pub stream_after: Duration,
    /// When a client whose stream broke should come back.
    pub retry: Duration,
    /// Whether questions carry what is known for their trace.
    pub tracing: Tracing,
    /// The other replicas, where there are some.
    pub replicas: Option<Arc<dyn Replicas>>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            hosts: Hosts::Loopback,
            body: 16 << 20,
            body_time: Duration::from_secs(60),
            answer: 64 << 20,
            memory: AnswerMemory::default(),
            sessions: SessionLimits::default(),
            parked: parked::Limits::default(),
            alive: Duration::from_secs(15),
            stream_after: Duration::from_secs(1),
            retry: Duration::from_secs(1),
            tracing: Tracing::Off,
            replicas: None,
        }
    }
}
