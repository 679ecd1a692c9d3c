//! The native CMS toolset.
//!
//! [`open`] turns a database of Evolution CMS into a [`tool::Provider`] with
//! the fourteen read-only tools of the eMCP contract, version 1.0. A call
//! travels from the `arguments`, which are checked before anything else
//! happens, to a typed `query`, to `sql` for one of three engines, and back as
//! JSON.
//!
//! This crate knows no gateway, and of MCP only the words that the contract
//! names: [`http`] is the contract's own edge, and looks at methods and at the
//! tool that a message names. Values are bound, names come from fixed lists, and
//! what is sensitive is in none of them.

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
