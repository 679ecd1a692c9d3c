//! What one request sees: a catalog and the links behind it, of one moment.

use std::sync::{Arc, Mutex, OnceLock};

use catalog::directory::Place;
use catalog::index::Meaning;
use catalog::{Catalog, Directory, Slot, id};
use futures::FutureExt;
use futures::future::Either;
use tool::{Ask, Context, Failure, Finding, Listing, QuickMap, Reply, Resource};

use super::Link;
use crate::dispatch::{Callee, Target, What};
use crate::memo::Memo;
use crate::own::{Own, Room};
use crate::stage::ValidCall;
use crate::surface::Surface;
use crate::surface::direct::Names;
use crate::surface::meta::browse::{Shown, Walk};
use crate::surface::offers::Offers;
use crate::surface::proxy::Stripped;

/// How many listings are kept before all are made again.
const LISTINGS: usize = 64;

/// How many walks are.
const WALKS: usize = 256;

/// A catalog with the way to everything in it.
pub struct Snapshot {
    /// Counts the snapshots of a hall.
    pub generation: u64,
    pub catalog: Arc<Catalog>,
    pub findings: Vec<Finding>,
    /// What each surface lists, by what its callers see, made when first needed:
    /// every request looks at it, and making it takes a look at every tool.
    listings: Mutex<QuickMap<(Surface, String), Arc<Listing>>>,
    /// The cards at the end of paths: counting what is below takes a look at
    /// every tool, too.
    pub(crate) walks: Memo<Walk, Vec<Shown>>,
    pub(crate) offers: OnceLock<Offers>,
    directory: OnceLock<Directory>,
    stripped: OnceLock<Stripped>,
    names: OnceLock<Names>,
    /// What each function is called, by slot, found out by its first call.
    callees: Box<[OnceLock<Arc<Callee>>]>,
    /// The upstreams, in the order of the catalog's sources after the first.
    links: Vec<Arc<Link>>,
    own: Arc<Own>,
}

impl Snapshot {
    /// Lists the links as they stand. The gate's own functions are the first
    /// source, so the catalog's sources and the links keep in step.
    ///
    /// What earlier catalogs found out about the same listings is taken over.
    pub(super) fn take(
        generation: u64,
        links: Vec<Arc<Link>>,
        own: Arc<Own>,
        meaning: Meaning,
        earlier: &[Arc<Catalog>],
    ) -> Snapshot {
        let upstreams = links.iter().map(|link| link.source());
        let sources = std::iter::once(own.source()).chain(upstreams).collect();
        let (catalog, mut findings) = Catalog::build(sources);
        let catalog = catalog.comparing(meaning);
        let catalog = earlier.iter().fold(catalog, |catalog, earlier| catalog.inheriting(earlier));
        for source in catalog.sources() {
            findings.extend(source.listing.findings.iter().cloned());
        }
        let callees = catalog.slots().map(|_| OnceLock::new()).collect();
        Snapshot {
            generation,
            catalog: Arc::new(catalog),
            findings,
            listings: Mutex::default(),
            walks: Memo::new(WALKS),
            offers: OnceLock::new(),
            directory: OnceLock::new(),
            stripped: OnceLock::new(),
            names: OnceLock::new(),
            callees,
            links,
            own,
        }
    }

    /// What a surface lists for callers with this sight.
    pub(crate) fn listing(
        &self,
        surface: Surface,
        sight: String,
        make: impl FnOnce() -> Listing,
    ) -> Arc<Listing> {
        let key = (surface, sight);
        let lock = || self.listings.lock().expect("nothing panics while it holds this");
        if let Some(listing) = lock().get(&key) {
            return Arc::clone(listing);
        }
        // Not under the lock: what is made may be made of another listing.
        let listing = Arc::new(make());
        let mut made = lock();
        if LISTINGS <= made.len() {
            made.clear();
        }
        Arc::clone(made.entry(key).or_insert(listing))
    }

