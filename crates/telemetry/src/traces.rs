//! Creates spans: one for every request of a client, and inside it one for every request
//! to an upstream.
//!
//! Both wrap a [`tool::Provider`]: [`traced_source`] the one that clients see, and
//! [`traced_upstream`] the session with an upstream. Between them the span travels in
//! [`tool::Context`]. The stages of a call become events of its span, when its record
//! reaches the [`Tracer`], which is a sink. When tracing is off, nothing is wrapped.

mod traced_source;
mod traced_upstream;

mod open_operation;
mod stages;

mod operation;
mod peer;
mod tracer;

pub use peer::Peer;
pub use traced_source::traced_source;
pub use traced_upstream::traced_upstream;
pub use tracer::Tracer;

pub(crate) use operation::{Operation, RecordedSpan, Session};
pub(crate) use tracer::PendingExports;

#[cfg(test)]
mod tests;
