//! The commands that manage servers: search, add, enable, disable, update and remove.
//!
//! A published server is started only when a person agreed to the command, and its tools
//! reach a model only when a person has seen them: until then it is in quarantine.

pub(crate) mod add;
pub(crate) mod remove;
pub(crate) mod review;
pub(crate) mod search;
pub(crate) mod switch;
pub(crate) mod update;

pub(in crate::commands) mod config_file;
mod known_server;
mod new_secrets;
mod newest;
mod registry;
mod unpack;
