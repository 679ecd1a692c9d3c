//! Visibility: who may see what.
//!
//! What a caller may not see does not exist as far as they can tell. There is
//! one catalog for everybody; the operator's [`Config`] is a filter over it.
//! Surfaces ask a [`Visible`], which is for one caller; nothing here knows of
//! surfaces.

mod filter;
mod rules;

pub use filter::{VisibilityFilter, VisibilityRules, Visible};
pub use rules::{Config, Invalid, Rule, Sight, Thing, What, Who};

#[cfg(test)]
mod tests;
