//! Serves any provider over MCP.
//!
//! The inverse of [`connect`](crate::connect): serves the provider that a
//! [`tool::ProviderSource`] picks for a client over a pipe ([`stdio`]) or over HTTP
//! ([`http`]), to clients of every revision at once. If provider and client speak
//! different kinds of revisions, the difference is bridged here: questions to the client
//! become `input_required` results and the other way round, and results gain or lose the
//! members that only modern revisions have.
//!
//! A session holds little state. This module does not know which provider a client sees
//! and what the client may do there.

pub mod http;
pub mod stdio;

mod caller;
mod modern;
mod server;

mod channel;
mod exchange;
mod input_required;
mod listen;
mod log_levels;
pub mod parked;
mod roots;
mod session;
mod subscriptions;
pub mod trace;

mod adapt;
mod discovery;
