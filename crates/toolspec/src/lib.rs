//! Documents that describe tools.
//!
//! An `MCP_TOOL_SPECIFICATION.md` says in Markdown what a server's tools do.
//! [`parse`](parse()) reads any such document, however it is laid out, into one
//! [`Document`]: it never fails, and what is damaged becomes a [`Finding`].
//! [`lint`](lint()) checks it against the table of [`rules`], [`fix`](fix())
//! brings it to the canonical form, [`generate`](generate()) writes it from a
//! listing, [`check`](check()) compares it with a live server, [`diff`](diff())
//! with an older state of itself, and [`mock`] serves it.
//!
//! This crate takes text and gives text: it knows no files, no network and no
//! gateway.

pub mod document;
pub mod finding;

mod block;
mod markdown;
mod parse;
mod section;
mod types;

mod example;

mod canonical;
mod subject;

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
pub use lint::{Comparison, lint};
pub use parse::parse;
