//! Takes one call to its upstream and the answer back.
//!
//! Every surface calls this, so that the same holds for all of them: the same
//! checks in the same order, the same gate, one record per call. The name of the
//! surface and how it writes calls come in as an [`Origin`].

mod keeping;
mod measured;
mod origin;
mod outcome;
mod picking;
mod pipeline;
mod saving;
mod script_runner;
mod scripting;
mod viewing;

pub(crate) use origin::{MAX_REPEATED_ARGUMENTS, Origin, no_call_text, repeated_arguments};
pub(crate) use outcome::RenderReply;
pub use outcome::{CallError, Outcome, Plan};
pub use picking::Shapes;
pub(crate) use pipeline::Dispatcher;
pub use script_runner::Scripting;
