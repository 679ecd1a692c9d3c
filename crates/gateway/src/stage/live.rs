//! The policies in force, which may be replaced while calls are made.
//!
//! Whoever has a stage from here asks whichever policy is in force at that
//! moment, so nothing has to be built anew when an operator changes one. A
//! question that waits, for its upstream or for a user, goes on under the
//! policy that it began with.

use std::sync::Arc;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use catalog::{Catalog, Slot};
use tool::{Context, Failure, Finding, Identity, Listing, Reply};

use super::{Admission, Approval, Attempt, Cache, Deed, Quota, Retry, Stages, Trust, ValidCall};
use crate::artifact::Artifact;
use crate::dispatch::Refusal;
use crate::visibility::Thing;

/// Stages that stand for those in force.
pub(crate) struct Live(ArcSwap<Stages>);

impl Live {
    pub(crate) fn new(stages: Stages) -> Arc<Live> {
        Arc::new(Live(ArcSwap::from_pointee(stages)))
    }

    pub(crate) fn replace(&self, stages: Stages) {
        self.0.store(Arc::new(stages));
    }

    /// Stages that ask those in force. Only the scrubber stays what it is: it
    /// can be [switched](crate::redact::Scrubber::switch).
    pub(crate) fn stages(self: &Arc<Self>) -> Stages {
        Stages {
            trust: Arc::clone(self) as _,
            approval: Arc::clone(self) as _,
            quota: Arc::clone(self) as _,
            cache: Arc::clone(self) as _,
            retry: Arc::clone(self) as _,
            scrubber: Arc::clone(&self.0.load().scrubber),
        }
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

#[async_trait]
impl Approval for Live {
    async fn agree(
        &self,
        question: &str,
        deed: &Deed<'_>,
        context: &Context,
    ) -> Result<(), Refusal> {
        let approval = Arc::clone(&self.0.load().approval);
        approval.agree(question, deed, context).await
    }
}

impl Quota for Live {
    fn spend(&self, call: &ValidCall, context: &Context) -> Result<(), Refusal> {
        self.0.load().quota.spend(call, context)
    }

    fn give_back(&self, call: &ValidCall, context: &Context) {
        self.0.load().quota.give_back(call, context);
    }

    fn give_back_meta(&self, tool: &str, context: &Context) {
        self.0.load().quota.give_back_meta(tool, context);
    }

    fn look(&self, call: &ValidCall, context: &Context) -> Result<(), Refusal> {
        self.0.load().quota.look(call, context)
    }

    fn spend_meta(&self, tool: &str, context: &Context) -> Result<(), Refusal> {
        self.0.load().quota.spend_meta(tool, context)
    }
}

impl Cache for Live {
    fn get(&self, call: &ValidCall, catalog: &Arc<Catalog>, context: &Context) -> Option<Reply> {
        self.0.load().cache.get(call, catalog, context)
    }

    fn put(&self, call: &ValidCall, catalog: &Arc<Catalog>, context: &Context, reply: &Reply) {
        self.0.load().cache.put(call, catalog, context, reply);
    }
}

#[async_trait]
impl Retry for Live {
    async fn run(&self, call: &ValidCall, attempt: &dyn Attempt) -> (Result<Reply, Failure>, u32) {
        let retry = Arc::clone(&self.0.load().retry);
        retry.run(call, attempt).await
    }
}
