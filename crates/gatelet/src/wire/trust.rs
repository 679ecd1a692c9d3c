//! The trust gate before the upstreams of the configuration.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use gateway::clock::Clock;
use gateway::stage::trust::Keeper;
use gateway::stage::{Open, Trust};
use gateway::trust::{Book, Ledger, Policy, Tampered};

use crate::builtin;
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
    trust.upstreams.extend(own(config).map(|label| (label.to_owned(), Policy::Off)));
    let book = WhenNeeded { state: state.to_owned(), opened: OnceLock::new() };
    Arc::new(Keeper::new(trust, Arc::new(book), Arc::clone(clock)))
}

/// Whether two configurations trust alike.
pub(super) fn is_same(one: &Config, other: &Config) -> bool {
    one.trust == other.trust && own(one).eq(own(other))
}

/// The labels of our own tools, but not one that an upstream goes by.
fn own(config: &Config) -> impl Iterator<Item = &'static str> {
    let builtin = builtin::LABELS.iter().map(|(label, _)| *label).filter(|_| config.builtin);
    let taken =
        |label: &str| config.upstreams.iter().any(|one| catalog::name::same(&one.label, label));
    builtin.chain([gateway::own::LABEL]).filter(move |label| !taken(label))
}

/// The ledger, opened by the first call that needs it: who only uses our own
/// tools gets no key file.
struct WhenNeeded {
    state: PathBuf,
    opened: OnceLock<Option<ledger::File>>,
}

impl WhenNeeded {
    fn file(&self) -> Option<&ledger::File> {
        let open = || match ledger::File::open(&self.state) {
            Ok(file) => Some(file),
            Err(error) => {
                tracing::error!("the trust ledger cannot be opened: {error:#}");
                None
            }
        };
        self.opened.get_or_init(open).as_ref()
    }
}

impl Book for WhenNeeded {
    fn read(&self) -> Result<Arc<Ledger>, Tampered> {
        self.file().map_or(Err(Tampered::Unreadable), Book::read)
    }

    fn write(&self, ledger: &Ledger) {
        if let Some(file) = self.file() {
            file.write(ledger);
        }
    }
}
