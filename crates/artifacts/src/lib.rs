//! Results that are too long to go out at once: they are measured, stored whole and
//! viewed in parts.
//!
//! The [`gate`] measures an answer and decides whether it may pass. What may
//! not becomes an [`Artifact`] that has an owner: nobody else can read it or
//! learn that it is there. It lives in a [`Store`] for a while and within
//! bounds; [`Memory`] is the one in this process. An [`envelope`] is what a
//! model reads in its place, and a [`view`] shows one bounded piece of it. A
//! [`pick`] says beforehand which part of an answer is wanted.
//!
//! This crate does not know who calls what, nor when: answers come in as
//! [`tool::Reply`], and time as a [`tool::clock::Clock`].

mod artifact;
mod memory;
mod store;

pub mod gate;
pub mod shape;

pub mod envelope;
mod overview;
pub mod part;
pub mod reading;

pub mod pick;
pub mod view;

pub use artifact::{Artifact, ArtifactMeta, Owner, Parts, Raw};
pub use memory::Memory;
pub use overview::Overview;
pub use reading::ResultText;
pub use store::{Config, Lookup, Store, StoredIn, TooLarge, Unreadable, Usage};
