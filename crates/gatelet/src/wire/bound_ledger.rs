//! The trust ledger with the tool names of one configuration.
//!
//! The stored ledger names a tool `label@identity/tool`, where the identity says which
//! server it is ([`UpstreamIdentity`]). Readers ask by `label/tool` and get the entry of
//! the server that has this label in their configuration. An entry without an identity
//! grants nothing, because nobody knows which server was meant; a revocation without
//! one counts for every server.

use std::sync::Arc;

use parking_lot::Mutex;
use policy::trust::{Digest, Ledger, LedgerError, LedgerStore, TrustLevel};
use tool::Tool;

use super::identity::Identities;
#[cfg(doc)]
use super::identity::UpstreamIdentity;

/// A ledger whose entries count only for the servers that they were made for.
pub(crate) struct BoundLedger<S> {
    store: S,
    identities: Identities,
    /// Every call reads the ledger, so the last translation is cached.
    last: Mutex<Option<Translated>>,
}

/// A stored ledger, and the same with the names that readers use.
struct Translated {
    stored: Arc<Ledger>,
    /// The version of the identities that it was translated with.
    identities_version: u64,
    by_label: Arc<Ledger>,
}

impl<S: LedgerStore> BoundLedger<S> {
    pub(crate) fn new(store: S, identities: Identities) -> BoundLedger<S> {
        BoundLedger { store, identities, last: Mutex::default() }
    }

    /// Whether somebody vouched for a tool (`upstream/tool`) exactly as it is now.
    pub(crate) fn vouches_for(&self, path: &str, tool: &Tool) -> bool {
        let Ok(ledger) = self.read() else { return false };
        let trusted = ledger.get(path).filter(|entry| entry.state != TrustLevel::Untrusted);
        trusted.is_some_and(|entry| entry.digest == Digest::of(tool))
    }

    /// Vouches for a tool (`upstream/tool`) as it is now: at the level that it had, or
    /// as verified if it had none.
    pub(crate) fn vouch_for(&self, path: &str, tool: &Tool, now: u64) -> Result<(), LedgerError> {
        let before = self.read()?.get(path).map(|entry| entry.state);
        let level = before.filter(|level| *level != TrustLevel::Untrusted);
        let level = level.unwrap_or(TrustLevel::Verified);
        self.change(&mut |ledger| ledger.set(path, tool, level, now))?;
        Ok(())
    }

    /// How many stored entries belong to servers that are not in this configuration.
    pub(crate) fn n_foreign(&self) -> Result<usize, LedgerError> {
        let stored = self.store.read()?;
        let is_foreign = |name: &str| self.label_name(name).is_none();
        Ok(stored.iter().filter(|(name, _)| is_foreign(name)).count())
    }

    /// The reader's name (`label/tool`) of a stored entry; `None` if its server is not
    /// in this configuration.
    fn label_name(&self, name: &str) -> Option<String> {
        let (upstream, tool) = name.split_once('/')?;
        let (label, identity) = upstream.rsplit_once('@')?;
        let here = self.identities.get(label)?;
        (here.as_str() == identity).then(|| format!("{label}/{tool}"))
    }

    /// The stored name (`label@identity/tool`) of an entry that readers call `name`.
    fn stored_name(&self, name: &str) -> String {
        let Some((label, tool)) = name.split_once('/') else { return name.to_owned() };
        match self.identities.get(label) {
            Some(identity) => format!("{label}@{}/{tool}", identity.as_str()),
            None => name.to_owned(),
        }
    }

    /// The stored ledger with the names that readers use.
    fn by_label(&self, stored: &Ledger) -> Ledger {
        let mut by_label = Ledger::default();
        for (name, entry) in stored.iter() {
            let is_plain = name.split_once('/').is_none_or(|(label, _)| !label.contains('@'));
            if is_plain && entry.state == TrustLevel::Untrusted {
                by_label.insert(name.to_owned(), entry.clone());
            }
        }
        for (name, entry) in stored.iter() {
            if let Some(label_name) = self.label_name(name) {
                by_label.insert(label_name, entry.clone());
            }
        }
        by_label
    }
}

