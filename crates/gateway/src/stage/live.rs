//! The policies in force, which may be replaced while calls are made.
//!
//! A call takes those in force when it begins and ends under them. Who may see
//! what is asked at any time, by whoever lists or searches, so [`Live`] answers
//! that by the rules of the moment, and nothing has to be built anew when an
//! operator changes them. The rules of who sees what stand before everything
//! else that decides about calls, so they are in force together with it.

use std::sync::{Arc, Mutex};

use arc_swap::ArcSwap;
use catalog::{Catalog, Slot};
use tool::{Context, Finding, Identity, Listing};

use super::{Admission, Stages, Trust, ValidCall};
use crate::artifact::Artifact;
use crate::dispatch::Refusal;
use crate::visibility::{self, Thing, Veil};

/// The stages in force.
pub(crate) struct Live {
    /// With the veil before their trust.
    now: ArcSwap<Stages>,
    parts: Mutex<Parts>,
}

/// What is replaced one by one.
struct Parts {
    stages: Stages,
    rules: visibility::Config,
    /// Counts the replacements of the rules.
    edition: u64,
}

impl Parts {
    fn together(&self) -> Stages {
        let rest = Arc::clone(&self.stages.trust);
        let veil = Veil::new(self.rules.clone(), self.edition, rest);
        Stages { trust: Arc::new(veil), ..self.stages.clone() }
    }
}

impl Live {
    pub(crate) fn new(stages: Stages, rules: visibility::Config) -> Arc<Live> {
        let parts = Parts { stages, rules, edition: 0 };
        let now = ArcSwap::from_pointee(parts.together());
        Arc::new(Live { now, parts: Mutex::new(parts) })
    }

    /// Puts others in force. Only the scrubber stays what it is: it
    /// [follows](crate::redact::Scrubber::follow) the new one.
    pub(crate) fn replace(&self, stages: Stages) {
        self.change(|parts| parts.stages = stages);
    }

    /// Replaces the rules of who sees what; `false` when they are the same.
    pub(crate) fn veil(&self, rules: visibility::Config) -> bool {
        self.change(|parts| {
            let is_other = parts.rules != rules;
            parts.edition += u64::from(is_other);
            parts.rules = rules;
            is_other
        })
    }

    fn change<T>(&self, change: impl FnOnce(&mut Parts) -> T) -> T {
        let mut parts = self.parts.lock().expect("nothing panics while it holds this");
        let told = change(&mut parts);
        self.now.store(Arc::new(parts.together()));
        told
    }

    /// Those in force now.
    pub(crate) fn now(&self) -> Arc<Stages> {
        self.now.load_full()
    }
}

impl Trust for Live {
    fn sees(&self, caller: &Identity, catalog: &Catalog, slot: Slot) -> bool {
        self.now.load().trust.sees(caller, catalog, slot)
    }

    fn knows(&self, caller: &Identity, thing: &Thing<'_>) -> bool {
        self.now.load().trust.knows(caller, thing)
    }

    fn sees_all(&self, caller: &Identity) -> bool {
        self.now.load().trust.sees_all(caller)
    }

    fn picks_resources(&self, caller: &Identity) -> bool {
        self.now.load().trust.picks_resources(caller)
    }

    fn sight(&self, caller: &Identity) -> String {
        self.now.load().trust.sight(caller)
    }

    fn admit(
        &self,
        catalog: &Catalog,
        call: &ValidCall,
        context: &Context,
    ) -> Result<Admission, Refusal> {
        self.now.load().trust.admit(catalog, call, context)
    }

    fn admit_look(&self, kept: &Artifact) -> Result<Admission, Refusal> {
        self.now.load().trust.admit_look(kept)
    }

    fn observe(&self, upstream: &str, listing: &Listing) -> Vec<Finding> {
        self.now.load().trust.observe(upstream, listing)
    }
}
