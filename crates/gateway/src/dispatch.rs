//! Carries one call to its upstream and the answer back.
//!
//! Every surface comes through here, so that what holds for one holds for all:
//! the same checks in the same order, the same gate, one record per call. What
//! a surface is called and how it writes calls comes in as an [`Origin`].

mod keeping;
mod measured;
mod origin;
mod outcome;
mod pipeline;
mod viewing;

pub(crate) use origin::{Origin, REPEATED, repeated_arguments, unwritten};
pub(crate) use outcome::RenderReply;
pub use outcome::{CallError, Outcome};
pub(crate) use pipeline::Dispatcher;
