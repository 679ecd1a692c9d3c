//! Spans of questions: one where we answer, and inside it one for every time that
//! an upstream is asked.
//!
//! Both are made around a [`tool::Provider`], the one trait on both sides:
//! [`serving`] wraps what clients see and [`asking`] what stands for an upstream.
//! Between them the span travels in [`tool::Context`], and the stages of the call
//! come with its record, for which the [`Tracer`] is a sink. Where nobody traces,
//! nothing is wrapped.

mod asking;
mod serving;

mod open;
mod stages;

mod operation;
mod peer;
mod tracer;

pub use asking::asking;
pub use peer::Peer;
pub use serving::serving;
pub use tracer::Tracer;

pub(crate) use operation::{Operation, Session, SpanParts};
pub(crate) use tracer::Waiting;

#[cfg(test)]
mod tests;
