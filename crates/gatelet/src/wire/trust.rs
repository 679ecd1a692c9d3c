//! The trust gate before the upstreams of the configuration.

use std::path::Path;
use std::sync::Arc;

use gateway::clock::Clock;
use gateway::policy::trust::{Policy, TrustCheck};

use crate::config::Config;
use crate::ledger;

/// The trust check, where there is one. Our own tools are what they are: nothing
/// of them changes behind our back, so they are never asked about.
pub(super) fn trust(
    config: &Config,
    state: &Path,
    clock: &Arc<dyn Clock>,
) -> Option<Arc<TrustCheck>> {
    let mut trust = config.trust.clone();
    let mut policies = trust.upstreams.iter().map(|(_, policy)| *policy);
    if trust.policy == Policy::Off && policies.all(|policy| policy == Policy::Off) {
        return None;
    }
    trust.upstreams.extend(own(config).map(|label| (label, Policy::Off)));
    let store = ledger::File::at(state);
    Some(Arc::new(TrustCheck::new(trust, Arc::new(store), Arc::clone(clock))))
}

/// Whether two configurations trust alike.
pub(super) fn is_same(one: &Config, other: &Config) -> bool {
    one.trust == other.trust && own(one).eq(own(other))
}

/// The labels of our own tools, none of which an upstream goes by.
fn own(config: &Config) -> impl Iterator<Item = String> {
    let taken =
        |label: &str| config.upstreams.iter().any(|one| catalog::name::same(&one.label, label));
    let gate = Some(gateway::roster::BUILTIN).filter(|label| !taken(label));
    let builtin = config.builtin_labels().into_iter().map(|(label, _)| label);
    builtin.chain(gate.map(str::to_owned))
}
