//! The stages of a call, one file each.
//!
//! A stage's decision is a function of values. Which policy is in force comes
//! from the configuration, as one [`Stages`]; a stage that is switched off is a
//! policy that always says yes.

pub mod validate;

pub mod trust;

pub mod policy;

pub mod approval;

pub mod quota;

pub mod cache;

pub mod attempt;
pub mod breaker;
pub mod retry;

pub(crate) mod live;

pub mod pattern;
pub mod schema;
pub mod tolerant;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use catalog::{Catalog, Slot};
use tool::{Context, Failure, Finding, Identity, Listing, Reply};

use crate::artifact::Artifact;
use crate::dispatch::{Refusal, Refused};
use crate::redact::Scrubber;
use crate::visibility::Thing;

pub use validate::ValidCall;

/// Who may see and call what.
pub trait Trust: Send + Sync {
    /// Whether a function exists as far as this caller is concerned.
    fn sees(&self, caller: &Identity, catalog: &Catalog, slot: Slot) -> bool;

    /// Whether anything else exists as far as this caller is concerned.
    fn knows(&self, _: &Identity, _: &Thing<'_>) -> bool {
        true
    }

    /// Whether nothing at all is hidden from this caller, so that nobody need
    /// ask about every single thing.
    fn sees_all(&self, _: &Identity) -> bool {
        false
    }

    /// Whether resources are hidden from this caller one by one.
    fn picks_resources(&self, _: &Identity) -> bool {
        false
    }

    /// What tells apart callers who see different things: two with the same
    /// sight see the same.
    fn sight(&self, _: &Identity) -> String {
        String::new()
    }

    /// Whether this call may go on, and what the user has to agree to first.
    fn admit(
        &self,
        catalog: &Catalog,
        call: &ValidCall,
        context: &Context,
    ) -> Result<Admission, Refusal>;

    /// Whether something kept may be looked at, and what the user has to agree
    /// to first.
    fn admit_look(&self, _: &Artifact) -> Result<Admission, Refusal> {
        Ok(Admission::Free)
    }

    /// Looks at what an upstream lists, before anything of it is called; says
    /// what the operator should know.
    fn observe(&self, _upstream: &str, _: &Listing) -> Vec<Finding> {
        Vec::new()
    }
}

/// How a call may go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    Free,
    /// Once somebody agrees to this.
    Ask(String),
}

impl Admission {
    /// Both of two admissions at once: one question, not two.
    #[must_use]
    pub fn and(self, other: Admission) -> Admission {
        match (self, other) {
            (Admission::Free, other) => other,
            (own @ Admission::Ask(_), Admission::Free) => own,
            (Admission::Ask(one), Admission::Ask(two)) => Admission::Ask(format!("{one}; {two}")),
        }
    }
}

/// How often calls may be made.
pub trait Quota: Send + Sync {
    /// Takes what this call costs, or says when to come again.
    fn spend(&self, call: &ValidCall, context: &Context) -> Result<(), Refusal>;

    /// Gives back what [`Quota::spend`] took, for a call that was not let
    /// through after all.
    fn give_back(&self, _: &ValidCall, _: &Context) {}

    /// What [`Quota::spend`] would say, without taking anything.
    fn look(&self, _: &ValidCall, _: &Context) -> Result<(), Refusal> {
        Ok(())
    }

    /// Takes what using one of a surface's own tools costs.
    fn spend_meta(&self, _tool: &str, _: &Context) -> Result<(), Refusal> {
        Ok(())
    }

    /// Gives back what [`Quota::spend_meta`] took.
    fn give_back_meta(&self, _tool: &str, _: &Context) {}
}

/// How somebody is asked to agree to a call: the one way, whoever wants it.
#[async_trait]
pub trait Approval: Send + Sync {
    async fn agree(
        &self,
        question: &str,
        deed: &Deed<'_>,
        context: &Context,
    ) -> Result<(), Refusal>;
}

/// What somebody agrees to.
#[derive(Clone, Debug)]
pub struct Deed<'a> {
    /// What identifies it: whoever agrees to one deed agrees to no other.
    pub key: String,
    /// As JSON, for whoever is asked.
    pub arguments: &'a str,
    /// What whoever agreed already was given for it.
    pub token: Option<&'a str>,
    /// The call as it is written on its surface, open at the end for one more
    /// argument; empty where that is not known.
    pub written: String,
}

/// Answers that need not be asked for again.
pub trait Cache: Send + Sync {
    /// An answer that was kept under this very catalog.
    fn get(&self, call: &ValidCall, catalog: &Arc<Catalog>, context: &Context) -> Option<Reply>;

    /// Keeps an answer, if it is one that may be kept.
    fn put(&self, call: &ValidCall, catalog: &Arc<Catalog>, context: &Context, reply: &Reply);
}

/// How a call is attempted: once, or again when it is safe to.
///
/// It only decides; [`attempt::run`] does what it says.
pub trait Retry: Send + Sync {
    /// Whether an attempt may begin, and what it has to keep to.
    fn begin(&self, call: &ValidCall) -> Result<Leave, Failure>;

    /// The pause before the next attempt after so many; `None` when this
    /// failure is the end of the call.
    fn again(&self, call: &ValidCall, failure: &Failure, done: u32) -> Option<Duration>;
}

/// How one attempt may go.
pub enum Leave {
    /// At once, and for as long as the upstream may take.
    Free,
    /// Boxed: most calls need no room for it.
    Bound(Box<attempt::Bounds>),
}

/// The policies in force.
#[derive(Clone)]
pub struct Stages {
    pub trust: Arc<dyn Trust>,
    pub approval: Arc<dyn Approval>,
    pub quota: Arc<dyn Quota>,
    pub cache: Arc<dyn Cache>,
    pub retry: Arc<dyn Retry>,
    /// Masks secrets in answers before anybody reads them.
    pub scrubber: Arc<Scrubber>,
}

impl Default for Stages {
    fn default() -> Stages {
        let open = Arc::new(Open);
        Stages {
            trust: Arc::clone(&open) as _,
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

impl Trust for Open {
    fn sees(&self, _: &Identity, _: &Catalog, _: Slot) -> bool {
        true
    }

    fn sees_all(&self, _: &Identity) -> bool {
        true
    }

    fn admit(&self, _: &Catalog, _: &ValidCall, _: &Context) -> Result<Admission, Refusal> {
        Ok(Admission::Free)
    }
}

#[async_trait]
impl Approval for Open {
    /// With nobody to ask, nobody agrees.
    async fn agree(&self, question: &str, _: &Deed<'_>, _: &Context) -> Result<(), Refusal> {
        let message = format!("{question}, and nobody can be asked here");
        Err(Refusal { code: Refused::ApprovalRequired, message, retry_after: None })
    }
}

impl Quota for Open {
    fn spend(&self, _: &ValidCall, _: &Context) -> Result<(), Refusal> {
        Ok(())
    }
}

impl Cache for Open {
    fn get(&self, _: &ValidCall, _: &Arc<Catalog>, _: &Context) -> Option<Reply> {
        None
    }

    fn put(&self, _: &ValidCall, _: &Arc<Catalog>, _: &Context, _: &Reply) {}
}

impl Retry for Open {
    fn begin(&self, _: &ValidCall) -> Result<Leave, Failure> {
        Ok(Leave::Free)
    }

    fn again(&self, _: &ValidCall, _: &Failure, _: u32) -> Option<Duration> {
        None
    }
}
