//! Admission: a list of checks, each of which lets a call pass, demands approval,
//! or refuses it.

use std::sync::Arc;

use catalog::Catalog;
use tool::{Context, Finding, Listing, Tool};

use crate::question::Question;
use crate::refusal::Refusal;
use crate::validate::ValidCall;
use artifacts::Artifact;

/// One check that calls have to pass.
pub trait Check: Send + Sync {
    /// Whether this call may go on, and what the user has to agree to first.
    fn admit(
        &self,
        catalog: &Catalog,
        call: &ValidCall,
        context: &Context,
    ) -> Result<Admission, Refusal>;

    /// Whether a stored artifact may be viewed, and what the user has to agree to
    /// first.
    fn admit_view(&self, _: &Artifact) -> Result<Admission, Refusal> {
        Ok(Admission::Free)
    }

    /// Whether the operator vouched for a tool (`upstream/tool`) as it is now, so
    /// that its own annotations are believed.
    fn vouches(&self, _path: &str, _: &Tool) -> bool {
        false
    }
}

/// Inspects what an upstream lists, before anybody sees or calls any of it.
pub trait ListingCheck: Send + Sync {
    /// The findings about a listing, for the operator.
    fn inspect(&self, upstream: &str, listing: &Listing) -> Vec<Finding>;
}

/// The result of a check that does not refuse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The call may go on.
    Free,
    /// The call may go on once somebody agrees to this question.
    Ask(Question),
}

impl Admission {
    /// Combines two admissions; two questions become one.
    #[must_use]
    pub fn and(self, other: Admission) -> Admission {
        match (self, other) {
            (Admission::Free, other) => other,
            (own @ Admission::Ask(_), Admission::Free) => own,
            (Admission::Ask(one), Admission::Ask(two)) => Admission::Ask(one.and(&two)),
        }
    }
}

/// Runs all checks: the first refusal, else all their questions as one.
pub(super) fn combine(
    checks: &[Arc<dyn Check>],
    admit: impl Fn(&dyn Check) -> Result<Admission, Refusal>,
) -> Result<Admission, Refusal> {
    checks.iter().try_fold(Admission::Free, |admission, check| Ok(admission.and(admit(&**check)?)))
}
