//! What one request sees: a catalog and the links behind it, of one moment.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

use catalog::{Catalog, Directory};
use tool::{Ask, Context, Failure, Finding, Listing, Reply};

use super::Link;
use crate::own::Own;
use crate::surface::direct::Names;
use crate::surface::offers::Offers;
use crate::surface::proxy::Stripped;

/// A catalog with the way to everything in it.
pub struct Snapshot {
    /// Counts the snapshots of a hall.
    pub generation: u64,
    pub catalog: Arc<Catalog>,
    pub findings: Vec<Finding>,
    /// The listings of the default surface over this catalog, made when first
    /// needed; by what callers are told of the namespaces that they see, and
    /// by what they see at all.
    pub(crate) cash: Mutex<BTreeMap<(String, String), Arc<Listing>>>,
    pub(crate) offers: OnceLock<Offers>,
    directory: OnceLock<Directory>,
    stripped: OnceLock<Stripped>,
    names: OnceLock<Names>,
    /// The listings of the direct surface, by what callers see.
    pub(crate) direct: Mutex<BTreeMap<String, Arc<Listing>>>,
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
        earlier: &[Arc<Catalog>],
    ) -> Snapshot {
        let upstreams = links.iter().map(|link| link.source());
        let sources = std::iter::once(own.source()).chain(upstreams).collect();
        let (catalog, mut findings) = Catalog::build(sources);
        let catalog = earlier.iter().fold(catalog, |catalog, earlier| catalog.inheriting(earlier));
        for source in catalog.sources() {
            findings.extend(source.listing.findings.iter().cloned());
        }
        Snapshot {
            generation,
            catalog: Arc::new(catalog),
            findings,
            cash: Mutex::default(),
            offers: OnceLock::new(),
            directory: OnceLock::new(),
            stripped: OnceLock::new(),
            names: OnceLock::new(),
            direct: Mutex::default(),
            links,
            own,
        }
    }

    /// Everything under its lasting id, found out when first needed.
    pub(crate) fn directory(&self) -> &Directory {
        self.directory.get_or_init(|| Directory::build(&self.catalog))
    }

    /// Every tool, stripped, for the proxy surface.
    pub(crate) fn stripped(&self) -> &Stripped {
        self.stripped.get_or_init(|| Stripped::of(self))
    }

    /// Every tool under its direct name.
    pub(crate) fn names(&self) -> &Names {
        self.names.get_or_init(|| Names::of(self))
    }

    /// The link behind a source; `None` for the gate's own functions.
    pub fn link(&self, source: usize) -> Option<&Arc<Link>> {
        self.links.get(source.checked_sub(1)?)
    }

    pub fn links(&self) -> &[Arc<Link>] {
        &self.links
    }

    /// Asks whoever is behind a source.
    pub async fn ask(
        self: &Arc<Self>,
        source: usize,
        ask: Ask,
        context: &Context,
    ) -> Result<Reply, Failure> {
        match self.link(source) {
            Some(link) => link.ask(ask, context).await,
            None => self.own.answer(ask, self, context).await,
        }
    }
}