    /// Everything under its lasting id, found out when first needed.
    pub(crate) fn directory(&self) -> &Directory {
        self.directory.get_or_init(|| Directory::build(&self.catalog))
    }

    /// Everything that is not as its upstream listed it: skipped, renamed,
    /// damaged, changed.
    pub fn report(&self) -> Vec<Finding> {
        let findings = self.findings.iter().chain(&self.directory().findings);
        findings.chain(&self.offers().findings).cloned().collect()
    }

    /// Every tool, stripped, for the proxy surface.
    pub(crate) fn stripped(&self) -> &Stripped {
        self.stripped.get_or_init(|| Stripped::of(self))
    }

    /// Every tool under its direct name.
    pub(crate) fn names(&self) -> &Names {
        self.names.get_or_init(|| Names::of(self))
    }

    /// A function, under its canonical id.
    pub(crate) fn target(&self, slot: Slot) -> Target {
        let callee = self.callees[slot.0 as usize].get_or_init(|| Arc::new(self.callee(slot)));
        Target::of(slot, Arc::clone(callee))
    }

    fn callee(&self, slot: Slot) -> Callee {
        let directory = self.directory();
        let (label, name) = (&self.catalog.source(slot).label, &self.catalog.tool(slot).name);
        match directory.at(Place::Tool(slot)) {
            Some(at) => Callee::new(&directory.tools.entries()[at].id, label, name),
            // The gate's own functions have no lasting id.
            None => Callee::new(&format!("{label}:{name}"), label, name),
        }
    }

    /// Something of a source that is no function, under its canonical id.
    pub(crate) fn thing(&self, id: &str, source: usize, name: &str, what: What) -> Target {
        let label = &self.catalog.sources()[source].label;
        Target { callee: Arc::new(Callee::new(id, label, name)), what }
    }

    /// A resource of a source, listed or not, under its canonical id.
    pub(crate) fn resource(&self, source: usize, uri: &str) -> Target {
        let directory = self.directory();
        let listed = &self.catalog.sources()[source].listing.resources;
        let at = listed.iter().position(|resource| resource.uri == uri);
        let at = at.and_then(|at| directory.at(Place::Resource { source, at }));
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
    pub(crate) fn prompt(&self, source: usize, name: &str) -> Target {
        let directory = self.directory();
        let listed = &self.catalog.sources()[source].listing.prompts;
        let at = listed.iter().position(|prompt| prompt.name == name);
        let at = at.and_then(|at| directory.at(Place::Prompt { source, at }));
        let id = at.map_or(name, |at| &directory.prompts.entries()[at].id);
        self.thing(id, source, name, What::Prompt { source, name: name.to_owned() })
    }

    /// The link behind a source; `None` for the gate's own functions.
    pub fn link(&self, source: usize) -> Option<&Arc<Link>> {
        self.links.get(source.checked_sub(1)?)
    }

    pub fn links(&self) -> &[Arc<Link>] {
        &self.links
    }

    /// Asks what a call asks, of whoever is behind it: with so much room if it
    /// looks at what is kept.
    pub(crate) fn asked<'a>(
        &'a self,
        call: &ValidCall,
        room: Option<&'a Room>,
        context: &'a Context,
    ) -> impl Future<Output = Result<Reply, Failure>> + use<'a> {
        let ask = call.ask();
        match (room, self.link(call.source)) {
            (None, Some(link)) => Either::Left(link.ask(ask, context)),
            // Boxed: what upstreams answer takes no room for it.
            (None, None) => Either::Right(self.own.answer(ask, self, context).boxed()),
            (Some(room), _) => Either::Right(self.own.look(ask, room, context).map(Ok).boxed()),
        }
    }

    /// Asks whoever is behind a source.
    pub async fn ask(&self, source: usize, ask: Ask, context: &Context) -> Result<Reply, Failure> {
        match self.link(source) {
            Some(link) => link.ask(ask, context).await,
            None => Box::pin(self.own.answer(ask, self, context)).await,
        }
    }
}
