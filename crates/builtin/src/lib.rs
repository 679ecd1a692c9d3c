//! The built-in tools, for first steps and odd jobs: time and dates, text, JSON,
//! units, and a scratch memory, plus a skill.
//!
//! They need no network and no other software. Each group is one provider, so
//! that its tools are in a namespace of their own.

mod json;
mod memory;
mod text;
mod time;
mod units;

mod bounded;

use std::path::Path;
use std::sync::Arc;

use catalog::name;
use native::{DiscoveryReport, Registry};
use tool::Provider;

use memory::Memory;

/// A group of built-in tools, and its label unless an upstream has the same.
pub struct Group {
    pub label: &'static str,
    pub provider: Arc<dyn Provider>,
}

/// The skill that comes with the tools: its path, and its text.
pub const SKILL: (&str, &str) =
    ("first-steps/SKILL.md", include_str!("skills/first-steps/SKILL.md"));

/// Returns all groups. `state` is the directory in which the memory is stored.
pub fn groups(state: &Path) -> Vec<Group> {
    let group = |(label, registry): (&'static str, Registry)| Group {
        label,
        provider: registry.into_provider(),
    };
    registries(state).into_iter().map(group).collect()
}

/// Returns the report of each group: its tools and what is wrong with them.
pub fn reports(state: &Path) -> Vec<(&'static str, DiscoveryReport)> {
    let report = |(label, registry): (&'static str, Registry)| (label, registry.report().clone());
    registries(state).into_iter().map(report).collect()
}

/// The labels of the groups and their descriptions.
pub const LABELS: &[(&str, &str)] = &[
    ("json", "Query, format and convert JSON, YAML and TOML."),
    ("memory", "A scratch memory for notes between calls."),
    ("text", "Count, search, replace and encode text."),
    ("time", "What time it is anywhere, and sums with dates."),
    ("units", "Convert between units of measurement."),
];

/// Returns the labels of the groups beside upstreams with these labels, in the order
/// of [`LABELS`].
///
/// A group that has the label of an upstream gets another one, because the operator's
/// rules for that label mean the upstream.
pub fn labels_beside<'a>(upstreams: impl Iterator<Item = &'a str>) -> Vec<String> {
    let taken: Vec<String> = upstreams.map(comparable).collect();
    let label_for = |(label, _): &(&str, &str)| {
        let numbered = (2..).map(|number| format!("{label}_{number}"));
        let mut names = std::iter::once((*label).to_owned()).chain(numbered);
        names.find(|name| !taken.contains(&comparable(name))).unwrap_or_default()
    };
    LABELS.iter().map(label_for).collect()
}

/// Returns the form of a label in which it is compared with others.
fn comparable(label: &str) -> String {
    name::canonical(&name::alias(label))
}

fn registries(state: &Path) -> Vec<(&'static str, Registry)> {
    let own = module_path!();
    let group = |(label, about): &(&'static str, &'static str)| {
        let registry = Registry::new(label, env!("CARGO_PKG_VERSION")).instructions(about);
        let registry = registry.state(Memory::in_directory(state));
        (*label, registry.discover_in(&format!("{own}::{label}")))
    };
    LABELS.iter().map(group).collect()
}

#[cfg(test)]
mod tests;
