//! What one request sees: a catalog and the upstreams behind it at one moment.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use catalog::ItemRef;
use catalog::index::Meaning;
use catalog::{Catalog, Directory, Slot, Source, id};
use futures::future::Either;
use tool::{Ask, Context, Failure, Finding, Reply, Resource};

use crate::derived::Derived;
use crate::primitives::Primitives;
use crate::supervised::SupervisedUpstream;
use policy::call::{Callee, Completed, KnownAs, SubscriptionChange, Target, What};
use policy::validate::ValidCall;

/// The reserved label of the built-in namespace.
pub const BUILTIN: &str = "gatelet";

/// The built-in namespace: listed, documented, checked and called like an
/// upstream, but answered in this process, with the snapshot that the request
/// sees.
#[async_trait]
pub trait Builtin: Send + Sync {
    /// Its entry in a catalog, under the label [`BUILTIN`].
    fn source(&self) -> Source;

    /// Answers one question.
    async fn ask(&self, ask: Ask, snapshot: &Snapshot, context: &Context)
    -> Result<Reply, Failure>;
}

/// A catalog with the way to everything in it.
pub struct Snapshot {
    /// The number of this snapshot in its pool.
    pub generation: u64,
    pub catalog: Arc<Catalog>,
    pub findings: Vec<Finding>,
    directory: OnceLock<Directory>,
    primitives: OnceLock<Primitives>,
    /// What others derived from it.
    derived: Derived,
    /// The names of each function, by slot, computed by its first call.
    callees: Box<[OnceLock<Arc<Callee>>]>,
    /// The upstreams, in the order of the catalog's sources after the first.
    upstreams: Vec<Arc<SupervisedUpstream>>,
    builtin: Arc<dyn Builtin>,
}

impl Snapshot {
    /// Lists the upstreams in their present state. The built-in functions are the
    /// first source, the upstreams follow in order.
    ///
    /// What earlier catalogs computed for the same listings is reused.
    pub(crate) fn take(
        generation: u64,
        upstreams: Vec<Arc<SupervisedUpstream>>,
        builtin: Arc<dyn Builtin>,
        meaning: Meaning,
        earlier: &[Arc<Catalog>],
    ) -> Snapshot {
        let listed = upstreams.iter().map(|upstream| upstream.source());
        let sources = std::iter::once(builtin.source()).chain(listed).collect();
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
            upstreams,
            builtin,
        }
    }

    /// Computes now what is computed when it is first needed.
    pub(crate) fn warm(&self) {
        self.catalog.warm();
        self.directory();
        self.primitives();
    }

    /// Which source has which resource and prompt, computed when first needed.
    pub fn primitives(&self) -> &Primitives {
        self.primitives.get_or_init(|| Primitives::build(&self.catalog))
    }

    /// Everything that differs from what its upstream listed: skipped, renamed,
    /// malformed, changed.
    pub fn report(&self) -> Vec<Finding> {
        let findings = self.findings.iter().chain(&self.directory().findings);
        findings.chain(&self.primitives().findings).cloned().collect()
    }

    /// A value that somebody derives from this snapshot, once, one per type.
    pub fn derived<T: Send + Sync + 'static>(&self, make: impl FnOnce() -> T) -> &T {
        self.derived.get_or_make(make)
    }

    /// Everything under its lasting id, computed when first needed.
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
        let callee = match directory.at(ItemRef::Tool(slot)) {
            Some(at) => Callee::new(&directory.tools.entries()[at].id, label, name),
            // Built-in functions have no lasting id.
            None => Callee::new(&format!("{label}:{name}"), label, name),
        };
        let catalog = &self.catalog;
        callee.known_as(KnownAs::Path {
            path: format!("{}.{}", catalog.path(slot), catalog.function(slot).name),
            has_double: catalog.has_double(slot),
        })
    }

    /// Something of a source that is not a function, under its canonical id.
    pub fn other_target(&self, id: &str, source: usize, name: &str, what: What) -> Target {
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
                Resource::parse(raw.into())
                    .map_or_else(|_| uri.to_owned(), |it| id::of_resource(&it).id.to_string())
            }
        };
        let target =
            self.other_target(&id, source, uri, What::Resource { source, uri: uri.to_owned() });
        let callee = Callee::clone(&target.callee).known_as(KnownAs::Address);
        Target { callee: Arc::new(callee), ..target }
    }

    /// A prompt of a source, by its own name, under its canonical id.
    pub fn prompt(&self, source: usize, name: &str) -> Target {
        let directory = self.directory();
        let listed = &self.catalog.sources()[source].listing.prompts;
        let at = listed.iter().position(|prompt| prompt.name == name);
        let at = at.and_then(|at| directory.at(ItemRef::Prompt { source, at }));
        let id = at.map_or(name, |at| &directory.prompts.entries()[at].id);
        self.other_target(id, source, name, What::Prompt { source, name: name.to_owned() })
    }

    /// What a completion is for, under the canonical id of that.
    pub fn completion(&self, source: usize, of: Completed) -> Target {
        let Target { callee, .. } = match &of {
            Completed::Prompt(name) => self.prompt(source, name),
            Completed::Resource(uri) => self.resource(source, uri),
        };
        Target { callee, what: What::Completion { source, of } }
    }

    /// News of a resource, under the canonical id of that.
    pub fn subscription(&self, source: usize, uri: &str, change: SubscriptionChange) -> Target {
        let Target { callee, .. } = self.resource(source, uri);
        Target { callee, what: What::Subscription { source, uri: uri.to_owned(), change } }
    }

    /// The upstream behind a source; `None` for the built-in functions.
    pub fn upstream(&self, source: usize) -> Option<&Arc<SupervisedUpstream>> {
        self.upstreams.get(source.checked_sub(1)?)
    }

    pub fn upstreams(&self) -> &[Arc<SupervisedUpstream>] {
        &self.upstreams
    }

    /// Sends a call to the upstream, or the built-in namespace, that it is for. From
    /// a snapshot there is no other way to an answer than a call that was checked.
    pub fn send<'a>(
        &'a self,
        call: &ValidCall,
        context: &'a Context,
    ) -> impl Future<Output = Result<Reply, Failure>> + use<'a> {
        let ask = call.ask();
        match self.upstream(call.source) {
            Some(upstream) => Either::Left(upstream.ask(ask, context)),
            // Boxed by its trait, so it does not enlarge the future of a call.
            None => Either::Right(self.builtin.ask(ask, self, context)),
        }
    }
}
