//! What one request sees: a catalog and the links behind it, of one moment.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use catalog::ItemRef;
use catalog::index::Meaning;
use catalog::{Catalog, Directory, Slot, Source, id};
use futures::future::Either;
use tool::{Ask, Context, Failure, Finding, Reply, Resource};

use crate::derived::Derived;
use crate::link::Link;
use crate::primitives::Primitives;
use policy::call::{Callee, Target, What};
use policy::validate::ValidCall;

/// The reserved label of the built-in namespace.
pub const BUILTIN: &str = "gatelet";

/// The built-in namespace: listed, documented, checked and called like an
/// upstream, but answered in this process, with the snapshot that the request
/// sees.
#[async_trait]
pub trait Builtin: Send + Sync {
    /// How it stands in a catalog, under the label [`BUILTIN`].
    fn source(&self) -> Source;

    /// Answers one question.
    async fn ask(&self, ask: Ask, snapshot: &Snapshot, context: &Context)
    -> Result<Reply, Failure>;
}

/// A catalog with the way to everything in it.
pub struct Snapshot {
    /// Counts the snapshots of a hall.
    pub generation: u64,
    pub catalog: Arc<Catalog>,
    pub findings: Vec<Finding>,
    directory: OnceLock<Directory>,
    primitives: OnceLock<Primitives>,
    /// What others made of it.
    derived: Derived,
    /// What each function is called, by slot, found out by its first call.
    callees: Box<[OnceLock<Arc<Callee>>]>,
    /// The upstreams, in the order of the catalog's sources after the first.
    links: Vec<Arc<Link>>,
    builtin: Arc<dyn Builtin>,
}

impl Snapshot {
    /// Lists the links as they stand. The built-in functions are the first
    /// source, so the catalog's sources and the links keep in step.
    ///
    /// What earlier catalogs found out about the same listings is taken over.
    pub(crate) fn take(
        generation: u64,
        links: Vec<Arc<Link>>,
        builtin: Arc<dyn Builtin>,
        meaning: Meaning,
        earlier: &[Arc<Catalog>],
    ) -> Snapshot {
        let upstreams = links.iter().map(|link| link.source());
        let sources = std::iter::once(builtin.source()).chain(upstreams).collect();
        let (catalog, mut findings) = Catalog::build(sources);
        let catalog = catalog.with_meaning(meaning);
        let catalog = earlier.iter().fold(catalog, |catalog, earlier| catalog.reusing(earlier));
        for source in catalog.sources() {
            findings.extend(source.listing.findings.iter().cloned());
        }
        let callees = catalog.slots().map(|_| OnceLock::new()).collect();
        Snapshot {
            generation,
            catalog: Arc::new(catalog),
            findings,
            directory: OnceLock::new(),
            primitives: OnceLock::new(),
            derived: Derived::default(),
            callees,
            links,
            builtin,
        }
    }

    /// Where every resource and prompt is, found out when first needed.
    pub fn primitives(&self) -> &Primitives {
        self.primitives.get_or_init(|| Primitives::of(&self.catalog))
    }

    /// Everything that is not as its upstream listed it: skipped, renamed,
    /// damaged, changed.
    pub fn report(&self) -> Vec<Finding> {
        let findings = self.findings.iter().chain(&self.directory().findings);
        findings.chain(&self.primitives().findings).cloned().collect()
    }

    /// What somebody makes of this snapshot, once: each type has its own place.
    pub fn derived<T: Send + Sync + 'static>(&self, make: impl FnOnce() -> T) -> &T {
        self.derived.get_or_make(make)
    }

    /// Everything under its lasting id, found out when first needed.
    pub fn directory(&self) -> &Directory {
        self.directory.get_or_init(|| Directory::build(&self.catalog))
    }

    /// A function, under its canonical id.
    pub fn target(&self, slot: Slot) -> Target {
        let callee = self.callees[slot.0 as usize].get_or_init(|| Arc::new(self.callee(slot)));
        Target::of(slot, Arc::clone(callee))
    }

    fn callee(&self, slot: Slot) -> Callee {
        let directory = self.directory();
        let (label, name) = (&self.catalog.source(slot).label, &self.catalog.tool(slot).name);
        match directory.at(ItemRef::Tool(slot)) {
            Some(at) => Callee::new(&directory.tools.entries()[at].id, label, name),
            // Built-in functions have no lasting id.
            None => Callee::new(&format!("{label}:{name}"), label, name),
        }
    }

    /// Something of a source that is no function, under its canonical id.
    pub fn thing(&self, id: &str, source: usize, name: &str, what: What) -> Target {
        let label = &self.catalog.sources()[source].label;
        Target { callee: Arc::new(Callee::new(id, label, name)), what }
    }

    /// A resource of a source, listed or not, under its canonical id.
    pub fn resource(&self, source: usize, uri: &str) -> Target {
        let directory = self.directory();
        let listed = &self.catalog.sources()[source].listing.resources;
        let at = listed.iter().position(|resource| resource.uri == uri);
        let at = at.and_then(|at| directory.at(ItemRef::Resource { source, at }));
        let id = match at {
            Some(at) => directory.resources.entries()[at].id.clone(),
            None => {
                let raw = serde_json::json!({"uri": uri});
                Resource::read(raw.into())
                    .map_or_else(|_| uri.to_owned(), |it| id::of_resource(&it).id.to_string())
            }
        };
        self.thing(&id, source, uri, What::Resource { source, uri: uri.to_owned() })
    }

    /// A prompt of a source, by its own name, under its canonical id.
    pub fn prompt(&self, source: usize, name: &str) -> Target {
        let directory = self.directory();
        let listed = &self.catalog.sources()[source].listing.prompts;
        let at = listed.iter().position(|prompt| prompt.name == name);
        let at = at.and_then(|at| directory.at(ItemRef::Prompt { source, at }));
        let id = at.map_or(name, |at| &directory.prompts.entries()[at].id);
        self.thing(id, source, name, What::Prompt { source, name: name.to_owned() })
    }

    /// The link behind a source; `None` for built-in functions.
    pub fn link(&self, source: usize) -> Option<&Arc<Link>> {
        self.links.get(source.checked_sub(1)?)
    }

    pub fn links(&self) -> &[Arc<Link>] {
        &self.links
    }

    /// Asks what a call asks, of whoever is behind it.
    pub fn carry<'a>(
        &'a self,
        call: &ValidCall,
        context: &'a Context,
    ) -> impl Future<Output = Result<Reply, Failure>> + use<'a> {
        let ask = call.ask();
        match self.link(call.source) {
            Some(link) => Either::Left(link.ask(ask, context)),
            // Boxed by its trait: what upstreams answer takes no room for it.
            None => Either::Right(self.builtin.ask(ask, self, context)),
        }
    }

    /// Asks whoever is behind a source.
    pub async fn ask(&self, source: usize, ask: Ask, context: &Context) -> Result<Reply, Failure> {
        match self.link(source) {
            Some(link) => link.ask(ask, context).await,
            None => self.builtin.ask(ask, self, context).await,
        }
    }
}
