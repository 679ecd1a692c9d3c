//! What the records of calls add up to.
//!
//! [`figures`] are the last hour in memory, for the console and `gatelet top`, and
//! [`metrics`] everything since the start, for Prometheus. Both come from the
//! records and events that the gateway hands to a [`gateway::record::Sink`];
//! [`fanout`] hands those to several sinks. [`traces`] are spans around what is
//! asked of us and of upstreams, and [`otlp`] sends them to a collector. What
//! costs time, such as counting tokens, happens on a thread of its own, never in
//! a call.
//!
//! This crate knows what a record is and nothing of how a call travels. It knows
//! no configuration file, and the time is a parameter.

pub mod definitions;
pub mod fanout;
pub mod figures;
pub mod metrics;

pub mod otlp;
pub mod traces;

mod labels;
mod latency;
mod queue;
mod semantics;

#[cfg(test)]
mod fixture;
