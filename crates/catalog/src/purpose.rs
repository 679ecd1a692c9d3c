//! Describes what a namespace is for, in at most twelve words.
//!
//! The operator's description comes first, then a sentence of the server about itself,
//! then what the names of its functions imply: `create, list and describe tables`.
//! Upstream text is untrusted: it is cleaned and cut to one line. This module does not
//! know the catalog; [`crate::Catalog::purpose`] uses it.

mod line;
mod names;
mod stated;

pub use line::{WORDS, one_line};
pub(crate) use names::from_names;
pub(crate) use stated::stated;

#[cfg(test)]
mod tests;
