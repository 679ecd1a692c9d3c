//! Finds patterns in the operator's configuration that match nothing, so that a rule, a
//! limit or a hidden name has no effect.
//!
//! They are reported rather than refused: a server may list the tool tomorrow.
//! Patterns that may match something of a server that was never listed are not
//! reported, nor are URIs of resources, which a server need not list to have them.

use crate::dispatch::DefaultPicks;
use catalog::source::Role;
use catalog::{Catalog, Source, State, name, nearest};
use policy::pattern::{Breadth, Names, Pattern};
use policy::visibility::{self, Item, ItemPattern};
use policy::{cache, quota, retry, rules, trust};
use roster::Snapshot;
use skills::Library;
use tool::{Finding, Severity};

/// The parts of a configuration that have patterns of names in them.
#[derive(Clone, Copy)]
pub struct ConfiguredPatterns<'a> {
    pub rules: &'a rules::Config,
    pub rates: &'a quota::Config,
    pub cache: &'a cache::Config,
    pub default_picks: &'a DefaultPicks,
    pub retry: &'a retry::Config,
    pub trust: &'a trust::Config,
    pub visibility: &'a visibility::Config,
}

/// Returns one finding for each pattern that matches nothing in this snapshot.
pub(crate) fn findings(
    snapshot: &Snapshot,
    skills: &Library,
    configured: &ConfiguredPatterns<'_>,
) -> Vec<Finding> {
    let patterns = configured.patterns();
    let hidden = configured.visibility_selectors();
    if patterns.is_empty() && hidden.is_empty() {
        return Vec::new();
    }
    let known = KnownNames::new(snapshot, skills);
    let unmatched = patterns.iter().filter(|one| !known.matches(one));
    let unmatched = unmatched
        .filter(|one| known.is_decidable(one.text()) || known.is_in_unknown_namespace(one));
    let mut findings: Vec<Finding> =
        unmatched.map(|one| known.finding(&one.key, one.text())).collect();
    let unmatched = hidden.iter().filter(|(_, what)| !known.matches_selector(what));
    let unmatched = unmatched.filter(|(_, what)| known.is_selector_decidable(what));
    findings.extend(unmatched.map(|(key, what)| known.finding(key, what.text())));
    findings
}

/// A pattern of the configuration.
struct ConfiguredPattern<'a> {
    /// Its key in the configuration, such as `controls.rule[0]`.
    key: String,
    namespace: Option<&'a Pattern>,
    tool: Option<&'a Pattern>,
    /// Whether it allows something, so that it has to match exactly.
    allows: bool,
}

impl ConfiguredPattern<'_> {
    fn text(&self) -> &str {
        self.tool.or(self.namespace).map_or("", Pattern::as_str)
    }

    fn matches(&self, named: Names<'_>) -> bool {
        let breadth = if self.allows { Breadth::Exact } else { Breadth::Wide };
        let is_in =
            |pattern: &Pattern| pattern.matches_namespace(named.upstream, named.name, breadth);
        let is_tool = |pattern: &Pattern| match self.allows {
            true => pattern.matches_exactly(named),
            false => pattern.may_match(named),
        };
        self.namespace.is_none_or(is_in) && self.tool.is_none_or(is_tool)
    }
}

impl<'a> ConfiguredPatterns<'a> {
    fn patterns(&self) -> Vec<ConfiguredPattern<'a>> {
        let tool = |key: String, pattern: &'a Pattern, allows: bool| ConfiguredPattern {
            key,
            namespace: None,
            tool: Some(pattern),
            allows,
        };
        let mut patterns = Vec::new();
        for (at, rule) in self.rules.rules.iter().enumerate() {
            let (namespace, tool) = (rule.namespace.as_ref(), rule.tool.as_ref());
            if namespace.or(tool).is_some() {
                let key = format!("controls.rule[{at}]");
                let allows = rule.action == rules::Action::Allow;
                patterns.push(ConfiguredPattern { key, namespace, tool, allows });
            }
        }
        for (at, (pattern, _)) in self.rates.tools.iter().enumerate() {
            patterns.push(tool(format!("controls.rate[{at}]"), pattern, false));
        }
        for (at, pattern) in self.cache.allow.iter().flatten().enumerate() {
            patterns.push(tool(format!("controls.cache.allow[{at}]"), pattern, true));
        }
        for (at, (pattern, _)) in self.default_picks.0.iter().enumerate() {
            patterns.push(tool(format!("shape[{at}]"), pattern, true));
        }
        for (at, pattern) in self.retry.repeatable.iter().enumerate() {
            patterns.push(tool(format!("controls.retry.repeatable[{at}]"), pattern, true));
        }
        for (at, (pattern, danger)) in self.trust.rules.iter().enumerate() {
            let allows = *danger == trust::Danger::Safe;
            patterns.push(tool(format!("trust.rule[{at}]"), pattern, allows));
        }
        patterns
    }

    fn visibility_selectors(&self) -> Vec<(String, &'a ItemPattern)> {
        let mut places = Vec::new();
        for (at, rule) in self.visibility.rules.iter().enumerate() {
            for (key, list) in [("show", &rule.show), ("hide", &rule.hide)] {
                let listed = list.iter().enumerate();
                let place = |i| format!("visibility.rule[{at}].{key}[{i}]");
                places.extend(listed.map(|(i, what)| (place(i), what)));
            }
        }
        places
    }
}

/// Everything that exists, for patterns to match.
struct KnownNames<'a> {
    snapshot: &'a Snapshot,
    skills: &'a Library,
    /// The labels of upstreams that never listed anything.
    unlisted: Vec<&'a str>,
}

