//! Serves any provider over MCP.
//!
//! The inverse of [`connect`](crate::connect): the provider that a
//! [`tool::ProviderSource`] picks for a client is served over a pipe ([`stdio`])
//! or over HTTP ([`http`]), to clients of every revision at once. Where provider and client are of different
//! eras, the difference is bridged here: questions to the client become
//! `input_required` results and the other way round, results gain or lose the
//! members that only one era knows.
//!
//! A session keeps little and is gone when it ends. Which provider a visitor
//! sees, and what the visitor may do there, is not known here.

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
