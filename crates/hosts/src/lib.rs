//! Writes a server into the configuration of the programs that use MCP, their
//! hosts, and takes it out again.
//!
//! [`HOSTS`] has one row for each host: how it is recognised, which file it
//! reads and how an entry looks there. [`plan`] works out which files change, as
//! values; [`preview`] tells of a change without anybody's secrets; [`apply`]
//! writes all files or none and keeps what was there before, and [`undo`] plans
//! the way back. This crate knows no MCP and no gateway: what the entry leads
//! to, and which entries lead there already, is told by whoever asks.

pub mod environment;
pub mod machine;

pub mod host;
mod table;

pub mod change;
pub mod plan;
pub mod preview;

pub mod apply;
pub mod history;
pub mod undo;

pub use environment::{Environment, Platform};
pub use host::{Host, Reach};
pub use machine::{Disk, Machine};
pub use table::HOSTS;
