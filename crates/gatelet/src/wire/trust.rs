//! The trust gate before the upstreams of the configuration.

use std::path::Path;
use std::sync::Arc;

use policy::trust::{LedgerStore, Memory, Policy, Tampered, TrustCheck};
use tool::clock::Clock;

use super::bound_ledger::BoundLedger;
use super::identity::Identities;
use crate::ledger_file;
use config::Config;

/// The trust check, where there is one. Our own tools are what they are: nothing
/// of them changes behind our back, so they are never asked about.
pub(super) fn trust(
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
    let store = store(state, strict, identities.clone());
    trust.upstreams.extend(own(config).map(|label| (label, Policy::Off)));
    Some(Arc::new(TrustCheck::new(trust, store, Arc::clone(clock))))
}

/// Where the ledger is kept: on disk, or where that cannot be and nothing has to
/// be refused for it, in memory.
fn store(state: &Path, strict: bool, identities: Identities) -> Arc<dyn LedgerStore> {
    // Nobody waits for a gatelet that starts, so it may wait for others.
    if !strict && let Err(Tampered::Homeless(why)) = ledger_file::LedgerFile::at(state).read() {
        tracing::warn!("what is known of tools is forgotten when this gate ends: {why}");
        return Arc::new(BoundLedger::new(Memory::default(), identities));
    }
    Arc::new(BoundLedger::new(ledger_file::LedgerFile::for_calls(state), identities))
}

/// Whether two configurations trust alike.
pub(super) fn is_same(one: &Config, other: &Config) -> bool {
    one.trust == other.trust && own(one).eq(own(other))
}

/// The labels of our own tools, none of which an upstream goes by.
fn own(config: &Config) -> impl Iterator<Item = String> {
    let taken =
        |label: &str| config.upstreams.iter().any(|one| catalog::name::same(&one.label, label));
    let gate = Some(roster::BUILTIN).filter(|label| !taken(label));
    let builtin = config.builtin_labels().into_iter().map(|(label, _)| label);
    builtin.chain(gate.map(str::to_owned))
}
