//! Statistics, metrics and traces of calls.
//!
//! [`figures`] are statistics of the last hour, for the console and `gatelet top`;
//! [`metrics`] count everything since the start, for Prometheus. Both come from the
//! records and events that the gateway passes to a [`gateway::record::Sink`];
//! [`fanout`] passes those to several sinks. [`traces`] creates spans around requests
//! of clients and requests to upstreams, and [`otlp`] sends them to a collector.
//! Expensive work, such as counting tokens, runs on a thread of its own, never in a call.
//!
//! This crate knows what a record is, but not how a call is processed. It does not know
//! the configuration file, and time is a parameter.

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
