//! Checks whether a server conforms to CaSH, as a black-box client.
//!
//! A [`survey`] sends requests to a server as any client would and records the replies
//! in a transcript; [`judge`] then decides every item of the [`checklist`] from that
//! transcript alone; a [`report`] prints the verdicts with their evidence.
//!
//! This crate sees only a [`tool::Provider`] and, for the manifest, a way to fetch a
//! path. It does not know gatelet's gateway.

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
