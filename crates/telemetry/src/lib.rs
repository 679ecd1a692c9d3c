//! What the records of calls add up to.
//!
//! [`figures`] are the last hour in memory, for the console and `gatelet top`.
//! They come from the records and events that the gateway hands to a
//! [`gateway::record::Sink`], and [`fanout`] hands those to several sinks. What
//! costs time, such as counting tokens, happens on a thread of its own, never
//! in a call.
//!
//! This crate knows what a record is and nothing of how a call travels. It knows
//! no configuration file, and the time is a parameter.

pub mod fanout;
pub mod figures;

mod labels;
mod latency;
mod queue;
