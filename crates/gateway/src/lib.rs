//! How a call travels.
//!
//! A client talks to a [`surface`]. The surface looks things up in the current
//! catalog and hands calls to [`dispatch`], which runs them through the stages of
//! [`policy`] against an upstream of the [`roster`]. Answers pass the gate of
//! [`artifacts`], which keeps long ones so that they can be viewed piece by piece.
//! Every call leaves one [`record`].
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
pub mod recipes;
mod search;

pub mod record;

pub mod unmatched;

mod bounded_cache;
mod lengths;
mod primitive;

#[cfg(test)]
mod fixture;

pub use choice::Surface;
pub use gateway::{Gateway, GatewayParts, Manifest};
