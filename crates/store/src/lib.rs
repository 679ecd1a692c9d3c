//! Where state lives: memory, disk, Redis, object stores.
//!
//! Each module implements one of the gateway's storage traits for one kind of
//! place. Nothing here knows what is stored or why.

pub mod artifacts;
pub mod events;
pub mod vault;
