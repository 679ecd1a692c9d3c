//! Chooses the functions that are listed with their whole definition beside gatelet's own
//! tools, and can be called by name.
//!
//! The operator pins them, they are the most used, or they show a user
//! interface, which hosts render only for tools that are listed and called
//! directly (MCP Apps). If everything that a caller sees is small, all of it
//! is listed. Listing changes nothing else: the same visibility, trust, rules and gate
//! hold for a call.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use catalog::{Catalog, Slot, tokens};
use tool::{Annotations, Client, Finding, Json, Object, Severity, Tool};

use super::by_name::ToolNames;
use super::groups;
use crate::learning::UsageStore;
use policy::pattern::Pattern;
use policy::visibility::CallerView;
use roster::Snapshot;

/// Which functions are listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// On `auto`, everything is listed if it costs less than this many tokens.
    pub everything_below: usize,
    /// The functions that the operator wants listed, most wanted first.
    pub pinned: Vec<Pattern>,
    /// How many of the most used functions are listed.
    pub most_used: usize,
    /// The most tokens that pinned and most used functions may cost together.
    pub tokens: usize,
    /// Whether there is a tool `call_read`, which runs only functions that only read.
    pub read_tool: bool,
    /// The functions that only read, according to the operator.
    pub read_only: Vec<Pattern>,
    /// Whether namespaces are served as groups.
    pub groups: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            // Where it costs least at worst, by docs/benchmarks (decision 087).
            everything_below: 1_100,
            pinned: Vec::new(),
            most_used: 0,
            tokens: 2_000,
            read_tool: false,
            read_only: Vec::new(),
            groups: false,
        }
    }
}

/// The most functions with a user interface that are listed, so that a server cannot
/// flood a model.
const MAX_INTERFACES: usize = 64;

/// Chooses listed functions by the current configuration.
pub(crate) struct ListedFunctions {
    config: ArcSwap<Config>,
    /// How often the configuration was replaced.
    edition: AtomicU64,
    /// Knows which functions were used most.
    usage: Arc<dyn UsageStore>,
}

/// What a surface's listing depends on beside the snapshot and the caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Variant {
    edition: u64,
    pub(crate) client: ClientKind,
}

/// The properties of a client that listings depend on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct ClientKind {
    /// It connected on `auto`, so that everything may be listed.
    pub(crate) auto: bool,
    /// It renders user interfaces.
    pub(crate) interfaces: bool,
}

impl ClientKind {
    pub(crate) fn new(client: &Client, auto: bool) -> ClientKind {
        let extensions = client.capabilities.member("extensions");
        let interfaces = extensions.is_some_and(|all| all.member(INTERFACE).is_some());
        ClientKind { auto, interfaces }
    }
}

/// The extension that clients declare if they render user interfaces.
const INTERFACE: &str = "io.modelcontextprotocol/ui";

/// The chosen functions as listed tools, and findings about those left out.
#[derive(Debug, Default)]
pub(crate) struct ListedTools {
    pub(crate) tools: Vec<Tool>,
    pub(crate) findings: Vec<Finding>,
}

impl ListedFunctions {
    pub(crate) fn new(config: Config, usage: Arc<dyn UsageStore>) -> ListedFunctions {
        ListedFunctions { config: ArcSwap::from_pointee(config), edition: AtomicU64::new(0), usage }
    }

    /// Replaces the configuration. Listings are made anew even if it is the same,
    /// because other things they depend on may have changed with it.
    pub(crate) fn replace(&self, config: Config) {
        self.config.store(Arc::new(config));
        self.edition.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn config(&self) -> Arc<Config> {
        self.config.load_full()
    }

    /// Returns what listings for such a client depend on.
    pub(crate) fn variant(&self, client: ClientKind) -> Variant {
        Variant { edition: self.edition.load(Ordering::Relaxed), client }
    }

    /// Returns a tool as it is listed: with its group, if groups are on.
    pub(crate) fn with_group(&self, snapshot: &Snapshot, slot: Option<Slot>, tool: &Tool) -> Tool {
        match slot.filter(|_| self.config.load().groups) {
            Some(slot) => groups::with_group(tool, snapshot.catalog.path(slot)),
            None => tool.clone(),
        }
    }

    /// Returns whether functions may be called by name: only if some can be listed for
    /// such a client. Which ones are may have changed since the client listed them.
    pub(crate) fn lists_any(&self, client: ClientKind) -> bool {
        let config = self.config.load();
        let chosen = !config.pinned.is_empty() || 0 < config.most_used;
        chosen || client.interfaces || (client.auto && 0 < config.everything_below)
    }

    /// Returns the functions that are listed beside gatelet's own tools.
    pub(crate) fn listed(
        &self,
        snapshot: &Snapshot,
        client: ClientKind,
        visible: &CallerView<'_>,
    ) -> ListedTools {
        let config = self.config();
        let sees = |slot: Slot| visible.shows_function(&snapshot.catalog, slot);
        let candidates = Candidates { snapshot, config: &config, sees: &sees };
        let mut listed = ListedTools::default();
        let mut loaded = BTreeSet::new();
        if client.auto && candidates.is_small() {
            loaded.extend(candidates.all());
        } else {
            let used = match config.most_used {
                0 => Vec::new(),
                most => self.usage.read().most_used(most),
            };
            loaded = candidates.choose_within_budget(&used, &mut listed.findings);
        }
        let interfaces = match client.interfaces {
            true => candidates.choose_interfaces(&mut listed.findings),
            false => BTreeSet::new(),
        };
        for (slot, tool) in ToolNames::of(snapshot).tools() {
            if loaded.contains(slot) {
                listed.tools.push(always_loaded(&self.with_group(snapshot, Some(*slot), tool)));
            } else if interfaces.contains(slot) {
                listed.tools.push(self.with_group(snapshot, Some(*slot), tool));
            }
        }
        // The order does not depend on other upstreams.
        listed.tools.sort_by(|a, b| a.name.cmp(&b.name));
        listed
    }
}

/// The functions that a caller sees, to choose from.
struct Candidates<'a> {
    snapshot: &'a Snapshot,
    config: &'a Config,
    sees: &'a dyn Fn(Slot) -> bool,
}

