//! Visibility: which callers see which parts of the catalog.
//!
//! To a caller, a hidden item is indistinguishable from one that does not exist.
//! There is one catalog for everybody; the operator's [`Config`] is a filter over
//! it, and a [`CallerView`] is that filter for one caller. This module does not
//! know surfaces.

mod filter;
mod rules;

pub use filter::{CallerView, VisibilityFilter, VisibilityRules};
pub use rules::{
    CallerPattern, Config, DefaultVisibility, InvalidPattern, Item, ItemPattern, Rule,
};

#[cfg(test)]
mod tests;
