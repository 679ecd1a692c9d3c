//! The trust check of a call: asks the ledger and, where needed, a person.

use std::sync::Arc;

use catalog::Catalog;
use parking_lot::Mutex;
use tool::{Context, FastMap, Finding, Json, Listing, Severity, Tool};

use crate::admission::{Admission, Check, ListingCheck};
use crate::call;
use crate::question::Question;
use crate::refusal::{Refusal, Refused};
use crate::trust::decide::{Config, Policy, Verdict};
use crate::trust::digest::{Digest, TrustLevel};
use crate::trust::ledger::{Ledger, LedgerStore, TrustState};
use crate::validate::ValidCall;
use tool::clock::Clock;

/// Stands in the way of calls.
pub struct TrustCheck {
    config: Config,
    store: Arc<dyn LedgerStore>,
    clock: Arc<dyn Clock>,
    known: Mutex<Known>,
}

/// What was found out about tools. Every call asks for it.
#[derive(Default)]
struct Known {
    /// By tool, made from this definition.
    digests: FastMap<String, (Json, Digest)>,
    /// By tool, for this definition in this very ledger.
    states: FastMap<String, (Json, TrustLevel)>,
    ledger: Arc<Ledger>,
}

impl Known {
    /// The state of a tool that is as the ledger knows it, if that was found out
    /// before: a look at two places in memory, whatever they say.
    fn state(&self, ledger: &Arc<Ledger>, name: &str, tool: &Tool) -> Option<TrustLevel> {
        let (raw, state) = self.states.get(name)?;
        (Arc::ptr_eq(&self.ledger, ledger) && is_very(raw, &tool.raw)).then_some(*state)
    }

    /// Where a tool stands. Its digest is made once for a definition.
    fn look_up(&mut self, ledger: &Arc<Ledger>, name: &str, tool: &Tool) -> TrustState {
        if !Arc::ptr_eq(&self.ledger, ledger) {
            self.states.clear();
            self.ledger = Arc::clone(ledger);
        }
        let trust_state = match self.digests.get(name) {
            Some((raw, digest)) if *raw == tool.raw => ledger.state(name, tool, digest),
            Some(_) | None => {
                let digest = Digest::of(tool);
                let trust_state = ledger.state(name, tool, &digest);
                self.digests.insert(name.to_owned(), (tool.raw.clone(), digest));
                trust_state
            }
        };
        if let TrustState::Known(state) = trust_state {
            self.states.insert(name.to_owned(), (tool.raw.clone(), state));
        }
        trust_state
    }
}

/// Whether two values are one, in the same place.
fn is_very(one: &Json, other: &Json) -> bool {
    std::ptr::eq(one.as_str(), other.as_str())
}

impl TrustCheck {
    pub fn new(config: Config, store: Arc<dyn LedgerStore>, clock: Arc<dyn Clock>) -> TrustCheck {
        TrustCheck { config, store, clock, known: Mutex::default() }
    }

    /// Where a tool stands.
    fn trust_state(&self, ledger: &Arc<Ledger>, name: &str, tool: &Tool) -> TrustState {
        let mut known = self.known.lock();
        match known.state(ledger, name, tool) {
            Some(state) => TrustState::Known(state),
            None => known.look_up(ledger, name, tool),
        }
    }

