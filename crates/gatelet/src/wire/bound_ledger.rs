//! The trust ledger, as the upstreams of one configuration see it.
//!
//! The file names tools by `label@identity/tool`, where the identity says what
//! the upstream is ([`UpstreamIdentity`]). Readers ask by `label/tool` and get
//! what is known of the upstream that has this label here. What was noted
//! without an identity is not believed when it grants something: nobody knows
//! which upstream was meant. A revocation counts for every upstream.

use std::sync::Arc;

use parking_lot::Mutex;
use policy::trust::{Ledger, LedgerStore, Tampered, TrustLevel};

use super::identity::Identities;
#[cfg(doc)]
use super::identity::UpstreamIdentity;

/// A ledger bound to what upstreams are.
pub(crate) struct BoundLedger<S> {
    store: S,
    identities: Identities,
    /// Every call asks for it.
    last: Mutex<Option<Made>>,
}

/// What was made of the whole ledger, when labels stood for this.
struct Made {
    whole: Arc<Ledger>,
    version: u64,
    seen: Arc<Ledger>,
}

impl<S: LedgerStore> BoundLedger<S> {
    pub(crate) fn new(store: S, identities: Identities) -> BoundLedger<S> {
        BoundLedger { store, identities, last: Mutex::default() }
    }

    /// How many entries are known that count for nothing here.
    pub(crate) fn n_foreign(&self) -> Result<usize, Tampered> {
        let whole = self.store.read()?;
        let is_foreign = |name: &str| self.bound(name).is_none();
        Ok(whole.iter().filter(|(name, _)| is_foreign(name)).count())
    }

    /// The name under which readers know an entry of the file, if it is of an
    /// upstream that is here.
    fn bound(&self, name: &str) -> Option<String> {
        let (upstream, tool) = name.split_once('/')?;
        let (label, identity) = upstream.rsplit_once('@')?;
        let here = self.identities.get(label)?;
        (here.as_str() == identity).then(|| format!("{label}/{tool}"))
    }

    /// The name in the file.
    fn stored(&self, name: &str) -> String {
        let Some((label, tool)) = name.split_once('/') else { return name.to_owned() };
        match self.identities.get(label) {
            Some(identity) => format!("{label}@{}/{tool}", identity.as_str()),
            None => name.to_owned(),
        }
    }

    /// What the file says, by the names that readers use.
    fn seen(&self, whole: &Ledger) -> Ledger {
        let mut seen = Ledger::default();
        for (name, entry) in whole.iter() {
            let is_plain = name.split_once('/').is_none_or(|(label, _)| !label.contains('@'));
            if is_plain && entry.state == TrustLevel::Untrusted {
                seen.insert(name.to_owned(), entry.clone());
            }
        }
        for (name, entry) in whole.iter() {
            if let Some(bound) = self.bound(name) {
                seen.insert(bound, entry.clone());
            }
        }
        seen
    }
}

impl<S: LedgerStore> LedgerStore for BoundLedger<S> {
    fn read(&self) -> Result<Arc<Ledger>, Tampered> {
        let whole = self.store.read()?;
        let mut last = self.last.lock();
        let version = self.identities.version();
        if let Some(made) = &*last
            && Arc::ptr_eq(&made.whole, &whole)
            && made.version == version
        {
            return Ok(Arc::clone(&made.seen));
        }
        let seen = Arc::new(self.seen(&whole));
        *last = Some(Made { whole, version, seen: Arc::clone(&seen) });
        Ok(seen)
    }

    fn change(&self, change: &mut dyn FnMut(&mut Ledger)) -> Result<Arc<Ledger>, Tampered> {
        self.store.change(&mut |whole| {
            let before = self.seen(whole);
            let mut after = before.clone();
            change(&mut after);
            for (name, entry) in after.iter() {
                if before.get(name) != Some(entry) {
                    whole.insert(self.stored(name), entry.clone());
                    // What was noted without an identity is replaced.
                    if self.stored(name) != name {
                        whole.forget(name);
                    }
                }
            }
            for (name, _) in before.iter().filter(|(name, _)| after.get(name).is_none()) {
                whole.forget(&self.stored(name));
                whole.forget(name);
            }
        })?;
        self.read()
    }
}

#[cfg(test)]
mod tests {
    use policy::trust::Memory;
    use tool::{Json, Tool};

    use super::*;
    use config::Source;

    fn identities(root: &str) -> Identities {
        let text = format!("[[upstream]]\nlabel = \"files\"\ncommand = \"f\"\nargs = [{root:?}]\n");
        let source = Source { name: "gatelet.toml".to_owned(), text };
        let read = config::read(source, std::path::Path::new(""), &config::Process).unwrap();
        Identities::new(read.0.upstreams.iter())
    }

    fn tool() -> Tool {
        Tool::parse(Json::parse(r#"{"name":"write"}"#).unwrap()).unwrap()
    }

    struct Shared(Arc<Memory>);

    impl LedgerStore for Shared {
        fn read(&self) -> Result<Arc<Ledger>, Tampered> {
            self.0.read()
        }

        fn change(&self, change: &mut dyn FnMut(&mut Ledger)) -> Result<Arc<Ledger>, Tampered> {
            self.0.change(change)
        }
    }

    #[test]
    fn what_is_granted_to_one_upstream_does_not_count_for_another_of_its_name() {
        let file = Arc::new(Memory::default());
        let one = BoundLedger::new(Shared(Arc::clone(&file)), identities("/a"));
        let other = BoundLedger::new(Shared(Arc::clone(&file)), identities("/b"));
        let mut grant = |ledger: &mut Ledger| {
            ledger.set("files/write", &tool(), TrustLevel::Trusted, 1);
        };
        one.change(&mut grant).unwrap();
        assert_eq!(one.read().unwrap().get("files/write").unwrap().state, TrustLevel::Trusted);
        assert_eq!(other.read().unwrap().get("files/write"), None);
        assert_eq!((one.n_foreign().unwrap(), other.n_foreign().unwrap()), (0, 1));
        assert!(Arc::ptr_eq(&one.read().unwrap(), &one.read().unwrap()), "it is made once");
    }

    #[test]
    fn without_an_identity_only_a_revocation_counts() {
        let file = Arc::new(Memory::default());
        file.change(&mut |ledger| {
            ledger.set("files/write", &tool(), TrustLevel::Trusted, 1);
            ledger.set("files/delete", &tool(), TrustLevel::Untrusted, 1);
        })
        .unwrap();
        let bound = BoundLedger::new(Shared(Arc::clone(&file)), identities("/a"));
        let seen = bound.read().unwrap();
        assert_eq!(seen.get("files/write"), None);
        assert_eq!(seen.get("files/delete").unwrap().state, TrustLevel::Untrusted);
        let mut anew = |ledger: &mut Ledger| {
            ledger.set("files/delete", &tool(), TrustLevel::Verified, 2);
        };
        let seen = bound.change(&mut anew).unwrap();
        assert_eq!(seen.get("files/delete").unwrap().state, TrustLevel::Verified);
        assert_eq!(file.read().unwrap().get("files/delete"), None, "the old entry is replaced");
    }
}
