//! Which tools exist right now: find, rank and describe them.
//!
//! A [`Catalog`] is built whole from the listings of all upstreams
//! ([`Source`]s) and never changes afterwards. It arranges the tools as
//! functions in namespaces, finds them by name or by meaning, and describes
//! them in as few tokens as the reader needs: a [`summary`], a call
//! [`signature`], the [`contract`] of the arguments.
//!
//! This crate does not know time, sessions or transports. Expensive parts (the search
//! index, compiled schemas) are made once, when they are first needed; nothing else is
//! ever locked or changed.

pub mod catalog;
pub mod source;

pub mod name;
pub mod nearest;

pub mod contract;
pub mod purpose;
pub mod signature;
pub mod summary;

pub mod index;

pub mod reply;
pub mod tokens;
pub mod typescript;
pub mod usage;

pub mod card;
pub mod directory;
pub mod eval;
pub mod id;
pub mod selection;
pub mod tree;

mod packed;

pub use catalog::{
    Catalog, Function, GuessBy, Hit, ItemRef, ItemSearchResult, Namespace, Priors, SearchResult,
    Slot, Unresolved,
};
pub use contract::{Contract, NormalizedArguments, Parameter, Problem, Sample};
pub use directory::Directory;
pub use source::{Source, State};
