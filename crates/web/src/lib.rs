//! The HTTP edge: identity of callers, manifest, limits, TLS, mounted servers.
//!
//! A [`listen`]er takes connections, plain or over [`tls`], within limits, of
//! which the system's on open files is one ([`descriptors`]). A [`site`] answers their requests: it knows the caller first, then hands the
//! request to an MCP endpoint. [`identity`] turns a request's credentials into
//! a [`tool::Identity`]; [`manifest`] is the public card of a server, and how
//! it is signed; [`aggregate`] decides which cards of others are believed.
//!
//! This crate knows no config file, no database and no upstream connection:
//! keys, tokens and manifests come in as values, and the time as a number.

pub mod card;
pub mod descriptors;
pub mod listen;
pub mod tls;

pub mod site;

pub mod identity;
pub mod manifest;

pub mod aggregate;
