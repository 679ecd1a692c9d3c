//! What the operator's configuration names and nothing is called by: a rule, a
//! limit, a danger, a hidden name that does nothing now.
//!
//! It is told rather than refused: a server may list the tool tomorrow. What only
//! a server that was never listed could have is not judged, nor are addresses of
//! resources, which a server need not list to have them.

use crate::dispatch::Shapes;
use catalog::source::Role;
use catalog::{Catalog, Source, State, name, nearest};
use policy::pattern::{Breadth, Named, Pattern};
use policy::visibility::{self, Thing, What};
use policy::{cache, quota, retry, rules, trust};
use roster::Snapshot;
use skills::Library;
use tool::{Finding, Severity};

/// Every place of a configuration that names tools.
#[derive(Clone, Copy)]
pub struct Written<'a> {
    pub rules: &'a rules::Config,
    pub rates: &'a quota::Config,
    pub cache: &'a cache::Config,
    pub shapes: &'a Shapes,
    pub retry: &'a retry::Config,
    pub trust: &'a trust::Config,
    pub visibility: &'a visibility::Config,
}

/// One finding for each name that is nobody's in this snapshot.
pub(crate) fn findings(
    snapshot: &Snapshot,
    skills: &Library,
    written: &Written<'_>,
) -> Vec<Finding> {
    let patterns = written.patterns();
    let hidden = written.hidden();
    if patterns.is_empty() && hidden.is_empty() {
        return Vec::new();
    }
    let here = Here::of(snapshot, skills);
    let lost = patterns.iter().filter(|written| !here.has(written));
    let lost = lost.filter(|written| here.is_judged(written.text()));
    let mut findings: Vec<Finding> =
        lost.map(|written| here.finding(&written.place, written.text())).collect();
    let lost = hidden.iter().filter(|(_, what)| !here.has_thing(what));
    let lost = lost.filter(|(_, what)| here.is_thing_judged(what));
    findings.extend(lost.map(|(place, what)| here.finding(place, what.text())));
    findings
}

/// A pattern, and where in the configuration it stands.
struct Place<'a> {
    place: String,
    namespace: Option<&'a Pattern>,
    tool: Option<&'a Pattern>,
    /// Whether it lets something through, so that it has to be exact.
    allows: bool,
}

impl Place<'_> {
    fn text(&self) -> &str {
        self.tool.or(self.namespace).map_or("", Pattern::as_str)
    }

    fn names(&self, named: Named<'_>) -> bool {
        let breadth = if self.allows { Breadth::Exact } else { Breadth::Wide };
        let is_in =
            |pattern: &Pattern| pattern.names_namespace(named.upstream, named.name, breadth);
        let is_tool = |pattern: &Pattern| match self.allows {
            true => pattern.means(named),
            false => pattern.may_mean(named),
        };
        self.namespace.is_none_or(is_in) && self.tool.is_none_or(is_tool)
    }
}

impl<'a> Written<'a> {
    fn patterns(&self) -> Vec<Place<'a>> {
        let tool = |place: String, pattern: &'a Pattern, allows: bool| Place {
            place,
            namespace: None,
            tool: Some(pattern),
            allows,
        };
        let mut places = Vec::new();
        for (at, rule) in self.rules.rules.iter().enumerate() {
            let (namespace, tool) = (rule.namespace.as_ref(), rule.tool.as_ref());
            if namespace.or(tool).is_some() {
                let place = format!("controls.rule[{at}]");
                let allows = rule.action == rules::Action::Allow;
                places.push(Place { place, namespace, tool, allows });
            }
        }
        for (at, (pattern, _)) in self.rates.tools.iter().enumerate() {
            places.push(tool(format!("controls.rate[{at}]"), pattern, false));
        }
        for (at, pattern) in self.cache.allow.iter().flatten().enumerate() {
            places.push(tool(format!("controls.cache.allow[{at}]"), pattern, true));
        }
        for (at, (pattern, _)) in self.shapes.0.iter().enumerate() {
            places.push(tool(format!("shape[{at}]"), pattern, true));
        }
        for (at, pattern) in self.retry.repeatable.iter().enumerate() {
            places.push(tool(format!("controls.retry.repeatable[{at}]"), pattern, true));
        }
        for (at, (pattern, danger)) in self.trust.rules.iter().enumerate() {
            let allows = *danger == trust::Danger::Safe;
            places.push(tool(format!("trust.rule[{at}]"), pattern, allows));
        }
        places
    }

    fn hidden(&self) -> Vec<(String, &'a What)> {
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

/// What there is.
struct Here<'a> {
    snapshot: &'a Snapshot,
    skills: &'a Library,
    /// Labels of upstreams that never listed anything.
    unlisted: Vec<&'a str>,
}

