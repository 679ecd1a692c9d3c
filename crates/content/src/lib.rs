//! Read-only tools for the content of an Evolution CMS site, straight from its database.
//!
//! [`open`] turns the database into a [`tool::Provider`] with the fourteen tools of
//! the eMCP contract, version 1.0. A call is parsed by `arguments` into a typed
//! `query`, rendered by `sql` for one of three engines, run by `database`, and
//! returned as JSON. [`http`] is the HTTP interface that the contract also defines.
//!
//! Callers' values are always bound to statements; names of tables and columns come
//! from fixed lists without sensitive columns. This crate knows no gateway, and of
//! MCP only the methods and members that the contract names.

mod config;

mod arguments;
mod tools;

mod contract;
mod fields;
mod indexes;
mod models;
mod number_prefix;
mod query;
mod site;
mod sql;
mod statement;

mod database;
mod probe;

mod pattern;
mod provider;
mod result_json;
mod viewer;

mod explain;
pub mod generate;
mod missing_indexes;

pub mod http;

pub use config::{Config, ErrorForm, Limits, Overrides, Ownership, Pool, Source, Tree};
pub use contract::{PLATFORM, TOOLSET_VERSION};
pub use explain::{ExplainError, PreparedQuery};
pub use models::SENSITIVE;
pub use provider::{Content, OpenError, listing, open};
pub use viewer::OWNER_ROLE;
