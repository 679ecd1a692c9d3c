//! The rules before everything else that decides about calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use async_trait::async_trait;
use catalog::{Catalog, Slot};
use tool::{Context, Identity};

use super::{Config, Thing};
use crate::dispatch::Refusal;
use crate::stage::{Trust, ValidCall};

/// Hides what the rules hide. The rules can be replaced while calls are made.
pub struct Veil {
    rules: ArcSwap<Config>,
    /// Counts the replacements.
    edition: AtomicU64,
    rest: Arc<dyn Trust>,
}

impl Veil {
    pub fn new(rules: Config, rest: Arc<dyn Trust>) -> Veil {
        Veil { rules: ArcSwap::from_pointee(rules), edition: AtomicU64::new(0), rest }
    }

    /// Replaces the rules; `false` when they are the same.
    pub fn replace(&self, rules: Config) -> bool {
        if **self.rules.load() == rules {
            return false;
        }
        self.rules.store(Arc::new(rules));
        self.edition.fetch_add(1, Ordering::Relaxed);
        true
    }
}

#[async_trait]
impl Trust for Veil {
    fn sees(&self, caller: &Identity, catalog: &Catalog, slot: Slot) -> bool {
        let rules = self.rules.load();
        let (path, name) = (catalog.path(slot), &catalog.function(slot).name);
        (rules.is_open() || rules.shows(caller, &Thing::Function { path, name }))
            && self.rest.sees(caller, catalog, slot)
    }

    fn knows(&self, caller: &Identity, thing: &Thing<'_>) -> bool {
        let rules = self.rules.load();
        (rules.is_open() || rules.shows(caller, thing)) && self.rest.knows(caller, thing)
    }

    fn picks_resources(&self, caller: &Identity) -> bool {
        self.rules.load().picks_resources(caller) || self.rest.picks_resources(caller)
    }

    fn sight(&self, caller: &Identity) -> String {
        let rules = self.rules.load();
        let rest = self.rest.sight(caller);
        if rules.is_open() {
            return rest;
        }
        let edition = self.edition.load(Ordering::Relaxed);
        format!("{edition}:{};{rest}", rules.sight(caller))
    }

    async fn admit(
        &self,
        catalog: &Catalog,
        call: &ValidCall,
        context: &Context,
    ) -> Result<(), Refusal> {
        self.veiled(catalog, call, context)?;
        self.rest.admit(catalog, call, context).await
    }

    fn foresee(
        &self,
        catalog: &Catalog,
        call: &ValidCall,
        context: &Context,
    ) -> Result<(), Refusal> {
        self.veiled(catalog, call, context)?;
        self.rest.foresee(catalog, call, context)
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
        if self.sees(&context.caller, catalog, call.slot) {
            return Ok(());
        }
        let message = "there is no such function any more".to_owned();
        Err(Refusal { code: "unknown-function", message, retry_after: None })
    }
}
