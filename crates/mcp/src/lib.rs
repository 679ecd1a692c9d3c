//! The MCP protocol on the wire, as client and as server, byte for byte.
//!
//! [`connect`] turns a remote server into a [`tool::Provider`], and its inverse
//! [`serve`] turns any provider into a server. Both speak JSON-RPC through
//! [`message`] (parses a message once and keeps its payloads as text) and, on a pipe,
//! through [`peer`] (one end of a JSON-RPC connection). [`oauth`] logs in to servers
//! that require OAuth and renews their tokens.
//!
//! This crate knows the protocol and nothing else: no catalog, no policy, no
//! configuration.

pub mod connect;
pub mod serve;

pub mod oauth;

pub mod message;
pub mod peer;

pub mod http_client;
mod level;
pub mod memory;
mod off_thread;
pub mod revision;
