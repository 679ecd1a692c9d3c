//! The protocol on the wire, both directions, byte-faithful.
//!
//! [`connect`] makes a [`tool::Provider`] of a server somewhere else, and its
//! inverse [`serve`] makes a server of any provider. Both speak JSON-RPC through
//! [`message`] (one message, parsed once, payloads kept as text) and, on a pipe,
//! through [`peer`] (one side of a conversation). Servers that want OAuth are logged
//! in to and kept logged in by [`oauth`].
//!
//! This crate knows the protocol and nothing else: no catalog, no policy, no
//! configuration.

pub mod connect;
pub mod serve;

pub mod oauth;

pub mod message;
pub mod peer;

mod aside;
pub mod http_client;
mod level;
pub mod memory;
pub mod revision;
