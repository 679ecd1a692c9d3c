//! Which tools exist right now; find, rank and describe them.

pub mod card;
pub mod eval;
pub mod id;
pub mod index;
pub mod selection;
pub mod tokens;
pub mod tree;
