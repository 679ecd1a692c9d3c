//! What a namespace is for, in at most twelve words.
//!
//! The operator's words come first, then a sentence of the server that says
//! what it does, then what the names of the functions say: `create, list and
//! describe tables`. Upstream text is data: it is cleaned, cut and kept on one
//! line. Nothing here knows a catalog; [`crate::Catalog::purpose`] does.

mod line;
mod names;
mod stated;

pub use line::{WORDS, one_line};
pub(crate) use names::from_names;
pub(crate) use stated::stated;

#[cfg(test)]
mod tests;
