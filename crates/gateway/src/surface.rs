//! The surfaces: the sets of tools that clients see instead of the upstreams' own.
//!
//! Each surface is a provider over the same catalog and the same dispatch; they
//! differ in how much they show and how it is asked for.

pub mod cash;
pub mod direct;
pub mod gateway;
pub mod proxy;

pub mod meta;

pub(crate) mod factory;
pub(crate) mod provider;

pub(crate) mod about;
pub(crate) mod answer;
pub(crate) mod artifact_resources;
pub(crate) mod batch;
pub(crate) mod by_name;
pub(crate) mod capabilities;
pub(crate) mod catalog_events;
pub(crate) mod cuts;
pub(crate) mod groups;
pub(crate) mod hints;
pub(crate) mod instructions;
pub mod listed;
pub(crate) mod listings;
pub(crate) mod names;
pub(crate) mod other_requests;
pub(crate) mod oversize;
pub(crate) mod served_skills;
pub(crate) mod stripped;

pub(crate) mod tasks;
pub(crate) mod upstream_instructions;

#[cfg(test)]
mod tests;
