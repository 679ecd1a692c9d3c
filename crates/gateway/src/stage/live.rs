//! The policies in force, which may be replaced while calls are made.
//!
//! A call takes those in force when it begins and ends under them. Who may see
//! what is asked at any time, by whoever lists or searches, so [`Live`] answers
//! that by the rules of the moment, and nothing has to be built anew when an
//! operator changes them.

use std::sync::Arc;

use arc_swap::ArcSwap;
use catalog::{Catalog, Slot};
use tool::{Context, Finding, Identity, Listing};

use super::{Admission, Stages, Trust, ValidCall};
use crate::artifact::Artifact;
use crate::dispatch::Refusal;
use crate::visibility::Thing;

/// The stages in force.
pub(crate) struct Live(ArcSwap<Stages>);

impl Live {
    pub(crate) fn new(stages: Stages) -> Arc<Live> {
        Arc::new(Live(ArcSwap::from_pointee(stages)))
    }

    /// Puts others in force. Only the scrubber stays what it is: it can be
    /// [switched](crate::redact::Scrubber::switch).
    pub(crate) fn replace(&self, stages: Stages) {
        self.0.store(Arc::new(stages));
    }

    /// Those in force now.
    pub(crate) fn now(&self) -> Arc<Stages> {
        self.0.load_full()
    }
}

impl Trust for Live {
    fn sees(&self, caller: &Identity, catalog: &Catalog, slot: Slot) -> bool {
        self.0.load().trust.sees(caller, catalog, slot)
    }

    fn knows(&self, caller: &Identity, thing: &Thing<'_>) -> bool {
        self.0.load().trust.knows(caller, thing)
    }

    fn sees_all(&self, caller: &Identity) -> bool {
        self.0.load().trust.sees_all(caller)
    }

    fn picks_resources(&self, caller: &Identity) -> bool {
        self.0.load().trust.picks_resources(caller)
    }

    fn sight(&self, caller: &Identity) -> String {
        self.0.load().trust.sight(caller)
    }

    fn admit(
        &self,
        catalog: &Catalog,
        call: &ValidCall,
        context: &Context,
    ) -> Result<Admission, Refusal> {
        self.0.load().trust.admit(catalog, call, context)
    }

    fn admit_look(&self, kept: &Artifact) -> Result<Admission, Refusal> {
        self.0.load().trust.admit_look(kept)
    }

    fn observe(&self, upstream: &str, listing: &Listing) -> Vec<Finding> {
        self.0.load().trust.observe(upstream, listing)
    }
}
