//! Runs JavaScript that calls functions, in confined worker processes.
//!
//! The [`engine`] runs one script: without files, network, clock and randomness, and
//! within limits of steps, memory and stack. A function that a script calls goes out
//! as a [`protocol::Call`], and its answer comes in from outside. A [`worker`] is a
//! process that does nothing else: it confines itself, so that a bug in the engine
//! does no harm, and speaks the [`protocol`] over its one socket. The [`pool`] keeps
//! workers ready and drives a script: calls in parallel, a [`journal`] of their
//! answers, a deadline.
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
