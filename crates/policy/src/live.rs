//! The policies in force, which may be replaced while calls are made.
//!
//! A call takes the policies that are in force when it begins and keeps them to
//! its end. Listings and searches use the visibility filter, too.

use std::sync::Arc;

use arc_swap::ArcSwap;
use catalog::Catalog;
use parking_lot::Mutex;
use tool::{Context, Finding, Identity, Listing};

use crate::admission::{Admission, ListingCheck};
use crate::refusal::Refusal;
use crate::stages::Stages;
use crate::validate::ValidCall;
use crate::visibility::{self, CallerView, VisibilityFilter};
use artifacts::Artifact;

/// The stages and the visibility filter in force; both can be replaced.
pub struct LiveStages {
    current: ArcSwap<CurrentPolicies>,
    /// Locked while something is replaced.
    replacing: Mutex<()>,
}

/// The policies in force at one moment.
#[derive(Clone)]
pub struct CurrentPolicies {
    pub stages: Stages,
    pub visibility: Arc<VisibilityFilter>,
}

impl CurrentPolicies {
    /// Whether this call may go on, and what the user has to agree to first.
    ///
    /// Surfaces resolve only what is visible; visibility is checked again because
    /// the rules may have changed since.
    pub fn admit(
        &self,
        catalog: &Catalog,
        call: &ValidCall,
        context: &Context,
    ) -> Result<Admission, Refusal> {
        self.visibility.admit(catalog, call, &context.caller)?;
        self.stages.admit(catalog, call, context)
    }

    /// Whether a stored artifact may be viewed, and what the user has to agree to
    /// first.
    pub fn admit_view(&self, artifact: &Artifact) -> Result<Admission, Refusal> {
        self.stages.admit_view(artifact)
    }
}

impl LiveStages {
    pub fn new(stages: Stages, visibility: VisibilityFilter) -> LiveStages {
        let visibility = Arc::new(visibility);
        let current = ArcSwap::from_pointee(CurrentPolicies { stages, visibility });
        LiveStages { current, replacing: Mutex::default() }
    }

    /// The policies in force now.
    pub fn now(&self) -> Arc<CurrentPolicies> {
        self.current.load_full()
    }

    /// The view that a caller has under the rules in force now.
    pub fn visible_to<'a>(&self, caller: &'a Identity) -> CallerView<'a> {
        CallerView::new(Arc::clone(&self.current.load().visibility), caller)
    }

    /// Replaces the stages. The scrubber is shared with others and therefore kept:
    /// it [copies](redact::Scrubber::copy_settings_from) the settings of the new one.
    pub fn replace(&self, stages: Stages) {
        self.change(|now| CurrentPolicies { stages, ..now.clone() });
    }

    /// Replaces the visibility rules; `false` when they are the same as before.
    pub fn set_visibility(&self, rules: visibility::Config) -> bool {
        let mut has_changed = false;
        self.change(|now| {
            has_changed = !now.visibility.has_rules(&rules);
            match has_changed {
                true => CurrentPolicies {
                    visibility: Arc::new(now.visibility.with_rules(rules)),
                    ..now.clone()
                },
                false => now.clone(),
            }
        });
        has_changed
    }

    fn change(&self, change: impl FnOnce(&CurrentPolicies) -> CurrentPolicies) {
        let _guard = self.replacing.lock();
        let next = change(&self.current.load());
        self.current.store(Arc::new(next));
    }
}

impl ListingCheck for LiveStages {
    fn inspect(&self, upstream: &str, listing: &Listing) -> Vec<Finding> {
        self.current.load().stages.listings.inspect(upstream, listing)
    }
}
