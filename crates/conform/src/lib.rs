//! Proof of conformance: the CaSH checklist as a black-box client.
//!
//! A [`survey`] talks to a server as any client would and writes down what it
//! said; [`judge`] then decides every item of the [`checklist`] from that
//! transcript alone; a [`report`] prints the verdicts with their evidence.
//!
//! This crate sees only a [`tool::Provider`] and, for the manifest, a way to
//! fetch a path. It knows nothing of the gateway that it will mostly judge.

pub mod checklist;

pub mod answer;
pub mod outline;
pub mod survey;

pub mod judge;
pub mod report;

pub use checklist::{Item, Level};
pub use judge::{Outcome, Verdict, judge};
pub use report::Report;
pub use survey::{Options, Role, Subject, Trial, Web, survey};
