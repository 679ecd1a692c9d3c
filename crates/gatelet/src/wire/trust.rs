//! The trust gate before the upstreams of the configuration.

use std::path::Path;
use std::sync::Arc;

use gateway::clock::Clock;
use gateway::stage::trust::Keeper;
use gateway::stage::{Open, Trust};
use gateway::trust::Policy;

use crate::config::Config;
use crate::ledger;

/// What decides about calls. Our own tools are what they are: nothing of them
/// changes behind our back, so they are never asked about.
pub(super) fn trust(config: &Config, state: &Path, clock: &Arc<dyn Clock>) -> Arc<dyn Trust> {
    let mut trust = config.trust.clone();
    let mut policies = trust.upstreams.iter().map(|(_, policy)| *policy);
    if trust.policy == Policy::Off && policies.all(|policy| policy == Policy::Off) {
        return Arc::new(Open);
    }
    trust.upstreams.extend(own(config).map(|label| (label, Policy::Off)));
    let book = ledger::File::at(state);
    Arc::new(Keeper::new(trust, Arc::new(book), Arc::clone(clock)))
}

/// Whether two configurations trust alike.
pub(super) fn is_same(one: &Config, other: &Config) -> bool {
    one.trust == other.trust && own(one).eq(own(other))
}

/// The labels of our own tools, none of which an upstream goes by.
fn own(config: &Config) -> impl Iterator<Item = String> {
    let taken =
        |label: &str| config.upstreams.iter().any(|one| catalog::name::same(&one.label, label));
    let gate = Some(gateway::own::LABEL).filter(|label| !taken(label));
    let builtin = config.builtin_labels().into_iter().map(|(label, _)| label);
    builtin.chain(gate.map(str::to_owned))
}
