//! The servers behind gatelet, by command: find, add, look at, switch off and
//! on, update, remove.
//!
//! A server from outside is started only when somebody agreed to the command,
//! and its tools reach a model only when somebody has seen them: until then it
//! is in quarantine.

pub(crate) mod add;
pub(crate) mod remove;
pub(crate) mod review;
pub(crate) mod search;
pub(crate) mod switch;
pub(crate) mod update;

pub(in crate::commands) mod config_file;
mod kept_secrets;
mod known_server;
mod newest;
mod registry;
mod unpack;
