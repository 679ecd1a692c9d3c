//! What this gatelet says of itself to anybody: its manifest.
//!
//! It names what an anonymous caller sees, and is drawn anew whenever that may
//! have changed. The page, the resource and the signature show one value.

use std::collections::BTreeSet;

use ::skills::Library;
use catalog::{Catalog, name};
use parking_lot::Mutex;
use policy::visibility::Thing;
use tool::Identity;
use web::manifest::sign::SecretKey;
use web::manifest::{Advertised, Authentication, CASH_VERSION, Manifest, Scheme, Suggested};

use crate::mounts::MountedServer;
use config::Config;

/// The manifest of a gatelet.
pub(super) struct OwnManifest {
    /// As gatelet was started: where it is, who may come in and who runs it
    /// count until it ends.
    start: Config,
    shown: Mutex<Option<Manifest>>,
}

/// What may be told.
pub(super) struct Contents<'a> {
    pub(super) config: &'a Config,
    pub(super) mounts: &'a [MountedServer],
    pub(super) skills: &'a Library,
    /// What is known of the functions behind gatelet.
    pub(super) catalog: Option<&'a Catalog>,
}

impl OwnManifest {
    pub(super) fn new(start: &Config) -> OwnManifest {
        OwnManifest { start: start.clone(), shown: Mutex::default() }
    }

    /// What is told now; nothing before it was first drawn.
    pub(super) fn shown(&self) -> Option<Manifest> {
        self.shown.lock().clone()
    }

    /// Draws it anew. Its date is the day on which it last changed.
    pub(super) fn draw(&self, contents: &Contents<'_>) -> Manifest {
        let mut shown = self.shown.lock();
        let mut fresh = self.unsigned(contents);
        if let Some(before) = &*shown {
            let today = std::mem::replace(&mut fresh.last_updated, before.last_updated.clone());
            if fresh == (Manifest { signature: None, ..before.clone() }) {
                return before.clone();
            }
            fresh.last_updated = today;
        }
        let fresh = match self.start.manifest.key.as_deref().map(SecretKey::parse) {
            Some(Ok(key)) => key.sign(&fresh),
            Some(Err(_)) | None => fresh,
        };
        shown.insert(fresh).clone()
    }

    fn unsigned(&self, contents: &Contents<'_>) -> Manifest {
        let start = &self.start;
        let base = start.auth.public_url.clone().unwrap_or_else(|| start.serve.url());
        let closed = start.auth.required || start.auth.scope.is_some();
        let scheme = match (closed, start.auth.issuers.is_empty()) {
            (false, _) => None,
            (true, true) => Some(Scheme::ApiKey),
            (true, false) => Some(Scheme::Bearer),
        };
        let docs_url = start.manifest.docs_url.clone();
        Manifest {
            cash_version: CASH_VERSION.to_owned(),
            last_updated: jiff::Zoned::now().date().to_string(),
            publisher: start.manifest.publisher.clone(),
            copyright: start.manifest.copyright.clone(),
            endpoint: format!("{base}/mcp"),
            cache_ttl: start.manifest.cache_ttl,
            authentication: scheme.map(|scheme| Authentication { scheme, docs_url }),
            namespaces: contents.namespaces(),
            skills: contents.skills(),
            signature: None,
            whole: None,
        }
    }
}

impl Contents<'_> {
    fn namespaces(&self) -> Vec<Suggested> {
        let own = self.config.builtin_labels().into_iter();
        let own = own.map(|(label, description)| suggested(&label, Some(description)));
        let upstreams = self.config.upstreams.iter();
        let upstreams = upstreams.map(|one| suggested(&one.label, one.description.as_deref()));
        let mounts = self.mounts.iter();
        let mounts = mounts.map(|place| suggested(&place.label, place.description().as_deref()));
        let gate = "This gate: search, long results in parts, health.";
        let gate = suggested(roster::BUILTIN, Some(gate));
        let all = own.chain(upstreams).chain(mounts).chain([gate.clone()]);
        let mut seen: Vec<Suggested> = all.filter(|one| self.sees(&one.suggested)).collect();
        if seen.is_empty() {
            // A manifest names at least one. This one every gatelet has, so that
            // nothing is told by it.
            seen.push(gate);
        }
        seen
    }

    /// Whether an anonymous caller sees a namespace: something in it, or where
    /// nothing is known of it yet, itself.
    fn sees(&self, label: &str) -> bool {
        let knows = |thing: &Thing<'_>| self.config.visibility.shows(&Identity::default(), thing);
        let is_in = |path: &str| name::same(path.split('.').next().unwrap_or_default(), label);
        let known = self.catalog.into_iter().flat_map(|catalog| {
            let slots = catalog.slots().filter(move |slot| is_in(catalog.path(*slot)));
            slots.map(move |slot| Thing::function(catalog, slot))
        });
        let mut known = known.peekable();
        match known.peek() {
            None => knows(&Thing::Namespace(label)),
            Some(_) => known.into_iter().any(|function| knows(&function)),
        }
    }

    fn skills(&self) -> Vec<Advertised> {
        let mut named = BTreeSet::new();
        let skills = self.skills.skills().iter().filter(|skill| {
            let thing = Thing::Skill { namespace: &skill.namespace, name: &skill.name };
            let known = self.config.visibility.shows(&Identity::default(), &thing);
            known && !skill.is_at_upstream() && named.insert(skill.path())
        });
        let advertised = skills.map(|skill| {
            let line = skill.description.lines().next().unwrap_or_default().trim();
            let description = if line.is_empty() { skill.title.trim() } else { line };
            Advertised { name: skill.path(), description: description.to_owned() }
        });
        advertised.take(MOST_SKILLS).collect()
    }
}

/// So many skills are advertised; `skill()` lists all.
const MOST_SKILLS: usize = 100;

fn suggested(label: &str, description: Option<&str>) -> Suggested {
    let legal = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let line = description.and_then(|text| text.lines().next()).unwrap_or_default().trim();
    let line = if line.is_empty() { "Tools of an MCP server." } else { line };
    Suggested { suggested: label.chars().map(legal).collect(), description: line.to_owned() }
}
