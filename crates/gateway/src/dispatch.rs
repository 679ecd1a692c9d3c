//! Takes one call to its upstream and the answer back.
//!
//! Every surface calls this, so that the same holds for all of them: the same
//! checks in the same order, the same gate, one record per call. The name of the
//! surface and how it writes calls come in as an [`Origin`].

mod pipeline;

mod dispatcher;
mod origin;
mod outcome;

mod approving;
mod asking;
mod compiling;
mod delivering;
mod delivery;
mod forwarding;
mod keeping;
mod measuring;
mod picking;
mod planning;
mod recording;
mod saving;
mod scrubbing;
mod viewing;

mod script_runner;
mod scripting;

pub(crate) use dispatcher::Dispatcher;
pub(crate) use forwarding::ForwardedRequest;
pub(crate) use origin::{MAX_REPEATED_URI, Origin, no_call_text};
pub(crate) use outcome::RenderReply;
pub use outcome::{CallError, Outcome, Plan};
pub use picking::DefaultPicks;
pub use script_runner::ScriptRunner;
