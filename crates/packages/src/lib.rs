//! Parses the ways in which MCP servers are published into one form, the recipe.
//!
//! A server is named by its package ([`source`]), described by a [`server_json`]
//! document of the official [`registry`], or shipped as a [`bundle`]. Each becomes a
//! [`recipe::Recipe`]: how it is started or reached, and which inputs the operator has
//! to provide. [`run_package`] finds the package and its version in a command line.
//!
//! All input is untrusted. Names that a package runner would take for something else
//! are refused, and no text can become a reference to a secret: what is written into
//! a configuration is [escaped](recipe::escape_placeholders). This crate does not read
//! files or use the network.

pub mod source;

pub mod bundle;
pub mod registry;
pub mod server_json;

pub mod recipe;
pub mod run_package;

mod package;
mod template;
mod version;
