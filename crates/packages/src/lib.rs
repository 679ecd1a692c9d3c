//! How MCP servers are published, read into one form.
//!
//! A server is named by its package ([`source`]), described by a
//! [`server_json`] document of the official [`registry`], or comes as a
//! [`bundle`] with everything in it. Each becomes a [`recipe::Recipe`]: how it
//! is started or reached, and what the operator has to decide first. A
//! [`run_package`] is found again in a command line, with its newest version.
//!
//! Everything here was written by strangers. Names that would mean something
//! else to a package runner are refused, and no text of theirs becomes a
//! reference to a secret: what is written into a configuration is
//! [quoted](recipe::quoted). This crate opens no file and asks no network.

pub mod source;

pub mod bundle;
pub mod registry;
pub mod server_json;

pub mod recipe;
pub mod run_package;

mod package;
mod template;
mod version;
