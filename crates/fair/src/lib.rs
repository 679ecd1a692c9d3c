//! A semaphore whose permits are shared fairly between callers.
//!
//! A [`Semaphore`] has a fixed number of permits. Callers that find no free permit wait,
//! each in its own [`queue`] of bounded length, and free permits go to the waiting callers
//! in turn: a caller with a thousand requests delays one with a single request by one
//! turn. Where a part of the permits is reserved, no caller can take them all.
//!
//! This crate does not know protocols or clocks. Its users decide what a caller is and how
//! long it waits.

pub mod queue;
mod semaphore;

pub use queue::{Key, Limits, Priority, TooManyWaiting};
pub use semaphore::{Permit, Semaphore};