impl<S: LedgerStore> LedgerStore for BoundLedger<S> {
    fn read(&self) -> Result<Arc<Ledger>, LedgerError> {
        let stored = self.store.read()?;
        let mut last = self.last.lock();
        let identities_version = self.identities.version();
        if let Some(translated) = &*last
            && Arc::ptr_eq(&translated.stored, &stored)
            && translated.identities_version == identities_version
        {
            return Ok(Arc::clone(&translated.by_label));
        }
        let by_label = Arc::new(self.by_label(&stored));
        *last = Some(Translated { stored, identities_version, by_label: Arc::clone(&by_label) });
        Ok(by_label)
    }

    fn change(&self, change: &mut dyn FnMut(&mut Ledger)) -> Result<Arc<Ledger>, LedgerError> {
        self.store.change(&mut |stored| {
            let before = self.by_label(stored);
            let mut after = before.clone();
            change(&mut after);
            for (name, entry) in after.iter() {
                if before.get(name) != Some(entry) {
                    stored.insert(self.stored_name(name), entry.clone());
                    // An entry without an identity is replaced.
                    if self.stored_name(name) != name {
                        stored.forget(name);
                    }
                }
            }
            for (name, _) in before.iter().filter(|(name, _)| after.get(name).is_none()) {
                stored.forget(&self.stored_name(name));
                stored.forget(name);
            }
        })?;
        self.read()
    }
}

#[cfg(test)]
mod tests {
    use policy::trust::InMemoryLedger;
    use tool::Json;

    use super::*;
    use config::SourceFile;

    fn identities(root: &str) -> Identities {
        let text = format!("[[upstream]]\nlabel = \"files\"\ncommand = \"f\"\nargs = [{root:?}]\n");
        let source = SourceFile { name: "gatelet.toml".to_owned(), text };
        let read =
            config::parse(source, std::path::Path::new(""), &config::ProcessEnvironment).unwrap();
        Identities::new(read.0.upstreams.iter())
    }

    fn tool() -> Tool {
        Tool::parse(Json::parse(r#"{"name":"write"}"#).unwrap()).unwrap()
    }

    struct Shared(Arc<InMemoryLedger>);

    impl LedgerStore for Shared {
        fn read(&self) -> Result<Arc<Ledger>, LedgerError> {
            self.0.read()
        }

        fn change(&self, change: &mut dyn FnMut(&mut Ledger)) -> Result<Arc<Ledger>, LedgerError> {
            self.0.change(change)
        }
    }

    #[test]
    fn what_is_granted_to_one_upstream_does_not_count_for_another_of_its_name() {
        let file = Arc::new(InMemoryLedger::default());
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
    fn a_label_that_is_no_legal_name_is_bound_by_its_alias() {
        let text = "[[upstream]]\nlabel = \"My-files\"\ncommand = \"f\"\n".to_owned();
        let source = SourceFile { name: "gatelet.toml".to_owned(), text };
        let read =
            config::parse(source, std::path::Path::new(""), &config::ProcessEnvironment).unwrap();
        let file = Arc::new(InMemoryLedger::default());
        let identities = Identities::new(read.0.upstreams.iter());
        let bound = BoundLedger::new(Shared(Arc::clone(&file)), identities);
        let path = policy::call::path("My-files", "write");
        bound.change(&mut |ledger| ledger.set(&path, &tool(), TrustLevel::Trusted, 1)).unwrap();
        assert_eq!(bound.read().unwrap().get(&path).unwrap().state, TrustLevel::Trusted);
        assert!(bound.vouches_for(&path, &tool()), "{path}");
        assert_eq!((file.read().unwrap().get(&path), bound.n_foreign().unwrap()), (None, 0));
    }

    #[test]
    fn without_an_identity_only_a_revocation_counts() {
        let file = Arc::new(InMemoryLedger::default());
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
