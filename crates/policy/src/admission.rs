//! Admission: a list of checks, each of which lets a call pass, asks for somebody's
//! agreement, or refuses.

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

    /// Whether something kept may be viewed, and what the user has to agree to
    /// first.
    fn admit_view(&self, _: &Artifact) -> Result<Admission, Refusal> {
        Ok(Admission::Free)
    }

    /// Whether the operator vouched for a tool (`upstream/tool`) as it is now, so
    /// that what it says of itself is believed.
    fn vouches(&self, _path: &str, _: &Tool) -> bool {
        false
    }
}

/// Looks at what an upstream lists, before anybody sees or calls any of it.
pub trait ListingCheck: Send + Sync {
    /// What the operator should know of a listing.
    fn inspect(&self, upstream: &str, listing: &Listing) -> Vec<Finding>;
}

/// How a call may go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    Free,
    /// Once somebody agrees to this.
    Ask(Question),
}

impl Admission {
    /// Both of two admissions at once: one question, not two.
    #[must_use]
    pub fn and(self, other: Admission) -> Admission {
        match (self, other) {
            (Admission::Free, other) => other,
            (own @ Admission::Ask(_), Admission::Free) => own,
            (Admission::Ask(one), Admission::Ask(two)) => Admission::Ask(one.and(&two)),
        }
    }
}

/// What all checks say together: the first refusal, else every question.
pub(super) fn all(
    checks: &[Arc<dyn Check>],
    admit: impl Fn(&dyn Check) -> Result<Admission, Refusal>,
) -> Result<Admission, Refusal> {
    checks.iter().try_fold(Admission::Free, |admission, check| Ok(admission.and(admit(&**check)?)))
}
