//! The policies that decide about calls: visibility, rules, trust, quotas,
//! approval, caching and retries.
//!
//! Each stage of the pipeline is a file with its own configuration and tests;
//! [`Stages`] holds the policies that are in force. This crate does not know
//! surfaces, sessions or the roster.

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

pub mod argument_repair;
mod glob;
pub mod pattern;
pub mod uri;

pub use stages::{AllowAll, Stages};
