//! The trust check of a call: asks the ledger and, where needed, a person.

use std::sync::Arc;

use catalog::Catalog;
use parking_lot::Mutex;
use tool::{Context, FastMap, Finding, Json, Listing, Severity, Tool};

use crate::admission::{Admission, Check, ListingCheck};
use crate::call;
use crate::question::Question;
use crate::refusal::{Refusal, RefusalCode};
use crate::trust::decide::{Config, Policy, Verdict};
use crate::trust::digest::{Digest, TrustLevel};
use crate::trust::ledger::{Ledger, LedgerStore, TrustState};
use crate::validate::ValidCall;
use tool::clock::Clock;

/// The check of calls by the trust in their tools.
pub struct TrustCheck {
    config: Config,
    store: Arc<dyn LedgerStore>,
    clock: Arc<dyn Clock>,
    cache: Mutex<StateCache>,
}

/// Digests and trust levels of tools, cached because every call needs them.
#[derive(Default)]
struct StateCache {
    /// By tool: its definition, and the digest made from it.
    digests: FastMap<String, (Json, Digest)>,
    /// By tool: its definition, and its trust level in `ledger`.
    levels: FastMap<String, (Json, TrustLevel)>,
    ledger: Arc<Ledger>,
}

impl StateCache {
    /// The cached trust level of a tool that has not changed. Compares addresses only,
    /// so it is cheap.
    fn level(&self, ledger: &Arc<Ledger>, name: &str, tool: &Tool) -> Option<TrustLevel> {
        let (raw, level) = self.levels.get(name)?;
        (Arc::ptr_eq(&self.ledger, ledger) && is_same_memory(raw, &tool.raw)).then_some(*level)
    }

    /// Looks up the trust state of a tool in the ledger. Its digest is made once per
    /// definition.
    fn look_up(&mut self, ledger: &Arc<Ledger>, name: &str, tool: &Tool) -> TrustState {
        if !Arc::ptr_eq(&self.ledger, ledger) {
            self.levels.clear();
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
        if let TrustState::Known(level) = trust_state {
            self.levels.insert(name.to_owned(), (tool.raw.clone(), level));
        }
        trust_state
    }
}

/// Whether two values share their memory.
fn is_same_memory(one: &Json, other: &Json) -> bool {
    std::ptr::eq(one.as_str(), other.as_str())
}

impl TrustCheck {
    pub fn new(config: Config, store: Arc<dyn LedgerStore>, clock: Arc<dyn Clock>) -> TrustCheck {
        TrustCheck { config, store, clock, cache: Mutex::default() }
    }

    /// The trust state of the tool `name` (as `upstream/tool`).
    fn trust_state(&self, ledger: &Arc<Ledger>, name: &str, tool: &Tool) -> TrustState {
        let mut cache = self.cache.lock();
        match cache.level(ledger, name, tool) {
            Some(level) => TrustState::Known(level),
            None => cache.look_up(ledger, name, tool),
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
            // Somebody else may have been quicker, such as the operator who revokes it.
            match self.add_new(&[(name, tool)]) {
                Some(changed) => {
                    ledger = changed;
                    trust_state = self.trust_state(&ledger, name, tool);
                }
                // A tool that is not in the ledger could change unnoticed.
                None if policy == Policy::Enforce => {
                    return Err(refusal(format!(
                        "`{name}` is new and cannot be noted in the trust ledger now (the log says \
                         why), so it is not called; try again, or see `gatelet trust list`"
                    )));
                }
                None => {}
            }
        }
        let (names, annotations) = (call.callee.names(), &call.annotations);
        let danger = match (&trust_state, ledger.deciding_entry(name)) {
            (TrustState::Drifted { .. }, Some(entry)) => {
                self.config.danger_of_changed(names, &entry.seen.hints(), annotations)
            }
            _ => self.config.danger(names, annotations),
        };
        Ok(self.config.decide(policy, &trust_state, danger, name))
    }

    /// Adds new tools to the ledger; `None` where it cannot be written.
    fn add_new(&self, tools: &[(&String, &Tool)]) -> Option<Arc<Ledger>> {
        let now = self.clock.unix_millis();
        let changed = self.store.change(&mut |ledger| {
            for (name, tool) in tools {
                if ledger.get(name).is_none() {
                    ledger.set(name, tool, self.config.first, now);
                }
            }
        });
        changed
            .inspect_err(|error| tracing::error!(%error, "the trust ledger cannot be written"))
            .ok()
    }
}

fn refusal(message: String) -> Refusal {
    Refusal { code: RefusalCode::Untrusted, message, retry_after: None }
}

impl Check for TrustCheck {
    fn admit(
        &self,
        catalog: &Catalog,
        call: &ValidCall,
        _: &Context,
    ) -> Result<Admission, Refusal> {
        // Only tools are checked: resources and prompts do nothing.
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
        // Where changes are refused, a tool enters the ledger when it is first listed;
        // elsewhere when it is first called, which keeps the ledger small.
        let adds_new = match self.config.policy(upstream) {
            Policy::Off => return Vec::new(),
            Policy::Warn => false,
            Policy::Enforce => true,
        };
        let Ok(ledger) = self.store.read() else { return Vec::new() };
        let (mut findings, mut fresh) = (Vec::new(), Vec::new());
        for tool in &listing.tools {
            let name = call::path(upstream, &tool.name);
            match self.trust_state(&ledger, &name, tool) {
                TrustState::New if adds_new => fresh.push((name, tool)),
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
            self.add_new(&fresh);
        }
        findings
    }
}

#[cfg(test)]
mod tests;
