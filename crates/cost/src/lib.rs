//! What a conversation with tools costs a model.
//!
//! A [`Conversation`] is a row of turns in tokens. With every turn a host sends
//! the definitions and everything that was said before once more; [`Totals`] adds
//! that up, and [`Prices`] weigh it. A [`HostModel`] says which definitions a host
//! sends, and a [`Task`] estimates the conversation that a catalogue makes of it.
//!
//! This crate only computes: it counts no tokens and knows no protocol.

mod conversation;
mod estimate;
mod host_model;

pub use conversation::{Conversation, Prices, Totals, Turn};
pub use estimate::{Catalogue, Gateway, Task, ToolCost};
pub use host_model::{HOST_MODELS, HostModel, Loading};
