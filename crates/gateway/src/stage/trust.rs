//! The trust gate: asks the ledger, the user or nobody, and lets a call pass
//! or not.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use catalog::{Catalog, Slot};
use tool::{Context, Identity, Json, Listing, Tool};

use super::{Trust, ValidCall};
use crate::clock::Clock;
use crate::dispatch::Refusal;
use crate::trust::confirm::{self, Said, Tokens};
use crate::trust::{Book, Config, Digest, Policy, Standing, Verdict, ledger};

/// Stands in the way of calls.
pub struct Keeper {
    config: Config,
    book: Arc<dyn Book>,
    clock: Arc<dyn Clock>,
    tokens: Mutex<Tokens>,
    /// Digests by tool, with the definition they were made from.
    digests: Mutex<HashMap<String, (Json, Digest)>>,
}

impl Keeper {
    pub fn new(config: Config, book: Arc<dyn Book>, clock: Arc<dyn Clock>) -> Keeper {
        let (tokens, digests) = (Mutex::default(), Mutex::default());
        Keeper { config, book, clock, tokens, digests }
    }

    /// Notes tools that were never seen, so that a later change shows. Call it
    /// with what an upstream lists.
    pub fn observe(&self, upstream: &str, listing: &Listing) {
        let Ok(mut ledger) = self.book.read() else { return };
        let mut fresh = false;
        for tool in &listing.tools {
            let name = ledger::name(upstream, &tool.name);
            if ledger.get(&name).is_none() {
                ledger.set(&name, tool, self.config.first, self.clock.unix_millis());
                fresh = true;
            }
        }
        if fresh {
            self.book.write(&ledger);
        }
    }

    fn digest(&self, name: &str, tool: &Tool) -> Digest {
        let mut digests = self.digests.lock().expect("nothing panics while it holds this");
        if let Some((raw, digest)) = digests.get(name)
            && *raw == tool.raw
        {
            return digest.clone();
        }
        let digest = Digest::of(tool);
        digests.insert(name.to_owned(), (tool.raw.clone(), digest.clone()));
        digest
    }

    fn judge(&self, catalog: &Catalog, call: &ValidCall) -> Result<Verdict, Refusal> {
        let policy = self.config.policy(&call.upstream);
        if policy == Policy::Off {
            return Ok(Verdict::Allow);
        }
        let name = ledger::name(&call.upstream, call.tool());
        let mut ledger = self.book.read().map_err(|tampered| {
            tracing::error!(%tampered, "the trust ledger is not believed");
            refusal(tampered.to_string())
        })?;
        let tool = catalog.tool(call.slot);
        let standing = ledger.standing(&name, tool, &self.digest(&name, tool));
        if standing == Standing::New {
            ledger.set(&name, tool, self.config.first, self.clock.unix_millis());
            self.book.write(&ledger);
        }
        let danger = self.config.danger(&call.upstream, call.tool(), &call.annotations);
        Ok(self.config.decide(policy, &standing, danger, &name))
    }

    async fn confirm(
        &self,
        question: &str,
        call: &ValidCall,
        context: &Context,
    ) -> Result<(), Refusal> {
        let binding = confirm::binding(context, &call.key());
        let now = self.clock.elapsed();
        if let Some(token) = confirm::token(&call.call().rest) {
            let mut tokens = self.tokens.lock().expect("nothing panics while it holds this");
            if tokens.redeem(&token, &binding, now) {
                return Ok(());
            }
        }
        let arguments = call.call().arguments.as_ref().map_or("{}", Json::as_str);
        match confirm::ask(context, question, arguments).await {
            Said::Yes => Ok(()),
            Said::No => Err(refusal(format!("{question}, and the user did not agree"))),
            Said::Nothing => {
                let mut tokens = self.tokens.lock().expect("nothing panics while it holds this");
                let token = tokens.issue(binding, rand::random(), now);
                Err(Refusal {
                    code: "confirm",
                    message: format!(
                        "{question}. Nothing was done. Ask the user; if they agree, make exactly \
                         the same call again with `{}: \"{token}\"` beside its arguments (good \
                         once, for {} minutes)",
                        confirm::ARGUMENT,
                        confirm::LIFE.as_secs() / 60,
                    ),
                    retry_after: None,
                })
            }
        }
    }
}

fn refusal(message: String) -> Refusal {
    Refusal { code: "untrusted", message, retry_after: None }
}

#[async_trait]
impl Trust for Keeper {
    fn sees(&self, _: &Identity, _: &Catalog, _: Slot) -> bool {
        // What is not trusted is still shown: an operator has to find it.
        true
    }

    async fn admit(
        &self,
        catalog: &Catalog,
        call: &ValidCall,
        context: &Context,
    ) -> Result<(), Refusal> {
        match self.judge(catalog, call)? {
            Verdict::Allow => Ok(()),
            Verdict::Warn(reason) => {
                tracing::warn!(upstream = call.upstream, tool = call.tool(), reason, "trust");
                Ok(())
            }
            Verdict::Confirm(question) => self.confirm(&question, call, context).await,
            Verdict::Refuse(reason) => Err(refusal(reason)),
        }
    }

    fn foresee(&self, catalog: &Catalog, call: &ValidCall, _: &Context) -> Result<(), Refusal> {
        match self.judge(catalog, call)? {
            // Whether somebody agrees is known only when they are asked.
            Verdict::Allow | Verdict::Warn(_) | Verdict::Confirm(_) => Ok(()),
            Verdict::Refuse(reason) => Err(refusal(reason)),
        }
    }
}

#[cfg(test)]
mod tests;
