//! How a call travels.
//!
//! A client talks to a [`surface`]. The surface looks things up in the current
//! catalog and hands calls to [`dispatch`], which runs them through the
//! [`stage`]s of the pipeline against an upstream from the [`roster`]. Answers
//! pass the [`gate`], which has long ones kept as [`artifact`]s that can be
//! [`view`]ed piece by piece. Every call leaves one [`record`].
//!
//! This crate knows no protocol, no database and no file format: upstreams
//! come in as [`tool::Provider`], and each surface goes out as one.

pub mod gateway;

pub mod surface;

pub mod dispatch;
pub mod stage;

pub mod error;

pub mod roster;
pub mod skill;

pub mod learning;
pub mod own;

mod memo;
mod primitive;

pub mod trust;
pub mod visibility;

pub mod clock;
pub mod record;

#[cfg(test)]
mod fixture;

pub use artifacts as artifact;
pub use artifacts::{envelope, gate, view};
pub use gateway::{Gateway, Manifest, Parts};
pub use redact;
pub use surface::Surface;