impl<'a> KnownNames<'a> {
    fn new(snapshot: &'a Snapshot, skills: &'a Library) -> KnownNames<'a> {
        let is_unlisted = |source: &&Source| {
            let listing = &source.listing;
            matches!(source.state, State::Unavailable { .. })
                && listing.tools.is_empty()
                && listing.resources.is_empty()
                && listing.prompts.is_empty()
        };
        let sources = snapshot.catalog.sources().iter();
        let unlisted = sources.filter(is_unlisted).map(|source| source.label.as_str()).collect();
        KnownNames { snapshot, skills, unlisted }
    }

    fn catalog(&self) -> &'a Catalog {
        &self.snapshot.catalog
    }

    fn matches(&self, pattern: &ConfiguredPattern<'_>) -> bool {
        let catalog = self.catalog();
        let mut functions = catalog.slots().map(|slot| self.snapshot.target(slot));
        functions.any(|target| pattern.matches(target.callee.names()))
            || catalog.sources().iter().enumerate().any(|(at, source)| {
                let resources = source.listing.resources.iter();
                let mut resources = resources.map(|one| self.snapshot.resource(at, &one.uri));
                let prompts = source.listing.prompts.iter();
                let mut prompts = prompts.map(|one| self.snapshot.prompt(at, &one.name));
                resources.any(|target| pattern.matches(target.callee.names()))
                    || prompts.any(|target| pattern.matches(target.callee.names()))
            })
    }

    /// Returns whether everything that a pattern could match is listed.
    fn is_decidable(&self, text: &str) -> bool {
        // A server may have resources that it does not list.
        let is_address = text.contains("://");
        if is_address && self.offers("resources") {
            return false;
        }
        self.unlisted.is_empty() || self.names_nobody(text) || {
            let label = text.split([':', '/', '.']).next().unwrap_or_default();
            let listed = self.catalog().sources().iter().map(|source| source.label.as_str());
            let mut listed = listed.filter(|label| !self.unlisted.contains(label));
            listed.any(|known| name::means(known, label))
        }
    }

    /// Returns whether a pattern begins with a label, as only `label/…`, `label:…` and
    /// `label.*` certainly do, and no source is called that.
    fn names_nobody(&self, text: &str) -> bool {
        let label = text.split(['/', ':']).next().unwrap_or_default();
        let label = if label.len() < text.len() { Some(label) } else { text.strip_suffix(".*") };
        !text.contains("://") && label.is_some_and(|label| self.is_nobody(label))
    }

    fn is_in_unknown_namespace(&self, pattern: &ConfiguredPattern<'_>) -> bool {
        let label = pattern.namespace.map(|namespace| namespace.as_str().split('.').next());
        label.flatten().is_some_and(|label| self.is_nobody(label))
    }

    fn is_nobody(&self, label: &str) -> bool {
        let mut sources = self.catalog().sources().iter();
        !label.contains(['*', '?']) && !sources.any(|source| name::means(&source.label, label))
    }

    fn offers(&self, capability: &str) -> bool {
        let has = |source: &Source| source.listing.server.capabilities.member(capability).is_some();
        self.catalog().sources().iter().any(has)
    }

    fn matches_selector(&self, what: &ItemPattern) -> bool {
        let catalog = self.catalog();
        let mut namespaces = catalog.namespaces().iter().filter(|one| !one.path.is_empty());
        let mut skills = self.skills.skills().iter();
        namespaces.any(|one| what.may_match(&Item::Namespace(&one.path)))
            || catalog.slots().any(|slot| what.may_match(&Item::function(catalog, slot)))
            || skills.any(|skill| {
                what.may_match(&Item::Skill { namespace: &skill.namespace, name: &skill.name })
            })
            || catalog.sources().iter().any(|source| {
                let (upstream, listing) = (source.label.as_str(), &source.listing);
                let mut resources = listing.resources.iter().map(|one| &one.uri);
                let mut templates = listing.templates.iter().map(|one| &one.uri_template);
                let mut prompts = listing.prompts.iter().map(|one| &one.name);
                resources.any(|uri| what.may_match(&Item::Resource { upstream, uri }))
                    || templates.any(|uri| what.may_match(&Item::Resource { upstream, uri }))
                    || prompts.any(|name| what.may_match(&Item::Prompt { upstream, name }))
            })
    }

    fn is_selector_decidable(&self, what: &ItemPattern) -> bool {
        match what {
            ItemPattern::Resource(_) => !self.offers("resources"),
            // Which skills a server has is asked only when somebody wants one.
            ItemPattern::Skill(_) => !self.offers("extensions") && self.unlisted.is_empty(),
            ItemPattern::Namespace(pattern)
            | ItemPattern::Function(pattern)
            | ItemPattern::Prompt(pattern) => self.is_decidable(pattern.as_str()),
        }
    }

    fn finding(&self, key: &str, text: &str) -> Finding {
        let catalog = self.catalog();
        let builtin = |slot| catalog.source(slot).role == Role::Builtin;
        let slots = catalog.slots().filter(|slot| !builtin(*slot));
        let shown = |slot| format!("{}.{}", catalog.path(slot), catalog.function(slot).name);
        let names: Vec<String> = slots.map(shown).collect();
        let bare = |name: &'_ str| name.rsplit('.').next().unwrap_or_default().to_owned();
        let near = nearest::nearest(text, names.iter().map(String::as_str), 1);
        let near = near
            .first()
            .map(|name| (*name).to_owned())
            .or_else(|| names.iter().find(|name| name::same(&bare(name), &bare(text))).cloned());
        let hint = near.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
        let text = catalog::summary::cut(text, 200);
        let message = format!("`{text}` names nothing that is here now, so it does nothing{hint}");
        Finding::new(Severity::Warning, "matches-nothing", key, message)
    }
}

#[cfg(test)]
mod tests;