impl Candidates<'_> {
    fn all(&self) -> impl Iterator<Item = Slot> + '_ {
        let catalog = &self.snapshot.catalog;
        catalog.slots().filter(|slot| !catalog.is_builtin(*slot) && (self.sees)(*slot))
    }

    /// Returns whether all functions cost fewer tokens than the threshold. If they are
    /// far above it, tokens are not counted: a token never has eight bytes on average.
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

    /// Chooses pinned functions, then the most used ones, as far as the budget goes.
    fn choose_within_budget(&self, used: &[String], findings: &mut Vec<Finding>) -> BTreeSet<Slot> {
        let (mut chosen, mut left) = (BTreeSet::new(), self.config.tokens);
        for pattern in &self.config.pinned {
            let named =
                |slot: &Slot| pattern.matches_exactly(self.snapshot.target(*slot).callee.names());
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

    /// Chooses a function if its cost is within what is `left`. Returns whether it is
    /// chosen.
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

    /// Chooses tools that show a user interface, or belong to one.
    fn choose_interfaces(&self, findings: &mut Vec<Finding>) -> BTreeSet<Slot> {
        let catalog = &self.snapshot.catalog;
        let mut all = self.all().filter(|slot| has_interface(catalog.tool(*slot)));
        let shown = all.by_ref().take(MAX_INTERFACES).collect();
        let more = all.count();
        if 0 < more {
            let message =
                format!("{more} more tools have user interfaces; {MAX_INTERFACES} are listed");
            findings.push(Finding::new(Severity::Warning, "interfaces-left-out", "tools", message));
        }
        shown
    }
}

/// Counts the tokens of a definition as models read it.
fn cost(catalog: &Catalog, slot: Slot) -> usize {
    let tool = catalog.tool(slot);
    let Ok(mut raw) = Object::parse(&tool.raw) else { return tokens::count(tool.raw.as_str()) };
    raw.remove("_meta");
    tokens::count(raw.to_json().as_str())
}

/// Returns whether a tool declares a user interface, in either spelling.
pub(crate) fn has_interface(tool: &Tool) -> bool {
    // A text search comes first, because few tools have it.
    if !tool.raw.mentions("\"ui\"") && !tool.raw.mentions("\"ui/resourceUri\"") {
        return false;
    }
    let Some(meta) = tool.raw.member("_meta") else { return false };
    meta.member("ui").is_some_and(|ui| ui.is_object())
        || meta.member_as::<String>("ui/resourceUri").is_some()
}

/// Adds to a definition that hosts must not defer it.
fn always_loaded(tool: &Tool) -> Tool {
    let Ok(mut raw) = Object::parse(&tool.raw) else { return tool.clone() };
    let meta = raw.get("_meta").and_then(|meta| Object::parse(meta).ok());
    let mut meta = meta.unwrap_or_default();
    meta.set("anthropic/alwaysLoad", Json::encode(&true));
    raw.set("_meta", meta.to_json());
    Tool { raw: raw.to_json(), ..tool.clone() }
}

/// Returns whether a function only reads: according to the operator, or according to its
/// own annotations if `is_trusted` says that these are trusted.
pub(crate) fn only_reads(
    config: &Config,
    snapshot: &Snapshot,
    slot: Slot,
    is_trusted: impl FnOnce(&str, &Tool) -> bool,
) -> bool {
    let callee = snapshot.target(slot).callee;
    if config.read_only.iter().any(|pattern| pattern.matches_exactly(callee.names())) {
        return true;
    }
    let tool = snapshot.catalog.tool(slot);
    let Annotations { read_only, .. } = tool.annotations;
    snapshot.catalog.is_builtin(slot) && read_only == Some(true)
        || read_only == Some(true) && is_trusted(&callee.path, tool)
}

#[cfg(test)]
mod tests;
