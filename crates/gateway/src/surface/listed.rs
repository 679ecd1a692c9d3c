//! Functions that are listed whole beside gatelet's own tools, and called by name.
//!
//! The operator pins them, they are the most used, or they show a user
//! interface, which hosts render only for tools that are listed and called
//! directly (MCP Apps). Where everything that a caller sees is small, all of it
//! is listed. Being listed adds a definition and nothing else: the same
//! visibility, trust, rules and gate hold for a call.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use catalog::{Catalog, Slot, tokens};
use tool::{Annotations, Client, Finding, Json, Object, Severity, Tool};

use super::by_name::Names;
use super::groups;
use crate::learning::UsageStore;
use policy::pattern::Pattern;
use policy::visibility::Visible;
use roster::Snapshot;

/// Which functions are listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// On `auto`, everything is listed when it costs less than so many tokens.
    pub everything_below: usize,
    /// What the operator wants to be listed, most wanted first.
    pub pinned: Vec<Pattern>,
    /// How many of the functions that were used most are listed.
    pub most_used: usize,
    /// The most tokens that pinned and most used ones cost together.
    pub tokens: usize,
    /// Whether there is a tool that runs only what reads.
    pub read_tool: bool,
    /// What only reads by the operator's word.
    pub read_only: Vec<Pattern>,
    /// Whether namespaces are told as groups.
    pub groups: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            everything_below: 2_500,
            pinned: Vec::new(),
            most_used: 0,
            tokens: 2_000,
            read_tool: false,
            read_only: Vec::new(),
            groups: false,
        }
    }
}

/// The most functions with a user interface that are listed: a server does not
/// get to flood a model.
const INTERFACES: usize = 64;

/// The configuration in force, and how often it was replaced.
pub(crate) struct Live {
    config: ArcSwap<Config>,
    edition: AtomicU64,
    /// Knows what was used.
    usage: Arc<dyn UsageStore>,
}

/// What tells listings of one surface apart beside who asks for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Variant {
    edition: u64,
    pub(crate) client: ClientKind,
}

/// What a client is, as far as listings depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct ClientKind {
    /// It came in by `auto`, so that it may be shown everything.
    pub(crate) auto: bool,
    /// It renders user interfaces.
    pub(crate) interfaces: bool,
}

impl ClientKind {
    pub(crate) fn of(client: &Client, auto: bool) -> ClientKind {
        let extensions = client.capabilities.member("extensions");
        let interfaces = extensions.is_some_and(|all| all.member(INTERFACE).is_some());
        ClientKind { auto, interfaces }
    }
}

/// The extension by which clients say that they render user interfaces.
const INTERFACE: &str = "io.modelcontextprotocol/ui";

/// What is listed, by name, and what could not be.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    pub(crate) tools: Vec<Tool>,
    pub(crate) findings: Vec<Finding>,
}

impl Live {
    pub(crate) fn new(config: Config, usage: Arc<dyn UsageStore>) -> Live {
        Live { config: ArcSwap::from_pointee(config), edition: AtomicU64::new(0), usage }
    }

    /// Puts another configuration in force. Listings are made anew also where
    /// it is the same: what else they depend on may have changed with it.
    pub(crate) fn replace(&self, config: Config) {
        self.config.store(Arc::new(config));
        self.edition.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn config(&self) -> Arc<Config> {
        self.config.load_full()
    }

    pub(crate) fn variant(&self, client: ClientKind) -> Variant {
        Variant { edition: self.edition.load(Ordering::Relaxed), client }
    }

    /// A tool as it is listed: with its group, where there are groups.
    pub(crate) fn member(&self, snapshot: &Snapshot, slot: Option<Slot>, tool: &Tool) -> Tool {
        match slot.filter(|_| self.config.load().groups) {
            Some(slot) => groups::member(tool, snapshot.catalog.path(slot)),
            None => tool.clone(),
        }
    }

    /// Whether functions may be called by name: only where some can be listed.
    /// Which ones are may have changed since the client looked.
    pub(crate) fn lists_any(&self, client: ClientKind) -> bool {
        let config = self.config.load();
        let chosen = !config.pinned.is_empty() || 0 < config.most_used;
        chosen || client.interfaces || (client.auto && 0 < config.everything_below)
    }

    /// What a client is shown beside our own tools.
    pub(crate) fn listed(
        &self,
        snapshot: &Snapshot,
        client: ClientKind,
        visible: &Visible<'_>,
    ) -> Listed {
        let config = self.config();
        let sees = |slot: Slot| visible.shows_function(&snapshot.catalog, slot);
        let choice = Choice { snapshot, config: &config, sees: &sees };
        let mut listed = Listed::default();
        let mut loaded = BTreeSet::new();
        if client.auto && choice.is_small() {
            loaded.extend(choice.all());
        } else {
            let used = match config.most_used {
                0 => Vec::new(),
                most => self.usage.read().most_used(most),
            };
            loaded = choice.within_budget(&used, &mut listed.findings);
        }
        let interfaces = match client.interfaces {
            true => choice.interfaces(&mut listed.findings),
            false => BTreeSet::new(),
        };
        for (slot, tool) in Names::of(snapshot).tools() {
            if loaded.contains(slot) {
                listed.tools.push(kept_loaded(&self.member(snapshot, Some(*slot), tool)));
            } else if interfaces.contains(slot) {
                listed.tools.push(self.member(snapshot, Some(*slot), tool));
            }
        }
        // The same order whatever comes and goes elsewhere.
        listed.tools.sort_by(|a, b| a.name.cmp(&b.name));
        listed
    }
}

/// Chooses among what a caller sees.
struct Choice<'a> {
    snapshot: &'a Snapshot,
    config: &'a Config,
    sees: &'a dyn Fn(Slot) -> bool,
}

