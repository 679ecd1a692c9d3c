//! The surface `cash`: three tools for everything, `call`, `help` and `skill`.
//!
//! `call` runs a function by namespace and name, `help` lists namespaces and functions,
//! `skill` returns instructions. However many functions there are, a client pays for
//! three definitions. Errors say how to write the call correctly.

mod request;
mod resolve;
mod tool_calls;

mod arguments;
mod batch;
mod declarations;
mod definitions;
mod errors;
mod function_page;
mod gated;
mod help;
mod namespace_page;
mod remote_help;
mod skill;
mod upstream_skill;

pub(crate) use definitions::MAX_MAP_TOKENS;
pub use definitions::tools;
pub use remote_help::{HELP, REMOTE_FUNCTION};
pub use request::Cash;
pub(crate) use request::ORIGIN;

#[cfg(test)]
mod tests;
