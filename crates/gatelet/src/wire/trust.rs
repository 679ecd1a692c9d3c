//! Sets up the trust check: which tools may be called, by the ledger of the tools that
//! somebody vouched for.

use std::path::Path;
use std::sync::Arc;

use policy::trust::{InMemoryLedger, LedgerError, LedgerStore, Policy, TrustCheck};
use tool::clock::Clock;

use super::bound_ledger::BoundLedger;
use super::identity::Identities;
use crate::ledger_file;
use config::Config;

/// The trust check; `None` where the configuration switches it off everywhere. Built-in
/// tools are never checked: they cannot change behind our back.
pub(super) fn trust_check(
    config: &Config,
    state: &Path,
    identities: &Identities,
    clock: &Arc<dyn Clock>,
) -> Option<Arc<TrustCheck>> {
    let mut trust = config.trust.clone();
    let policies = || trust.upstreams.iter().map(|(_, policy)| *policy).chain([trust.policy]);
    if policies().all(|policy| policy == Policy::Off) {
        return None;
    }
    let strict = policies().any(|policy| policy == Policy::Enforce);
    let ledger = open_ledger(state, strict, identities.clone());
    trust.upstreams.extend(builtin_labels(config).map(|label| (label, Policy::Off)));
    Some(Arc::new(TrustCheck::new(trust, ledger, Arc::clone(clock))))
}

/// Opens the ledger on disk. Where that is not possible it is in memory, unless trust is
/// enforced for some upstream (`strict`): then calls are refused.
fn open_ledger(state: &Path, strict: bool, identities: Identities) -> Arc<dyn LedgerStore> {
    // At the start there is time to wait for the lock; during calls there is not.
    if !strict && let Err(LedgerError::NoStorage(why)) = ledger_file::LedgerFile::at(state).read() {
        tracing::warn!("what is known of tools is forgotten when this gate ends: {why}");
        return Arc::new(BoundLedger::new(InMemoryLedger::default(), identities));
    }
    Arc::new(BoundLedger::new(ledger_file::LedgerFile::for_calls(state), identities))
}

/// Whether two configurations have the same trust settings.
pub(super) fn is_same(one: &Config, other: &Config) -> bool {
    one.trust == other.trust && builtin_labels(one).eq(builtin_labels(other))
}

/// The labels of built-in tools that no upstream uses.
fn builtin_labels(config: &Config) -> impl Iterator<Item = String> {
    let taken =
        |label: &str| config.upstreams.iter().any(|one| catalog::name::same(&one.label, label));
    let gate = Some(roster::BUILTIN).filter(|label| !taken(label));
    let builtin = config.builtin_labels().into_iter().map(|(label, _)| label);
    builtin.chain(gate.map(str::to_owned))
}
