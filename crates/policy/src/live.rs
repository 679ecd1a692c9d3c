//! The policies in force, which may be replaced while calls are made.
//!
//! A call takes those in force when it begins and ends under them. Who may see
//! what is asked by whoever lists or searches, too; nothing has to be built anew
//! when an operator changes the rules.

use std::sync::Arc;

use arc_swap::ArcSwap;
use catalog::Catalog;
use parking_lot::Mutex;
use tool::{Context, Finding, Identity, Listing};

use crate::admission::{Admission, ListingCheck};
use crate::refusal::Refusal;
use crate::stages::Stages;
use crate::validate::ValidCall;
use crate::visibility::{self, VisibilityFilter, Visible};
use artifacts::Artifact;

/// The stages in force, and who may see what.
pub struct LiveStages {
    now: ArcSwap<InForce>,
    /// Held while something is replaced.
    changing: Mutex<()>,
}

/// What is in force together.
#[derive(Clone)]
pub struct InForce {
    pub stages: Stages,
    pub visibility: Arc<VisibilityFilter>,
}

impl InForce {
    /// Whether this call may go on, and what the user has to agree to first.
    ///
    /// Surfaces find nothing that is hidden; visibility is asked again for rules
    /// that change between the finding and the call.
    pub fn admit(
        &self,
        catalog: &Catalog,
        call: &ValidCall,
        context: &Context,
    ) -> Result<Admission, Refusal> {
        self.visibility.admit(catalog, call, &context.caller)?;
        self.stages.admit(catalog, call, context)
    }

    /// Whether something kept may be viewed, and what the user has to agree to
    /// first.
    pub fn admit_view(&self, kept: &Artifact) -> Result<Admission, Refusal> {
        self.stages.admit_view(kept)
    }
}

impl LiveStages {
    pub fn new(stages: Stages, visibility: VisibilityFilter) -> LiveStages {
        let visibility = Arc::new(visibility);
        let now = ArcSwap::from_pointee(InForce { stages, visibility });
        LiveStages { now, changing: Mutex::default() }
    }

    /// Those in force now.
    pub fn now(&self) -> Arc<InForce> {
        self.now.load_full()
    }

    /// What a caller sees, by the rules of the moment.
    pub fn visible_to<'a>(&self, caller: &'a Identity) -> Visible<'a> {
        Visible::new(Arc::clone(&self.now.load().visibility), caller)
    }

    /// Puts others in force. Only the scrubber stays what it is: it
    /// [copies](redact::Scrubber::copy_settings_from) the new one.
    pub fn replace(&self, stages: Stages) {
        self.change(|now| InForce { stages, ..now.clone() });
    }

    /// Replaces the rules of who sees what; `false` when they are the same.
    pub fn set_visibility(&self, rules: visibility::Config) -> bool {
        let mut is_other = false;
        self.change(|now| {
            is_other = !now.visibility.follows(&rules);
            match is_other {
                true => InForce { visibility: Arc::new(now.visibility.next(rules)), ..now.clone() },
                false => now.clone(),
            }
        });
        is_other
    }

    fn change(&self, change: impl FnOnce(&InForce) -> InForce) {
        let _alone = self.changing.lock();
        let next = change(&self.now.load());
        self.now.store(Arc::new(next));
    }
}

impl ListingCheck for LiveStages {
    fn inspect(&self, upstream: &str, listing: &Listing) -> Vec<Finding> {
        self.now.load().stages.listings.inspect(upstream, listing)
    }
}