    fn judge(&self, tool: &Tool, call: &ValidCall) -> Result<Verdict, Refusal> {
        let policy = self.config.policy(&call.callee.upstream);
        if policy == Policy::Off {
            return Ok(Verdict::Allow);
        }
        let name = &call.callee.path;
        let mut ledger = self.store.read().map_err(|tampered| {
            tracing::error!(%tampered, "the trust ledger is not believed");
            refusal(tampered.to_string())
        })?;
        let mut trust_state = self.trust_state(&ledger, name, tool);
        if trust_state == TrustState::New {
            // Whoever was quicker counts: it may be the operator, who revoked it.
            match self.note(&[(name, tool)]) {
                Some(noted) => {
                    ledger = noted;
                    trust_state = self.trust_state(&ledger, name, tool);
                }
                // What is not noted could change unseen before the next call.
                None if policy == Policy::Enforce => {
                    return Err(refusal(format!(
                        "`{name}` is new and cannot be noted in the trust ledger now (the log says \
                         why), so it is not called; try again, or see `gatelet trust list`"
                    )));
                }
                None => {}
            }
        }
        let (named, said) = (call.callee.named(), &call.annotations);
        let danger = match (&trust_state, ledger.get(name)) {
            (TrustState::Drifted { .. }, Some(entry)) => {
                self.config.danger_of_changed(named, &entry.seen.hints(), said)
            }
            _ => self.config.danger(named, said),
        };
        Ok(self.config.decide(policy, &trust_state, danger, name))
    }

    /// Notes tools that nobody has noted yet.
    fn note(&self, tools: &[(&String, &Tool)]) -> Option<Arc<Ledger>> {
        let now = self.clock.unix_millis();
        let noted = self.store.change(&mut |ledger| {
            for (name, tool) in tools {
                if ledger.get(name).is_none() {
                    ledger.set(name, tool, self.config.first, now);
                }
            }
        });
        noted
            .inspect_err(|error| tracing::error!(%error, "the trust ledger cannot be written"))
            .ok()
    }
}

fn refusal(message: String) -> Refusal {
    Refusal { code: Refused::Untrusted, message, retry_after: None }
}

impl Check for TrustCheck {
    fn admit(
        &self,
        catalog: &Catalog,
        call: &ValidCall,
        _: &Context,
    ) -> Result<Admission, Refusal> {
        // Resources and prompts only tell something.
        let Some(slot) = call.slot() else { return Ok(Admission::Free) };
        match self.judge(catalog.tool(slot), call)? {
            Verdict::Allow => Ok(Admission::Free),
            Verdict::Warn(reason) => {
                tracing::warn!(
                    upstream = call.callee.upstream,
                    tool = call.callee.tool,
                    reason,
                    "trust"
                );
                Ok(Admission::Free)
            }
            Verdict::Confirm(text) => Ok(Admission::Ask(Question { text, ended_by_trust: true })),
            Verdict::Refuse(reason) => Err(refusal(reason)),
        }
    }

    fn vouches(&self, path: &str, tool: &Tool) -> bool {
        let Ok(ledger) = self.store.read() else { return false };
        self.trust_state(&ledger, path, tool) == TrustState::Known(TrustLevel::Trusted)
    }
}

impl ListingCheck for TrustCheck {
    fn inspect(&self, upstream: &str, listing: &Listing) -> Vec<Finding> {
        // Where changes are refused, what is listed first is what was vouched
        // for; elsewhere that is what is called first, which keeps the ledger
        // as small as its use.
        let notes = match self.config.policy(upstream) {
            Policy::Off => return Vec::new(),
            Policy::Warn => false,
            Policy::Enforce => true,
        };
        let Ok(ledger) = self.store.read() else { return Vec::new() };
        let (mut findings, mut fresh) = (Vec::new(), Vec::new());
        for tool in &listing.tools {
            let name = call::path(upstream, &tool.name);
            match self.trust_state(&ledger, &name, tool) {
                TrustState::New if notes => fresh.push((name, tool)),
                TrustState::New | TrustState::Known(_) => {}
                TrustState::Drifted { drift, .. } => {
                    let drift: Vec<String> = drift.iter().map(ToString::to_string).collect();
                    let message = format!(
                        "changed since it was vouched for: {}; see `gatelet trust show {}`",
                        drift.join("; "),
                        tool::shell::word(&name).as_deref().unwrap_or("NAME"),
                    );
                    findings.push(Finding::new(Severity::Warning, "drift", name, message));
                }
            }
        }
        if !fresh.is_empty() {
            let fresh: Vec<_> = fresh.iter().map(|(name, tool)| (name, *tool)).collect();
            self.note(&fresh);
        }
        findings
    }
}

#[cfg(test)]
mod tests;