impl Choice<'_> {
    fn all(&self) -> impl Iterator<Item = Slot> + '_ {
        let catalog = &self.snapshot.catalog;
        catalog.slots().filter(|slot| !catalog.is_builtin(*slot) && (self.sees)(*slot))
    }

    /// Whether everything costs less than the threshold. What is far above it is
    /// not counted: a token of a definition never has eight bytes on average.
    fn is_small(&self) -> bool {
        let (catalog, threshold) = (&self.snapshot.catalog, self.config.everything_below);
        let (mut bytes, mut tools) = (0, Vec::new());
        for slot in self.all() {
            bytes += catalog.tool(slot).raw.as_str().len();
            if threshold.saturating_mul(8) <= bytes {
                return false;
            }
            tools.push(slot);
        }
        let cost = |slot: &Slot| cost(catalog, *slot);
        !tools.is_empty() && tools.iter().map(cost).sum::<usize>() < threshold
    }

    /// What is pinned, then what is used most, as far as the budget goes.
    fn within_budget(&self, used: &[String], findings: &mut Vec<Finding>) -> BTreeSet<Slot> {
        let (mut chosen, mut left) = (BTreeSet::new(), self.config.tokens);
        for pattern in &self.config.pinned {
            let named = |slot: &Slot| pattern.means(self.snapshot.target(*slot).callee.named());
            let mut meant = self.all().filter(named).peekable();
            if meant.peek().is_none() {
                let message = "no tool that is listed now is called so; see `gatelet tools`";
                let subject = pattern.as_str();
                findings.push(Finding::new(Severity::Warning, "pin-unknown", subject, message));
            }
            for slot in meant {
                if !self.take(slot, &mut left, &mut chosen) {
                    let path = &self.snapshot.target(slot).callee.path;
                    let message = format!(
                        "is pinned and not listed: all pins together have {} tokens; raise \
                         `pinned_tokens`, or pin less",
                        self.config.tokens
                    );
                    findings.push(Finding::new(Severity::Warning, "pin-left-out", path, message));
                }
            }
        }
        for path in used {
            let named = |slot: &Slot| self.snapshot.target(*slot).callee.path == *path;
            if let Some(slot) = self.all().find(named) {
                self.take(slot, &mut left, &mut chosen);
            }
        }
        chosen
    }

    fn take(&self, slot: Slot, left: &mut usize, chosen: &mut BTreeSet<Slot>) -> bool {
        if chosen.contains(&slot) {
            return true;
        }
        let cost = cost(&self.snapshot.catalog, slot);
        let fits = cost <= *left;
        if fits {
            *left -= cost;
            chosen.insert(slot);
        }
        fits
    }

    /// Tools that show a user interface, or are there for one.
    fn interfaces(&self, findings: &mut Vec<Finding>) -> BTreeSet<Slot> {
        let catalog = &self.snapshot.catalog;
        let mut all = self.all().filter(|slot| has_interface(catalog.tool(*slot)));
        let shown = all.by_ref().take(INTERFACES).collect();
        let more = all.count();
        if 0 < more {
            let message =
                format!("{more} more tools have user interfaces; {INTERFACES} are listed");
            findings.push(Finding::new(Severity::Warning, "interfaces-left-out", "tools", message));
        }
        shown
    }
}

/// Tokens of a definition as models read it.
fn cost(catalog: &Catalog, slot: Slot) -> usize {
    let tool = catalog.tool(slot);
    let Ok(mut raw) = Object::parse(&tool.raw) else { return tokens::count(tool.raw.as_str()) };
    raw.remove("_meta");
    tokens::count(raw.to_json().as_str())
}

/// Whether a tool says that it shows a user interface, in either spelling.
pub(crate) fn has_interface(tool: &Tool) -> bool {
    // Looked for as text first: few tools have it.
    if !tool.raw.mentions("\"ui\"") && !tool.raw.mentions("\"ui/resourceUri\"") {
        return false;
    }
    let Some(meta) = tool.raw.member("_meta") else { return false };
    meta.member("ui").is_some_and(|ui| ui.is_object())
        || meta.member_as::<String>("ui/resourceUri").is_some()
}

/// The definition with the switch that keeps hosts from deferring it.
fn kept_loaded(tool: &Tool) -> Tool {
    let Ok(mut raw) = Object::parse(&tool.raw) else { return tool.clone() };
    let meta = raw.get("_meta").and_then(|meta| Object::parse(meta).ok());
    let mut meta = meta.unwrap_or_default();
    meta.set("anthropic/alwaysLoad", Json::encode(&true));
    raw.set("_meta", meta.to_json());
    Tool { raw: raw.to_json(), ..tool.clone() }
}

/// Whether a function only reads: the operator says so, or it says so itself and
/// `is_trusted`.
pub(crate) fn only_reads(
    config: &Config,
    snapshot: &Snapshot,
    slot: Slot,
    is_trusted: impl FnOnce(&str, &Tool) -> bool,
) -> bool {
    let callee = snapshot.target(slot).callee;
    if config.read_only.iter().any(|pattern| pattern.means(callee.named())) {
        return true;
    }
    let tool = snapshot.catalog.tool(slot);
    let Annotations { read_only, .. } = tool.annotations;
    snapshot.catalog.is_builtin(slot) && read_only == Some(true)
        || read_only == Some(true) && is_trusted(&callee.path, tool)
}

#[cfg(test)]
mod tests;