impl<'a> Here<'a> {
    fn of(snapshot: &'a Snapshot, skills: &'a Library) -> Here<'a> {
        let is_unlisted = |source: &&Source| {
            let listing = &source.listing;
            matches!(source.state, State::Unavailable { .. })
                && listing.tools.is_empty()
                && listing.resources.is_empty()
                && listing.prompts.is_empty()
        };
        let sources = snapshot.catalog.sources().iter();
        let unlisted = sources.filter(is_unlisted).map(|source| source.label.as_str()).collect();
        Here { snapshot, skills, unlisted }
    }

    fn catalog(&self) -> &'a Catalog {
        &self.snapshot.catalog
    }

    fn has(&self, written: &Place<'_>) -> bool {
        let catalog = self.catalog();
        let mut functions = catalog.slots().map(|slot| self.snapshot.target(slot));
        functions.any(|target| written.names(target.callee.named()))
            || catalog.sources().iter().enumerate().any(|(at, source)| {
                let resources = source.listing.resources.iter();
                let mut resources = resources.map(|one| self.snapshot.resource(at, &one.uri));
                let prompts = source.listing.prompts.iter();
                let mut prompts = prompts.map(|one| self.snapshot.prompt(at, &one.name));
                resources.any(|target| written.names(target.callee.named()))
                    || prompts.any(|target| written.names(target.callee.named()))
            })
    }

    /// Whether it is known of everything that a pattern could name whether it is
    /// there.
    fn is_judged(&self, text: &str) -> bool {
        // A server may have resources that it does not list.
        let is_address = text.contains("://");
        if is_address && self.offers("resources") {
            return false;
        }
        self.unlisted.is_empty() || {
            let label = text.split([':', '/', '.']).next().unwrap_or_default();
            let listed = self.catalog().sources().iter().map(|source| source.label.as_str());
            let mut listed = listed.filter(|label| !self.unlisted.contains(label));
            listed.any(|known| name::means(known, label))
        }
    }

    fn offers(&self, capability: &str) -> bool {
        let has = |source: &Source| source.listing.server.capabilities.member(capability).is_some();
        self.catalog().sources().iter().any(has)
    }

    fn has_thing(&self, what: &What) -> bool {
        let catalog = self.catalog();
        let mut namespaces = catalog.namespaces().iter().filter(|one| !one.path.is_empty());
        let mut skills = self.skills.skills().iter();
        namespaces.any(|one| what.speaks_of(&Thing::Namespace(&one.path)))
            || catalog.slots().any(|slot| what.speaks_of(&Thing::function(catalog, slot)))
            || skills.any(|skill| {
                what.speaks_of(&Thing::Skill { namespace: &skill.namespace, name: &skill.name })
            })
            || catalog.sources().iter().any(|source| {
                let (upstream, listing) = (source.label.as_str(), &source.listing);
                let mut resources = listing.resources.iter().map(|one| &one.uri);
                let mut templates = listing.templates.iter().map(|one| &one.uri_template);
                let mut prompts = listing.prompts.iter().map(|one| &one.name);
                resources.any(|uri| what.speaks_of(&Thing::Resource { upstream, uri }))
                    || templates.any(|uri| what.speaks_of(&Thing::Resource { upstream, uri }))
                    || prompts.any(|name| what.speaks_of(&Thing::Prompt { upstream, name }))
            })
    }

    fn is_thing_judged(&self, what: &What) -> bool {
        match what {
            What::Resource(_) => !self.offers("resources"),
            // Which skills a server has is asked only when somebody wants one.
            What::Skill(_) => !self.offers("extensions") && self.unlisted.is_empty(),
            What::Namespace(pattern) | What::Function(pattern) | What::Prompt(pattern) => {
                self.is_judged(pattern.as_str())
            }
        }
    }

    fn finding(&self, place: &str, text: &str) -> Finding {
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
        Finding::new(Severity::Warning, "matches-nothing", place, message)
    }
}

#[cfg(test)]
mod tests;
