//! The rules before everything else that decides about calls.

use std::sync::Arc;

use catalog::{Catalog, Slot};
use tool::{Context, Finding, Identity, Listing};

use super::{Config, Thing};
use crate::artifact::Artifact;
use crate::dispatch::{Refusal, Refused, What};
use crate::stage::{Admission, Trust, ValidCall};

/// Hides what the rules hide.
pub(crate) struct Veil {
    rules: Config,
    /// Tells these rules from those before and after them.
    edition: u64,
    rest: Arc<dyn Trust>,
}

impl Veil {
    pub(crate) fn new(rules: Config, edition: u64, rest: Arc<dyn Trust>) -> Veil {
        Veil { rules, edition, rest }
    }
}

impl Trust for Veil {
    fn sees(&self, caller: &Identity, catalog: &Catalog, slot: Slot) -> bool {
        let rules = &self.rules;
        let (path, name) = (catalog.path(slot), &catalog.function(slot).name);
        (rules.is_open() || rules.shows(caller, &Thing::Function { path, name }))
            && self.rest.sees(caller, catalog, slot)
    }

    fn knows(&self, caller: &Identity, thing: &Thing<'_>) -> bool {
        let rules = &self.rules;
        (rules.is_open() || rules.shows(caller, thing)) && self.rest.knows(caller, thing)
    }

    fn sees_all(&self, caller: &Identity) -> bool {
        self.rules.is_open() && self.rest.sees_all(caller)
    }

    fn picks_resources(&self, caller: &Identity) -> bool {
        self.rules.picks_resources(caller) || self.rest.picks_resources(caller)
    }

    fn sight(&self, caller: &Identity) -> String {
        let rest = self.rest.sight(caller);
        if self.rules.is_open() {
            return rest;
        }
        format!("{}:{};{rest}", self.edition, self.rules.sight(caller))
    }

    fn admit(
        &self,
        catalog: &Catalog,
        call: &ValidCall,
        context: &Context,
    ) -> Result<Admission, Refusal> {
        self.veiled(catalog, call, context)?;
        self.rest.admit(catalog, call, context)
    }

    fn admit_look(&self, kept: &Artifact) -> Result<Admission, Refusal> {
        self.rest.admit_look(kept)
    }

    fn observe(&self, upstream: &str, listing: &Listing) -> Vec<Finding> {
        self.rest.observe(upstream, listing)
    }
}

impl Veil {
    /// Surfaces find nothing that is hidden; this is for rules that change
    /// between the finding and the call.
    fn veiled(
        &self,
        catalog: &Catalog,
        call: &ValidCall,
        context: &Context,
    ) -> Result<(), Refusal> {
        let (caller, upstream) = (&context.caller, call.callee.upstream.as_str());
        let seen = match &call.what {
            What::Tool(slot) | What::Task { slot, .. } | What::Help { slot, .. } => {
                self.sees(caller, catalog, *slot)
            }
            What::Skill { namespace, name, .. } => {
                self.knows(caller, &Thing::Skill { namespace, name })
            }
            What::Resource { uri, .. } => self.knows(caller, &Thing::Resource { upstream, uri }),
            What::Prompt { name, .. } => self.knows(caller, &Thing::Prompt { upstream, name }),
        };
        if seen {
            return Ok(());
        }
        let message = "there is nothing of that name any more".to_owned();
        Err(Refusal { code: Refused::UnknownFunction, message, retry_after: None })
    }
}
