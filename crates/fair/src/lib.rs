//! A semaphore whose permits are shared fairly between callers.
//!
//! A [`Semaphore`] lets a fixed number of things happen at once. Whoever finds
//! no permit waits in a [`queue`] of its own, of bounded length, and free
//! permits go round between the callers who wait: one who asks a thousand times
//! delays one who asks once by one turn. Where a part of the permits is
//! reserved, no caller can take them all.
//!
//! This crate knows no protocol and no clock: what a caller is, and how long it
//! waits, is said by whoever asks.

pub mod queue;
mod semaphore;

pub use queue::{Full, Key, Limits, Urgency};
pub use semaphore::{Permit, Semaphore};
