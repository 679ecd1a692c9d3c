use std::path::PathBuf;

use serde_json::json;
use store::memory::{Limits, Memory};
use tool::clock::Fake;
use web::identity::key::KeyRing;

use super::*;
use crate::key_file;

/// Two replicas and their store.
struct Replicas {
    store: Arc<Memory>,
    states: [tempfile::TempDir; 2],
}

fn store() -> Arc<Memory> {
    Arc::new(Memory::new(Arc::new(Fake::default()), Limits::default()))
}

impl Replicas {
    fn new() -> Replicas {
        Replicas { store: store(), states: [(); 2].map(|()| tempfile::tempdir().unwrap()) }
    }

    fn mirror(&self, replica: usize, signer: &Signer) -> Mirror {
        let state = self.states[replica].path();
        let copy = Arc::new(KeyFile(state.to_owned()));
        Mirror::new(copy, Arc::clone(&self.store) as _, signer.clone(), state)
    }

    /// Brings every replica in line, one after another, until nothing changes.
    async fn align(&self) {
        for replica in [0, 1, 0] {
            self.mirror(replica, &Signer::new(None)).align().await.unwrap();
        }
    }

    fn change(&self, replica: usize, act: impl Fn(&mut KeyRing) + Sync) {
        key_file::change(self.states[replica].path(), |ring| {
            act(ring);
            Ok(())
        })
        .unwrap();
    }

    fn create(&self, replica: usize, name: &str) {
        self.change(replica, |ring| drop(ring.create(name, [name.len() as u8; 20], 1).unwrap()));
    }

    fn revoke(&self, replica: usize, name: &str) {
        self.change(replica, |ring| ring.revoke(name, 2).unwrap());
    }

    /// The keys of a replica; those that are revoked with a `-`.
    fn keys(&self, replica: usize) -> Vec<String> {
        let ring = key_file::load(&key_file::file(self.states[replica].path())).unwrap();
        let show = |key: &web::identity::key::Key| {
            format!("{}{}", if key.revoked.is_some() { "-" } else { "" }, key.name)
        };
        let mut shown: Vec<String> = ring.keys.iter().map(show).collect();
        shown.sort();
        shown
    }

    #[track_caller]
    fn check(&self, expected: &[&str]) {
        assert_eq!((self.keys(0), self.keys(1)), (expected_of(expected), expected_of(expected)));
    }
}

fn expected_of(expected: &[&str]) -> Vec<String> {
    expected.iter().map(|&name| name.to_owned()).collect()
}

#[tokio::test]
async fn what_replicas_change_at_the_same_time_is_merged() {
    let replicas = Replicas::new();
    replicas.create(0, "a");
    replicas.create(1, "bb");
    replicas.align().await;
    replicas.check(&["a", "bb"]);
    replicas.revoke(0, "a");
    replicas.create(1, "ccc");
    replicas.align().await;
    replicas.check(&["-a", "bb", "ccc"]);
    replicas.change(0, |ring| ring.keys.retain(|key| key.name != "bb"));
    replicas.align().await;
    replicas.check(&["-a", "ccc"]);
}

#[tokio::test]
async fn a_store_that_lost_changes_brings_nothing_back() {
    let mut replicas = Replicas::new();
    replicas.create(0, "a");
    replicas.create(0, "bb");
    replicas.align().await;
    let early = Documents::read(&*replicas.store, "keys", STORE_TIMEOUT).await.unwrap().unwrap();
    replicas.revoke(1, "a");
    replicas.align().await;
    replicas.check(&["-a", "bb"]);
    // A failover to a replica of the store that had not heard of it.
    let now = Documents::read(&*replicas.store, "keys", STORE_TIMEOUT).await.unwrap().unwrap();
    let swapped =
        replicas.store.swap("keys", Some(now.version), Some(early.bytes), STORE_TIMEOUT).await;
    assert!(swapped.is_ok());
    replicas.align().await;
    replicas.check(&["-a", "bb"]);
    // A restart of a store that keeps nothing, while one replica changes something.
    replicas.store = store();
    replicas.create(1, "ccc");
    replicas.align().await;
    replicas.check(&["-a", "bb", "ccc"]);
}

#[tokio::test]
async fn what_is_forged_changes_nothing_and_is_not_overwritten() {
    let replicas = Replicas::new();
    replicas.create(0, "a");
    let ours = Signer::new(Some("the operator's own key"));
    replicas.mirror(0, &Signer::new(Some("another key"))).align().await.unwrap();
    replicas.create(1, "bb");
    let refused = replicas.mirror(1, &ours).align().await;
    assert!(matches!(refused, Err(MirrorError::Forged(_))), "{refused:?}");
    assert_eq!(replicas.keys(1), ["bb"]);
}

#[tokio::test]
async fn what_searches_learned_at_one_replica_the_others_know_and_what_is_forgotten_is_gone() {
    let replicas = Replicas::new();
    let file = |replica: usize| UsageFile::at(replicas.states[replica].path());
    let align = async || {
        for replica in [0, 1, 0] {
            let state = replicas.states[replica].path();
            let copy = Arc::new(UsageEntries(file(replica)));
            let store = Arc::clone(&replicas.store) as _;
            Mirror::new(copy, store, Signer::new(None), state).align().await.unwrap();
        }
    };
    file(0).change(|usage| usage.note("send mail", "mail/send", 1)).unwrap();
    file(1).change(|usage| usage.note("send a letter", "post/send", 2)).unwrap();
    align().await;
    let both = file(0).load().unwrap();
    assert_eq!(both, file(1).load().unwrap());
    let chosen: Vec<&str> = both.priors("send", 2).into_keys().collect();
    assert_eq!(chosen, ["mail/send", "post/send"]);
    file(0).change(|usage| usage.note("send mail", "mail/send", 3)).unwrap();
    align().await;
    let more = file(1).load().unwrap().priors("mail", 3)["mail/send"];
    assert!(both.priors("mail", 3)["mail/send"] < more);
    file(1).change(|usage| *usage = Default::default()).unwrap();
    align().await;
    assert!(file(0).load().unwrap().is_empty());
}

#[test]
fn of_two_changes_of_one_entry_the_stricter_one_stays() {
    let keys = KeyFile(PathBuf::new());
    let (good, revoked) = (json!({"name": "a"}), json!({"name": "a", "revoked": 3}));
    assert_eq!(keys.stricter(Some(&good), Some(&revoked)), Some(&revoked));
    assert_eq!(keys.stricter(Some(&revoked), Some(&good)), Some(&revoked));
    let state = tempfile::tempdir().unwrap();
    let ledger = LedgerEntries::at(state.path());
    let entry = |state: &str, since: u64| json!({"state": state, "since": since});
    let (trusted, untrusted) = (entry("trusted", 9), entry("untrusted", 1));
    assert_eq!(ledger.stricter(Some(&trusted), Some(&untrusted)), Some(&untrusted));
    assert_eq!(ledger.stricter(Some(&trusted), None), None, "a grant that was taken back");
    assert_eq!(ledger.stricter(None, Some(&untrusted)), Some(&untrusted));
    let mut later = entry("verified", 10);
    assert_eq!(ledger.stricter(Some(&trusted), Some(&later)), Some(&trusted), "it was noted");
    assert_eq!(ledger.stricter(Some(&later), Some(&trusted)), Some(&trusted), "it was noted");
    later["digest"] = json!("of another definition");
    assert_eq!(ledger.stricter(Some(&trusted), Some(&later)), Some(&later));
}
