//! The HTTP edge of gatelet: connections, TLS, authentication, routes and manifests.
//!
//! [`listen`] accepts connections, plain or over [`tls`], within limits, also that on
//! open files ([`descriptors`]). A [`site`] answers their requests: it authenticates
//! the caller ([`identity`]), then passes the request to an MCP endpoint. [`manifest`]
//! is the public description of a CaSH server, and its signature; [`aggregate`] decides
//! which manifests of other servers are trusted; [`card`] is MCP's server card.
//!
//! This crate knows no config file, no database and no upstream connection: keys,
//! tokens and manifests are passed in as values, and the time as a number.

pub mod card;
pub mod descriptors;
pub mod listen;
pub mod tls;

pub mod site;

pub mod identity;
pub mod manifest;

pub mod aggregate;
