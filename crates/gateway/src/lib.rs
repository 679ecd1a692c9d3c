//! How a call travels.
//!
//! A client talks to a [`surface`]. The surface looks things up in the current
//! catalog and hands calls to [`dispatch`], which runs them through the
//! stages of the [`policy`] against an upstream from the [`roster`]. Answers
//! pass the [`gate`], which has long ones kept as [`artifact`]s that can be
//! [`view`]ed piece by piece. Every call leaves one [`record`].
//!
//! This crate knows no protocol, no database and no file format: upstreams
//! come in as [`tool::Provider`], and each surface goes out as one.

pub mod gateway;

pub mod choice;
pub mod surface;

pub mod dispatch;

pub mod error;

pub mod builtin;
pub mod learning;
mod search;

pub mod record;

pub mod unmatched;

mod memo;
mod primitive;

pub use artifacts as artifact;
pub use artifacts::{envelope, gate, view};
pub use roster::clock;
pub use {policy, redact, roster, skills as skill};

#[cfg(test)]
mod fixture;

pub use choice::Surface;
pub use gateway::{Gateway, Manifest, Parts};
