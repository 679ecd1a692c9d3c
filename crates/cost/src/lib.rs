//! Computes what a conversation with tools costs, in tokens and relative prices.
//!
//! A [`Conversation`] is a list of turns. With every request a host sends the tool
//! definitions and everything before once more; [`Totals`] adds that up, and [`Prices`]
//! weighs it. A [`HostModel`] says which definitions a host sends, and a [`Task`]
//! estimates a conversation for a catalogue of tools.
//!
//! This crate does not count the tokens of texts and does not know MCP.

mod conversation;
mod estimate;
mod host_model;

pub use conversation::{Conversation, Prices, Totals, Turn};
pub use estimate::{Catalogue, Gateway, Task, ToolCost};
pub use host_model::{HOST_MODELS, HostModel, Listed, Loading, SERVER_DESCRIPTION};
