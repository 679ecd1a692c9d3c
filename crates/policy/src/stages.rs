//! The policies that are in force for a call, as one value.
//!
//! A stage's decision is a function of values. Which policies are in force comes
//! from the configuration; a stage that is switched off is a policy that always
//! says yes ([`Open`]).

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use catalog::Catalog;
use tool::{Context, Failure, Finding, Listing, Reply, Tool};

use crate::admission::{self, Admission, Check, ListingCheck};
use crate::approval::request::{Approval, ApprovalRequest};
use crate::attempt::{Permit, Retry};
use crate::cache::Cache;
use crate::question::Question;
use crate::quota::{Quota, QuotaFuture, at_hand};
use crate::refusal::{Refusal, Refused};
use crate::validate::ValidCall;
use artifacts::Artifact;
use redact::Scrubber;

/// The policies in force.
#[derive(Clone)]
pub struct Stages {
    /// What a call has to pass, in this order.
    pub checks: Vec<Arc<dyn Check>>,
    /// Looks at listings before anybody sees them.
    pub listings: Arc<dyn ListingCheck>,
    pub approval: Arc<dyn Approval>,
    pub quota: Arc<dyn Quota>,
    pub cache: Arc<dyn Cache>,
    pub retry: Arc<dyn Retry>,
    /// Masks secrets in answers before anybody reads them.
    pub scrubber: Arc<Scrubber>,
}

impl Stages {
    /// Whether this call may go on, and what the user has to agree to first.
    pub fn admit(
        &self,
        catalog: &Catalog,
        call: &ValidCall,
        context: &Context,
    ) -> Result<Admission, Refusal> {
        admission::all(&self.checks, |check| check.admit(catalog, call, context))
    }

    /// Whether the operator vouched for a tool (`upstream/tool`) as it is now.
    pub fn vouches(&self, path: &str, tool: &Tool) -> bool {
        self.checks.iter().any(|check| check.vouches(path, tool))
    }

    /// Whether something kept may be viewed, and what the user has to agree to
    /// first.
    pub fn admit_view(&self, kept: &Artifact) -> Result<Admission, Refusal> {
        admission::all(&self.checks, |check| check.admit_view(kept))
    }
}

impl Default for Stages {
    fn default() -> Stages {
        let open = Arc::new(Open);
        Stages {
            checks: Vec::new(),
            listings: Arc::clone(&open) as _,
            approval: Arc::clone(&open) as _,
            quota: Arc::clone(&open) as _,
            cache: Arc::clone(&open) as _,
            retry: open,
            scrubber: Arc::default(),
        }
    }
}

/// Everybody may do everything; every call is made exactly once.
#[derive(Clone, Copy, Debug)]
pub struct Open;

impl ListingCheck for Open {
    fn inspect(&self, _: &str, _: &Listing) -> Vec<Finding> {
        Vec::new()
    }
}

#[async_trait]
impl Approval for Open {
    /// With nobody to ask, nobody agrees.
    async fn agree(
        &self,
        question: &Question,
        _: &ApprovalRequest<'_>,
        _: &Context,
    ) -> Result<(), Refusal> {
        let message = format!("{question}, and nobody can be asked here");
        Err(Refusal { code: Refused::ApprovalRequired, message, retry_after: None })
    }
}

impl Quota for Open {
    fn spend<'a>(
        &'a self,
        _: &'a ValidCall,
        _: &'a Context,
    ) -> QuotaFuture<'a, Result<(), Refusal>> {
        at_hand(Ok(()))
    }
}

impl Cache for Open {
    fn get(&self, _: &ValidCall, _: &Arc<Catalog>, _: &Context) -> Option<Reply> {
        None
    }

    fn put(&self, _: &ValidCall, _: &Arc<Catalog>, _: &Context, _: &Reply) {}
}

impl Retry for Open {
    fn begin(&self, _: &ValidCall, _: &Context) -> Result<Permit, Failure> {
        Ok(Permit::Free)
    }

    fn again(&self, _: &ValidCall, _: &Failure, _: u32) -> Option<Duration> {
        None
    }
}
