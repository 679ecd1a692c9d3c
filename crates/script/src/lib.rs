//! JavaScript that calls functions, in worker processes.
//!
//! The [`engine`] runs one script in this process: no files, no network, no
//! clock, no randomness, within bounds of steps, memory and stack. What a script
//! calls leaves it as a [`protocol::Call`], and the answer comes in from
//! outside. A [`worker`] is a process that does nothing else: it confines itself,
//! so that an error in the engine leads nowhere, and speaks the [`protocol`] over
//! its one socket. The [`pool`] keeps workers ready and drives a script: inner
//! calls side by side, a [`journal`] of those that are finished, a deadline.
//!
//! This crate does not know what functions there are nor who may call them: a
//! [`pool::Host`] answers.

pub mod engine;
pub mod protocol;

pub mod worker;

pub mod journal;
pub mod pool;

mod limits;

pub use journal::Journal;
pub use limits::{Limit, Limits};
pub use pool::{Ended, Host, Pool, Verdict};
pub use protocol::{Answer, Call, Finished};
