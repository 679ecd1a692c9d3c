//! What decides about calls: who sees what, what may be called, how often, who
//! has to agree, what need not be asked again, and how upstreams are asked.
//!
//! Each stage is a file with its own configuration and tests; which ones are in
//! force is one value ([`Stages`]). Nothing here knows surfaces, sessions or
//! the roster.

pub mod call;
pub mod code;
pub mod question;
pub mod refusal;

pub mod validate;

pub mod visibility;

pub mod admission;
pub mod rules;
pub mod trust;

pub mod quota;

pub mod approval;
pub mod confirm;

pub mod cache;

pub mod attempt;
pub mod breaker;
pub mod retry;

pub mod live;
pub mod stages;

pub mod pattern;
pub mod tolerant;
pub mod uri;

pub use stages::{Open, Stages};
