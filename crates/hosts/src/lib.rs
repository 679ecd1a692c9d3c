//! Adds a server to the configuration files of hosts, which are the programs that use
//! MCP servers, and removes it again.
//!
//! [`HOSTS`] has one row for each host: how it is detected, which files it reads and
//! what an entry looks like. [`plan`] computes which files change; [`preview`] renders
//! a change without secrets; [`apply`] writes all files or none and keeps backups, and
//! [`undo`] plans the way back. This crate does not know MCP or the gateway: the caller
//! says how the server is reached, and which existing entries reach it.

pub mod environment;
pub mod machine;

pub mod host;
pub mod switched_off;
mod table;

pub mod change;
pub mod plan;
pub mod preview;
mod source_text;

pub mod apply;
pub mod history;
pub mod undo;

pub use environment::{Environment, Platform};
pub use host::{Host, Reach};
pub use machine::{Disk, Machine};
pub use table::HOSTS;
