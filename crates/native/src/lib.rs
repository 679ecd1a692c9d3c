//! Tools written in Rust.
//!
//! [`tool`](macro@tool) turns a function into a tool with schemas derived from its types.
//! A [`Registry`] takes tools by hand or finds those that were linked in, and
//! refuses what is not fit to be called: no schema, an invalid schema, a name
//! that is taken. What it becomes is a [`tool::Provider`], served over any
//! transport without change.
//!
//! Nothing is swallowed: what does not register stands in the [`Report`], and
//! a tool that fails, panics or takes too long is an error reply, never a
//! silence. This crate knows no transport, no policy and no trust.
//!
//! ```
//! use native::{Registry, tool};
//!
//! /// Adds two whole numbers.
//! #[tool(read_only, idempotent)]
//! fn add(
//!     /// The first number.
//!     a: i64,
//!     /// The second; one when left out.
//!     #[default(1)]
//!     b: i64,
//! ) -> i64 {
//!     a + b
//! }
//!
//! let registry = Registry::new("sums", "1.0.0").discover();
//! assert!(registry.list_registered_tools().any(|name| name == "add"));
//! let provider = registry.into_provider();
//! ```

pub mod registry;

pub mod definition;
pub mod schema;
pub mod state;

pub mod answer;
pub mod context;
pub mod error;
pub mod message;

mod provider;

pub use answer::{Answer, Blocks, Text};
pub use context::Context;
pub use definition::{Call, Definition, Tool};
pub use error::{Error, Fault, RegistrationError};
pub use macros::tool;
pub use message::{ToolCall, ToolResult};
pub use registry::{Entry, Registered, Registry, Report};
pub use state::{Args, State};

/// What the code that [`tool`](macro@tool) writes refers to. Not for use by hand.
#[doc(hidden)]
pub mod __private {
    pub use inventory;
    pub use schemars;
    pub use serde;
}

// The code that `#[tool]` writes says `::native`, in this crate's tests too.
extern crate self as native;
