//! The tools that come with gatelet, for the first minute and for odd jobs:
//! time and dates, text, JSON, units, and a scratch memory, plus a skill.
//!
//! They need no network and no other software. Each group is one provider, so
//! that its tools are found in a namespace of their own.

mod json;
mod memory;
mod text;
mod time;
mod units;

mod bounded;

use std::path::Path;
use std::sync::Arc;

use catalog::name;
use native::{Registry, Report};
use tool::Provider;

use memory::Memory;

/// A group of built-in tools, and what it is called where nobody else is.
pub struct Group {
    pub label: &'static str,
    pub provider: Arc<dyn Provider>,
}

/// The skill that comes with the tools: its path, and its text.
pub const SKILL: (&str, &str) =
    ("first-steps/SKILL.md", include_str!("skills/first-steps/SKILL.md"));

/// All groups. What the memory holds is kept in `state`.
pub fn groups(state: &Path) -> Vec<Group> {
    let group = |(label, registry): (&'static str, Registry)| Group {
        label,
        provider: registry.into_provider(),
    };
    registries(state).into_iter().map(group).collect()
}

/// Returns what was found of each group.
pub fn reports(state: &Path) -> Vec<(&'static str, Report)> {
    let report = |(label, registry): (&'static str, Registry)| (label, registry.report().clone());
    registries(state).into_iter().map(report).collect()
}

/// The namespaces of the groups, with what is in them.
pub const LABELS: &[(&str, &str)] = &[
    ("json", "Query, format and convert JSON, YAML and TOML."),
    ("memory", "A scratch memory for notes between calls."),
    ("text", "Count, search, replace and encode text."),
    ("time", "What time it is anywhere, and sums with dates."),
    ("units", "Convert between units of measurement."),
];

/// Returns what the groups are called beside upstreams, in the order of [`LABELS`].
///
/// A label that an operator wrote is the operator's, and so are the rules for
/// it: a group of that name gives way.
pub fn called<'a>(upstreams: impl Iterator<Item = &'a str>) -> Vec<String> {
    let taken: Vec<String> = upstreams.map(legal).collect();
    let called = |(label, _): &(&str, &str)| {
        let numbered = (2..).map(|number| format!("{label}_{number}"));
        let mut names = std::iter::once((*label).to_owned()).chain(numbered);
        names.find(|name| !taken.contains(&legal(name))).unwrap_or_default()
    };
    LABELS.iter().map(called).collect()
}

/// Returns how a label is compared with others.
fn legal(label: &str) -> String {
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
