//! Reports an event for every new catalog, with the definitions that clients see of it.

use std::sync::Arc;

use catalog::reply;
use catalog::source::Role;
use tool::{Finding, Json, Tool};

use super::by_name::ToolNames;
use super::stripped::StrippedTools;
use super::{cash, gateway, meta};
use crate::choice::Surface;
use crate::record::{EventKind, Recorder};
use roster::{Observer, Snapshot};

/// Reports every published snapshot.
pub(crate) struct CatalogEvents {
    pub(crate) recorder: Arc<Recorder>,
    /// The default surface of clients.
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

/// Returns the findings about the catalog and about definitions that hosts would cut.
fn findings(surface: Surface, snapshot: &Snapshot) -> Vec<Finding> {
    let mut findings = snapshot.report();
    match surface {
        Surface::Cash | Surface::Gateway | Surface::Auto => {}
        Surface::Proxy => findings.extend(StrippedTools::of(snapshot).findings.iter().cloned()),
        Surface::Direct => findings.extend(ToolNames::of(snapshot).findings.iter().cloned()),
    }
    findings
}

/// Returns the definitions that a client sees if nothing is hidden from it.
fn exposed(surface: Surface, snapshot: &Snapshot) -> Vec<Json> {
    let raw = |tools: Vec<Tool>| tools.into_iter().map(|tool| tool.raw).collect();
    let map = |max_tokens| reply::map(&snapshot.catalog, max_tokens, &|_| true);
    match surface {
        // On `auto`, a client that does not identify itself gets `cash`.
        Surface::Cash | Surface::Auto => raw(cash::tools(&map(cash::MAX_MAP_TOKENS))),
        Surface::Gateway => {
            let names = gateway::names(snapshot.directory(), false, &|_| true);
            raw(meta::tools(&names, &map(meta::MAX_MAP_TOKENS)))
        }
        Surface::Proxy => StrippedTools::of(snapshot).definitions(),
        Surface::Direct => ToolNames::of(snapshot).definitions(),
    }
}
