//! Where state lives: one family of traits, implemented in memory and in files.
//!
//! [`state`] says what a store can do; [`memory`] and [`files`] do it, and
//! [`conformance`] checks that they do. On top of them, each of the other modules
//! keeps one kind of thing for the gateway or the binary. What is on disk is
//! written whole or not at all, for its owner alone ([`file`]).

pub mod state;

pub mod conformance;

pub mod clock;

pub mod file;
pub mod files;
pub mod memory;

pub mod document;

pub mod approvals;
pub mod audit;

mod artifact_format;
pub mod artifacts;
pub mod shared_artifacts;

pub mod limits;
pub mod vault;
