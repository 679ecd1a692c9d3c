//! The manifest in which this gatelet describes itself: its endpoint, and the namespaces
//! and skills that an anonymous caller sees.
//!
//! It is updated whenever those may have changed. The HTTP page, the MCP resource and the
//! signature all come from the one manifest that is published here.

use std::collections::BTreeSet;

use ::skills::Library;
use catalog::{Catalog, name};
use parking_lot::Mutex;
use policy::visibility::Item;
use tool::Identity;
use web::manifest::sign::SecretKey;
use web::manifest::{
    AdvertisedSkill, Authentication, CASH_VERSION, Manifest, Scheme, SuggestedNamespace,
};

use crate::mounts::MountedServer;
use config::Config;

/// The manifest of this gatelet.
pub(super) struct OwnManifest {
    /// The configuration at the start: endpoint, authentication and publisher do not
    /// change while gatelet runs.
    start: Config,
    published: Mutex<Option<Manifest>>,
}

/// What a manifest is made from.
pub(super) struct ManifestInputs<'a> {
    pub(super) config: &'a Config,
    pub(super) mounts: &'a [MountedServer],
    pub(super) skills: &'a Library,
    pub(super) catalog: Option<&'a Catalog>,
}

impl OwnManifest {
    pub(super) fn new(start: &Config) -> OwnManifest {
        OwnManifest { start: start.clone(), published: Mutex::default() }
    }

    /// The manifest as it was last updated; `None` before that.
    pub(super) fn published(&self) -> Option<Manifest> {
        self.published.lock().clone()
    }

    /// Makes, signs and publishes the manifest anew, unless nothing has changed. Its
    /// date is the day of its last change.
    pub(super) fn update(&self, inputs: &ManifestInputs<'_>) -> Manifest {
        let mut published = self.published.lock();
        let mut fresh = self.unsigned(inputs);
        if let Some(before) = &*published {
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
        published.insert(fresh).clone()
    }

    fn unsigned(&self, inputs: &ManifestInputs<'_>) -> Manifest {
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
            namespaces: inputs.namespaces(),
            skills: inputs.skills(),
            signature: None,
            whole: None,
        }
    }
}

impl ManifestInputs<'_> {
    fn namespaces(&self) -> Vec<SuggestedNamespace> {
        let own = self.config.builtin_labels().into_iter();
        let own = own.map(|(label, description)| suggested(&label, Some(description)));
        let upstreams = self.config.upstreams.iter();
        let upstreams = upstreams.map(|one| suggested(&one.label, one.description.as_deref()));
        let mounts = self.mounts.iter();
        let mounts = mounts.map(|place| suggested(&place.label, place.description().as_deref()));
        let gate = "This gate: search, long results in parts, health.";
        let gate = suggested(roster::BUILTIN, Some(gate));
        let all = own.chain(upstreams).chain(mounts).chain([gate.clone()]);
        let mut visible: Vec<SuggestedNamespace> =
            all.filter(|one| self.is_visible(&one.suggested)).collect();
        if visible.is_empty() {
            // A manifest must name at least one namespace. Every gatelet has this one,
            // so it gives nothing away.
            visible.push(gate);
        }
        visible
    }

    /// Whether an anonymous caller sees something in a namespace, or, while its
    /// functions are not known, the namespace itself.
    fn is_visible(&self, label: &str) -> bool {
        let shows = |thing: &Item<'_>| self.config.visibility.shows(&Identity::default(), thing);
        let is_in = |path: &str| name::same(path.split('.').next().unwrap_or_default(), label);
        let functions = self.catalog.into_iter().flat_map(|catalog| {
            let slots = catalog.slots().filter(move |slot| is_in(catalog.path(*slot)));
            slots.map(move |slot| Item::function(catalog, slot))
        });
        let mut functions = functions.peekable();
        match functions.peek() {
            None => shows(&Item::Namespace(label)),
            Some(_) => functions.into_iter().any(|function| shows(&function)),
        }
    }

    fn skills(&self) -> Vec<AdvertisedSkill> {
        let mut paths = BTreeSet::new();
        let skills = self.skills.skills().iter().filter(|skill| {
            let thing = Item::Skill { namespace: &skill.namespace, name: &skill.name };
            let is_visible = self.config.visibility.shows(&Identity::default(), &thing);
            is_visible && !skill.is_at_upstream() && paths.insert(skill.path())
        });
        let advertised = skills.map(|skill| {
            let line = skill.description.lines().next().unwrap_or_default().trim();
            let description = if line.is_empty() { skill.title.trim() } else { line };
            AdvertisedSkill { name: skill.path(), description: description.to_owned() }
        });
        advertised.take(MAX_SKILLS).collect()
    }
}

/// How many skills the manifest advertises; the tool `skill` lists all.
const MAX_SKILLS: usize = 100;

/// The entry of a namespace, with a legal name and one line of description.
fn suggested(label: &str, description: Option<&str>) -> SuggestedNamespace {
    let legal = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let line = description.and_then(|text| text.lines().next()).unwrap_or_default().trim();
    let line = if line.is_empty() { "Tools of an MCP server." } else { line };
    SuggestedNamespace {
        suggested: label.chars().map(legal).collect(),
        description: line.to_owned(),
    }
}
