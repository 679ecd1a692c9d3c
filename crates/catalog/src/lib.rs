//! Which tools exist right now; find, rank and describe them.

pub mod card;
pub mod id;
pub mod selection;
pub mod tokens;
pub mod eval;
pub mod index;
