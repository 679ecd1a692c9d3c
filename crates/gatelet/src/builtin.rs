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

pub(crate) mod jq;

use std::path::Path;
use std::sync::Arc;

use native::Registry;
use tool::Provider;

use memory::Memory;

/// A group of built-in tools and the namespace it is found in.
pub(crate) struct Group {
    pub(crate) label: &'static str,
    pub(crate) provider: Arc<dyn Provider>,
}

/// The skill that comes with the tools: its path, and its text.
pub(crate) const SKILL: (&str, &str) =
    ("first-steps/SKILL.md", include_str!("builtin/skills/first-steps/SKILL.md"));

/// All groups. What the memory holds is kept in `state`.
pub(crate) fn groups(state: &Path) -> Vec<Group> {
    let group = |label: &'static str, about: &str, module: &str| {
        let registry = Registry::new(label, env!("CARGO_PKG_VERSION")).instructions(about);
        let registry = registry.state(Memory::in_directory(state)).discover_in(module);
        Group { label, provider: registry.into_provider() }
    };
    let own = module_path!();
    vec![
        group("json", "Query, format and convert JSON, YAML and TOML.", &format!("{own}::json")),
        group("memory", "A scratch memory for notes between calls.", &format!("{own}::memory")),
        group("text", "Count, search, replace and encode text.", &format!("{own}::text")),
        group("time", "The time anywhere, and sums with dates.", &format!("{own}::time")),
        group("units", "Convert between units of measurement.", &format!("{own}::units")),
    ]
}

#[cfg(test)]
mod tests;
