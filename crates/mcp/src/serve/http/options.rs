//! The options of serving over HTTP.

use std::sync::Arc;
use std::time::Duration;

use super::answer_memory::AnswerMemory;
use super::fair_memory::FairMemory;
use super::hosts::Hosts;
use super::replicas::Replicas;
use super::sessions::Limits as SessionLimits;
use crate::serve::parked;
use crate::serve::trace::Tracing;

/// The limits of an endpoint, and its allowed hosts.
#[derive(Clone, Debug)]
pub struct Options {
    pub hosts: Hosts,
    /// The largest request body, in bytes.
    pub body: usize,
    /// How long receiving a request body may take.
    pub body_time: Duration,
    /// The largest answer, in bytes.
    pub answer: usize,
    /// The memory of all long answers that are being sent.
    pub memory: AnswerMemory,
    /// The memory of all long requests that are being received and answered.
    pub request_memory: FairMemory,
    pub sessions: SessionLimits,
    pub parked: parked::Limits,
    /// The interval of keep-alive comments on an idle stream.
    pub keep_alive: Duration,
    /// After this time without an answer, a request in a session gets an event stream, so
    /// that proxies keep the connection and the client can resume it.
    pub stream_after: Duration,
    /// The reconnect pause that clients are told.
    pub retry: Duration,
    /// Whether requests carry trace data.
    pub tracing: Tracing,
    /// The other replicas, if there are any.
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
            request_memory: FairMemory::default(),
            sessions: SessionLimits::default(),
            parked: parked::Limits::default(),
            keep_alive: Duration::from_secs(15),
            stream_after: Duration::from_secs(1),
            retry: Duration::from_secs(1),
            tracing: Tracing::Off,
            replicas: None,
        }
    }
}
