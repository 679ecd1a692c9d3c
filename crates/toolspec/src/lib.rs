//! Parses, lints, repairs, generates and compares Markdown documents that describe tools.
//!
//! An `MCP_TOOL_SPECIFICATION.md` describes a server's tools in Markdown.
//! [`parse`](parse()) turns any such document, whatever its layout, into a
//! [`Document`]: it never fails, and damaged parts become [`Finding`]s.
//! [`lint`](lint()) checks it against the table of [`rules`], [`fix`](fix()) brings it to
//! the canonical form, [`generate`](generate()) writes it from a listing,
//! [`check`](check()) compares it with a live server, [`diff`](diff()) compares two states
//! of the tools, and [`mock`] serves the documented tools.
//!
//! This crate works on text and values: it knows no files, no network and no gateway.

pub mod document;
pub mod finding;

mod block;
mod markdown;
mod parse;
mod section;
mod types;

mod example;

mod canonical;
mod rule_input;

pub mod rules;

mod fix;
mod lint;

mod generate;

mod check;
mod diff;
pub mod mock;

pub use check::check;
pub use diff::{Bump, Change, MissingBump, diff, missing_bump};
pub use document::{Definition, Document, DocumentedTool};
pub use finding::{Edit, Finding, Position};
pub use fix::fix;
pub use generate::{Options, generate};
pub use lint::{LintContext, lint};
pub use parse::parse;
