//! The policies that are in force for a call, as one value.
//!
//! The configuration chooses the policies; a stage that is switched off is the
//! policy that always says yes ([`AllowAll`]).

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
use crate::quota::{Quota, QuotaFuture, ready_now};
use crate::refusal::{Refusal, RefusalCode};
use crate::validate::ValidCall;
use artifacts::Artifact;
use redact::Scrubber;

/// The policies in force.
#[derive(Clone)]
pub struct Stages {
    /// The checks that a call has to pass, in this order.
    pub checks: Vec<Arc<dyn Check>>,
    /// Inspects listings before they are published.
    pub listings: Arc<dyn ListingCheck>,
    pub approval: Arc<dyn Approval>,
    pub quota: Arc<dyn Quota>,
    pub cache: Arc<dyn Cache>,
    pub retry: Arc<dyn Retry>,
    /// Masks secrets in answers before anybody reads them.
    pub scrubber: Arc<Scrubber>,
}

impl Stages {
    /// Runs all checks: whether this call may go on, and what the user has to
    /// agree to first.
    pub fn admit(
        &self,
        catalog: &Catalog,
        call: &ValidCall,
        context: &Context,
    ) -> Result<Admission, Refusal> {
        admission::combine(&self.checks, |check| check.admit(catalog, call, context))
    }

    /// The cached answer to a call: this replica's, or that of another.
    pub async fn cached(
        &self,
        call: &ValidCall,
        catalog: &Arc<Catalog>,
        context: &Context,
    ) -> Option<Reply> {
        if let Some(reply) = self.cache.get(call, catalog, context) {
            return Some(reply);
        }
        self.cache.get_shared(call, catalog, context)?.await
    }

    /// Whether the operator vouched for a tool (`upstream/tool`) as it is now.
    pub fn vouches(&self, path: &str, tool: &Tool) -> bool {
        self.checks.iter().any(|check| check.vouches(path, tool))
    }

    /// Whether a stored artifact may be viewed, and what the user has to agree to
    /// first.
    pub fn admit_view(&self, artifact: &Artifact) -> Result<Admission, Refusal> {
        admission::combine(&self.checks, |check| check.admit_view(artifact))
    }
}

impl Default for Stages {
    fn default() -> Stages {
        let allow_all = Arc::new(AllowAll);
        Stages {
            checks: Vec::new(),
            listings: Arc::clone(&allow_all) as _,
            approval: Arc::clone(&allow_all) as _,
            quota: Arc::clone(&allow_all) as _,
            cache: Arc::clone(&allow_all) as _,
            retry: allow_all,
            scrubber: Arc::default(),
        }
    }
}

/// The policy of a stage that is switched off: it refuses nothing, caches
/// nothing and retries nothing.
#[derive(Clone, Copy, Debug)]
pub struct AllowAll;

impl ListingCheck for AllowAll {
    fn inspect(&self, _: &str, _: &Listing) -> Vec<Finding> {
        Vec::new()
    }
}

#[async_trait]
impl Approval for AllowAll {
    /// Refuses: this stage is only asked where approval is needed, and there is
    /// nobody to ask.
    async fn agree(
        &self,
        question: &Question,
        _: &ApprovalRequest<'_>,
        _: &Context,
    ) -> Result<(), Refusal> {
        let message = format!("{question}, and nobody can be asked here");
        Err(Refusal { code: RefusalCode::ApprovalRequired, message, retry_after: None })
    }
}

impl Quota for AllowAll {
    fn spend<'a>(
        &'a self,
        _: &'a ValidCall,
        _: &'a Context,
    ) -> QuotaFuture<'a, Result<(), Refusal>> {
        ready_now(Ok(()))
    }
}

impl Cache for AllowAll {
    fn get(&self, _: &ValidCall, _: &Arc<Catalog>, _: &Context) -> Option<Reply> {
        None
    }

    fn put(&self, _: &ValidCall, _: &Arc<Catalog>, _: &Context, _: &Reply) {}
}

impl Retry for AllowAll {
    fn begin(&self, _: &ValidCall, _: &Context) -> Result<Permit, Failure> {
        Ok(Permit::Free)
    }

    fn pause_before_retry(&self, _: &ValidCall, _: &Failure, _: u32) -> Option<Duration> {
        None
    }
}
