//! The [`Snapshot`] that a request uses to its end: a catalog and the upstreams behind it.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use catalog::ItemRef;
use catalog::index::Meaning;
use catalog::{Catalog, Directory, Slot, Source, id};
use futures::future::Either;
use tool::{Ask, Context, Failure, Finding, Reply, Resource};

use crate::derived::DerivedValues;
use crate::primitives::Primitives;
use crate::supervised::SupervisedUpstream;
use policy::call::{
    Callee, CompletionSubject, ExposedName, SubscriptionChange, Target, TargetKind,
};
use policy::uri::Readings;
use policy::validate::ValidCall;

/// The reserved label of the built-in namespace.
pub const BUILTIN: &str = "gatelet";

/// The built-in namespace: listed, documented, checked and called like an
/// upstream, but answered in this process, with the snapshot that the request
/// sees.
#[async_trait]
pub trait Builtin: Send + Sync {
    /// Returns its entry in a catalog, under the label [`BUILTIN`].
    fn source(&self) -> Source;

    /// Answers one question.
    async fn ask(&self, ask: Ask, snapshot: &Snapshot, context: &Context)
    -> Result<Reply, Failure>;
}

/// A catalog, and the upstreams that answer requests for what is in it.
pub struct Snapshot {
    /// The number of this snapshot in its pool.
    pub generation: u64,
    pub catalog: Arc<Catalog>,
    pub findings: Vec<Finding>,
    directory: OnceLock<Directory>,
    primitives: OnceLock<Primitives>,
    /// Values that other modules derived from this snapshot.
    derived: DerivedValues,
    /// The names of each function, by slot, computed by its first call.
    callees: Box<[OnceLock<Arc<Callee>>]>,
    /// The upstreams, in the order of the catalog's sources after the first.
    upstreams: Vec<Arc<SupervisedUpstream>>,
    builtin: Arc<dyn Builtin>,
}

impl Snapshot {
    /// Builds a snapshot of the upstreams in their present state. The built-in functions are
    /// the first source, the upstreams follow in order.
    ///
    /// Results that `earlier` catalogs computed for the same listings are reused.
    pub(crate) fn build(
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
            derived: DerivedValues::default(),
            callees,
            upstreams,
            builtin,
        }
    }

    /// Computes everything now that is otherwise computed when first needed.
    pub(crate) fn warm(&self) {
        self.catalog.warm();
        self.directory();
        self.primitives();
    }

    /// Returns which source has which resource and prompt, computed when first needed.
    pub fn primitives(&self) -> &Primitives {
        self.primitives.get_or_init(|| Primitives::build(&self.catalog))
    }

    /// Returns the findings about everything that was skipped, renamed, malformed or changed.
    pub fn report(&self) -> Vec<Finding> {
        let findings = self.findings.iter().chain(&self.directory().findings);
        findings.chain(&self.primitives().findings).cloned().collect()
    }

    /// Returns the value of this type that was derived from this snapshot, and makes it the
    /// first time.
    pub fn derived<T: Send + Sync + 'static>(&self, make: impl FnOnce() -> T) -> &T {
        self.derived.get_or_make(make)
    }

    /// Returns the directory of canonical ids, computed when first needed.
    pub fn directory(&self) -> &Directory {
        self.directory.get_or_init(|| Directory::build(&self.catalog))
    }

    /// Returns a function as the target of a call.
    pub fn target(&self, slot: Slot) -> Target {
        let callee = self.callees[slot.0 as usize].get_or_init(|| Arc::new(self.callee(slot)));
        Target::function(slot, Arc::clone(callee))
    }

    fn callee(&self, slot: Slot) -> Callee {
        let directory = self.directory();
        let (label, name) = (&self.catalog.source(slot).label, &self.catalog.tool(slot).name);
        let callee = match directory.position(ItemRef::Tool(slot)) {
            Some(at) => Callee::new(&directory.tools.entries()[at].id, label, name),
            // Built-in functions are not in the directory.
            None => Callee::new(&format!("{label}:{name}"), label, name),
        };
        let catalog = &self.catalog;
        callee.with_exposed_name(ExposedName::Path {
            path: format!("{}.{}", catalog.path(slot), catalog.function(slot).name),
            has_lookalike: catalog.has_lookalike(slot),
        })
    }

    /// Returns something that is not a function as the target of a request, by its canonical
    /// id, its source's index and its name there.
    pub fn other_target(&self, id: &str, source: usize, name: &str, what: TargetKind) -> Target {
        let label = &self.catalog.sources()[source].label;
        Target { callee: Arc::new(Callee::new(id, label, name)), kind: what }
    }

    /// Returns a resource of a source, listed or not, as the target of a request.
    pub fn resource(&self, source: usize, uri: &str) -> Target {
        let directory = self.directory();
        let listed = &self.catalog.sources()[source].listing.resources;
        let at = listed.iter().position(|resource| resource.uri == uri);
        let at = at.and_then(|at| directory.position(ItemRef::Resource { source, at }));
        let id = match at {
            Some(at) => directory.resources.entries()[at].id.clone(),
            None => {
                let raw = serde_json::json!({"uri": uri});
                Resource::parse(raw.into())
                    .map_or_else(|_| uri.to_owned(), |it| id::of_resource(&it).id.to_string())
            }
        };
        let target = self.other_target(
            &id,
            source,
            uri,
            TargetKind::Resource { source, uri: uri.to_owned() },
        );
        let callee = Callee::clone(&target.callee)
            .with_exposed_name(ExposedName::Uri(Arc::new(Readings::new(uri))));
        Target { callee: Arc::new(callee), ..target }
    }

    /// Returns a prompt of a source, by its name there, as the target of a request.
    pub fn prompt(&self, source: usize, name: &str) -> Target {
        let directory = self.directory();
        let listed = &self.catalog.sources()[source].listing.prompts;
        let at = listed.iter().position(|prompt| prompt.name == name);
        let at = at.and_then(|at| directory.position(ItemRef::Prompt { source, at }));
        let id = at.map_or(name, |at| &directory.prompts.entries()[at].id);
        self.other_target(id, source, name, TargetKind::Prompt { source, name: name.to_owned() })
    }

    /// Returns the target of a completion, with the id of the prompt or resource it is for.
    pub fn completion(&self, source: usize, of: CompletionSubject) -> Target {
        let Target { callee, .. } = match &of {
            CompletionSubject::Prompt(name) => self.prompt(source, name),
            CompletionSubject::Resource(uri) => self.resource(source, uri),
        };
        Target { callee, kind: TargetKind::Completion { source, subject: of } }
    }

    /// Returns the target of a subscription, with the id of its resource.
    pub fn subscription(&self, source: usize, uri: &str, change: SubscriptionChange) -> Target {
        let Target { callee, .. } = self.resource(source, uri);
        Target { callee, kind: TargetKind::Subscription { source, uri: uri.to_owned(), change } }
    }

    /// Returns the upstream behind a source; `None` for the built-in functions.
    pub fn upstream(&self, source: usize) -> Option<&Arc<SupervisedUpstream>> {
        self.upstreams.get(source.checked_sub(1)?)
    }

    pub fn upstreams(&self) -> &[Arc<SupervisedUpstream>] {
        &self.upstreams
    }

    /// Sends a call to its upstream or to the built-in namespace. A snapshot sends nothing
    /// but validated calls.
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
