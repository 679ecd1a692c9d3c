//! Stores of state: one family of traits, implemented in memory and in files.
//!
//! [`state`] defines the traits; [`memory`] and [`files`] implement them, and
//! [`conformance`] tests any implementation. Each of the other modules uses them to
//! store one kind of thing for the gateway or the binary. Files are written whole
//! or not at all, and only their owner can read them ([`file`]).

pub mod state;

pub mod conformance;

pub mod clock;

pub mod file;
pub mod files;
pub mod memory;

pub mod document;

pub mod approvals;
pub mod audit;
pub mod confirm_tokens;

mod artifact_format;
pub mod artifacts;
pub mod shared_artifacts;

pub mod limits;
pub mod vault;
