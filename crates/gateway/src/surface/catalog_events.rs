//! An event for every new catalog, with what clients see of it.

use std::sync::Arc;

use catalog::reply;
use catalog::source::Role;
use tool::{Finding, Json, Tool};

use super::by_name::Names;
use super::stripped::Stripped;
use super::{cash, gateway, meta};
use crate::choice::Surface;
use crate::record::{EventKind, Recorder};
use roster::{Observer, Snapshot};

/// Reports every published snapshot.
pub(crate) struct CatalogEvents {
    pub(crate) recorder: Arc<Recorder>,
    /// What clients get by default.
    pub(crate) surface: Surface,
}

impl Observer for CatalogEvents {
    fn published(&self, snapshot: &Snapshot) {
        self.recorder.global_event(|| {
            let sources = snapshot.catalog.sources().iter();
            let sources = sources.filter(|source| source.role != Role::Builtin);
            let namespaces = sources.clone().map(|s| (s.label.clone(), s.listing.tools.len()));
            let tools = sources.flat_map(|source| &source.listing.tools);
            EventKind::Published {
                generation: snapshot.generation,
                namespaces: namespaces.collect(),
                definitions: tools.map(|tool| tool.raw.clone()).collect(),
                surface: self.surface,
                exposed: exposed(self.surface, snapshot),
                findings: findings(self.surface, snapshot),
            }
        });
    }
}

/// What is to be known of the catalog, and of how hosts take it.
fn findings(surface: Surface, snapshot: &Snapshot) -> Vec<Finding> {
    let mut findings = snapshot.report();
    match surface {
        Surface::Cash | Surface::Gateway | Surface::Auto => {}
        Surface::Proxy => findings.extend(Stripped::of(snapshot).findings.iter().cloned()),
        Surface::Direct => findings.extend(Names::of(snapshot).findings.iter().cloned()),
    }
    findings
}

/// The definitions that a client sees from whom nothing is hidden.
fn exposed(surface: Surface, snapshot: &Snapshot) -> Vec<Json> {
    let raw = |tools: Vec<Tool>| tools.into_iter().map(|tool| tool.raw).collect();
    let map = |room| reply::map(&snapshot.catalog, room, &|_| true);
    match surface {
        // Whoever says nothing of itself gets the first.
        Surface::Cash | Surface::Auto => raw(cash::tools(&map(cash::MAP))),
        Surface::Gateway => {
            let names = gateway::names(snapshot.directory(), false, &|_| true);
            raw(meta::tools(&names, &map(meta::MAP)))
        }
        Surface::Proxy => Stripped::of(snapshot).definitions(),
        Surface::Direct => Names::of(snapshot).definitions(),
    }
}
