//! Where state lives on disk: kept answers, events, secrets.
//!
//! Each module keeps one kind of thing for the gateway or the binary, on top of
//! [`file`], which knows only bytes. What is not on disk lives in the gateway's
//! own memory.

pub mod file;

pub mod artifacts;
pub mod events;
pub mod vault;
