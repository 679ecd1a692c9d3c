//! Results that are too long to go out at once: they are measured, stored whole and
//! viewed in parts.
//!
//! The [`gate`] measures a result and decides whether it may pass. One that may
//! not becomes an [`Artifact`] that has an owner: nobody else can read it or
//! learn that it exists. A [`Store`] keeps it for a limited time and within size
//! limits; [`Memory`] is the store in this process. A [`Log`] adds to one that is
//! stored. An [`envelope`] is what a
//! model reads in its place, and a [`view`] shows one bounded part of it. A
//! [`pick`] is a program that selects part of a result before it goes out.
//!
//! This crate does not know who calls what, nor when: results come in as
//! [`tool::Reply`], and time as a [`tool::clock::Clock`].

mod artifact;
mod log;
mod memory;
mod store;

pub mod gate;
pub mod shape;

pub mod envelope;
mod overview;
pub mod part;
pub mod result_text;

pub mod pick;
pub mod view;

pub use artifact::{Artifact, ArtifactMeta, Owner, PartIndex, RawResults};
pub use log::{Log, LogError, OpenLog};
pub use memory::Memory;
pub use overview::Overview;
pub use result_text::ResultText;
pub use store::{Config, Lookup, Store, StoredIn, TooLarge, Unreadable, Usage};
