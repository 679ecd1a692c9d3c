//! Which tools exist right now; find, rank and describe them.

pub mod id;
pub mod tokens;
