//! A store of artifacts that several replicas share.
//!
//! The bytes of an artifact are an expiring value or a blob ([`Contents`]). A
//! document per owner indexes the artifacts, for listing, for the owner's size limit
//! and for finding the result of a call again; it is changed by compare-and-swap, so
//! replicas lose nothing. An artifact that cannot be stored stays in the memory of
//! this replica, and its envelope says so.

mod contents;
mod index;
mod log;

use std::sync::Arc;

use artifacts::{
    Artifact, ArtifactMeta, Config, LogError, Lookup, Memory, OpenLog, Owner, Store, StoredIn,
    TooLarge, Unreadable,
};
use async_trait::async_trait;
use tool::clock::Clock;

use crate::artifact_format::{parse, write};
use crate::state::{Documents, StateError};

use index::{Entry, Index, OwnerIndex, value_key};
use log::log_key;

pub use contents::{Contents, Sweeper};
pub use log::Logs;

/// Artifacts in a store that replicas share.
pub struct SharedArtifacts {
    contents: Contents,
    documents: Arc<dyn Documents>,
    logs: Logs,
    config: Config,
    clock: Arc<dyn Clock>,
    /// Artifacts that could not be stored.
    fallback: Memory,
}

impl SharedArtifacts {
    pub fn new(
        contents: Contents,
        documents: Arc<dyn Documents>,
        logs: Logs,
        config: Config,
        clock: Arc<dyn Clock>,
    ) -> SharedArtifacts {
        let fallback = Memory::new(config.clone(), Arc::clone(&clock));
        SharedArtifacts { contents, documents, logs, config, clock, fallback }
    }

    async fn store(&self, artifact: &Artifact) -> Result<(), StateError> {
        let mut bytes = Vec::with_capacity(artifact.bytes() + 1024);
        write(artifact, &mut bytes).map_err(StateError::unavailable)?;
        let value = value_key(&artifact.owner, &artifact.handle);
        let now = self.clock.unix_millis();
        self.contents.put(&value, bytes.into(), self.config.ttl, now).await?;
        let ttl_millis = u64::try_from(self.config.ttl.as_millis()).unwrap_or(u64::MAX);
        let entry = Entry::new(artifact, now.saturating_add(ttl_millis));
        let mut gone = Vec::new();
        let add = |index: &mut Index| gone = index.add(entry.clone(), &self.config, now);
        self.owner_index(&artifact.owner).change(add).await?;
        self.remove(&artifact.owner, &gone).await;
        Ok(())
    }

    fn owner_index(&self, owner: &Owner) -> OwnerIndex {
        OwnerIndex::new(Arc::clone(&self.documents), owner)
    }

    async fn index(&self, owner: &Owner) -> Index {
        self.owner_index(owner).read().await.unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot look up what is kept");
            Index::default()
        })
    }

    /// Removes the bytes of artifacts that the index does not have any more.
    async fn remove(&self, owner: &Owner, handles: &[String]) {
        for handle in handles {
            let key = value_key(owner, handle);
            self.contents.remove(&key).await;
            self.logs.remove(&log_key(&key)).await;
        }
    }

    async fn load(&self, owner: &Owner, handle: &str) -> Lookup {
        let found = self.contents.get(&value_key(owner, handle)).await;
        let Some(bytes) = found.map_err(unreadable)? else { return Ok(None) };
        // Parsing a long one takes a while.
        let read = move || parse(bytes.into());
        let artifact = tokio::task::spawn_blocking(read).await.ok().flatten();
        Ok(artifact.filter(|artifact| artifact.handle == handle).map(Arc::new))
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn unreadable(error: StateError) -> Unreadable {
    tracing::warn!(%error, "cannot read what is kept");
    Unreadable { reason: error.to_string() }
}

#[async_trait]
impl Store for SharedArtifacts {
    fn survives_restart(&self) -> bool {
        true
    }

    async fn put(&self, artifact: Artifact) -> Result<StoredIn, TooLarge> {
        self.config.check_size(&artifact)?;
        match self.store(&artifact).await {
            Ok(()) => {
                self.fallback.detach_call(&artifact.owner, &artifact.key);
                Ok(StoredIn::Stored)
            }
            Err(error) => {
                self.fallback.put(artifact).await?;
                Ok(StoredIn::MemoryFallback { reason: error.to_string() })
            }
        }
    }

    async fn put_with_log(&self, artifact: Artifact) -> Result<StoredIn, TooLarge> {
        let key = value_key(&artifact.owner, &artifact.handle);
        if let Err(error) = self.logs.begin(&key, self.config.ttl).await {
            self.fallback.put(artifact).await?;
            return Ok(StoredIn::MemoryFallback { reason: error.to_string() });
        }
        self.put(artifact).await
    }

    async fn get(&self, owner: &Owner, handle: &str) -> Lookup {
        if let Some(fallback) = self.fallback.get(owner, handle).await? {
            return Ok(Some(fallback));
        }
        let found = self.load(owner, handle).await?;
        Ok(found.filter(|artifact| owner.opens(&artifact.owner)))
    }

    async fn find_by_call(&self, owner: &Owner, key: &str) -> Lookup {
        if let Some(fallback) = self.fallback.find_by_call(owner, key).await? {
            return Ok(Some(fallback));
        }
        let index = self.owner_index(owner).read().await.map_err(unreadable)?;
        let now = self.clock.unix_millis();
        let answers = |entry: &&Entry| entry.attached && entry.key == key && now < entry.end;
        let Some(latest) = index.entries.iter().rev().find(answers) else { return Ok(None) };
        let found = self.load(owner, &latest.handle).await?;
        Ok(found.filter(|artifact| artifact.owner == *owner))
    }

    async fn forget_call(&self, owner: &Owner, handle: &str) {
        self.fallback.forget_call(owner, handle).await;
        let forget = |index: &mut Index| {
            for entry in index.entries.iter_mut().filter(|entry| entry.handle == handle) {
                entry.attached = false;
            }
        };
        if let Err(error) = self.owner_index(owner).change(forget).await {
            tracing::warn!(%error, "cannot note that a kept answer is not to be used again");
        }
    }

    async fn open_log(&self, owner: &Owner, handle: &str) -> Result<Option<OpenLog>, LogError> {
        let fallback = self.fallback.get(owner, handle).await.map_err(LogError::unavailable)?;
        if fallback.is_some() {
            return Ok(None);
        }
        let found = self.load(owner, handle).await.map_err(LogError::unavailable)?;
        let Some(artifact) = found.filter(|artifact| owner.opens(&artifact.owner)) else {
            return Ok(None);
        };
        let size = log::Size {
            index: self.owner_index(&artifact.owner),
            contents: self.contents.clone(),
            config: self.config.clone(),
            clock: Arc::clone(&self.clock),
            artifact,
        };
        self.logs.open(size).await.map(Some)
    }

    async fn list(&self, owner: &Owner) -> Vec<ArtifactMeta> {
        let (index, now) = (self.index(owner).await, self.clock.unix_millis());
        let stored = index.entries.into_iter().filter(|entry| now < entry.end).map(Entry::meta);
        let mut all = self.fallback.list(owner).await;
        all.extend(stored);
        all.sort_by(|a, b| (b.made, &b.handle).cmp(&(a.made, &a.handle)));
        all
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;
    use tool::clock::Fake;

    use super::contents::TIMEOUT;
    use super::*;
    use crate::memory::{self, Limits};
    use crate::state::{Expiring, Leases, StateFuture, Version, Versioned};
    use bytes::Bytes;
    use futures::stream::BoxStream;

    struct Replicas {
        clock: Arc<Fake>,
        store: Arc<memory::Memory>,
        one: SharedArtifacts,
        other: SharedArtifacts,
    }

    fn replicas(owner_bytes: usize, contents: fn(&Arc<memory::Memory>) -> Contents) -> Replicas {
        let clock = Arc::new(Fake::default());
        let store = Arc::new(memory::Memory::new(Arc::clone(&clock) as _, Limits::default()));
        let config = Config { owner_bytes, ..Config::default() };
        let open = || {
            let (contents, documents) = (contents(&store), Arc::clone(&store));
            let logs = Logs { values: Arc::clone(&store) as _, leases: Arc::clone(&store) as _ };
            SharedArtifacts::new(contents, documents, logs, config.clone(), Arc::clone(&clock) as _)
        };
        Replicas { one: open(), other: open(), clock, store }
    }

    const KINDS: [fn(&Arc<memory::Memory>) -> Contents; 2] = [
        |store| Contents::Values(Arc::clone(store) as _),
        |store| Contents::Blobs { blobs: Arc::clone(store) as _, places: Arc::clone(store) as _ },
    ];

    fn artifact(owner: &str, key: &str, text: &str) -> Artifact {
        let owner = Owner::from_stored(owner);
        Artifact {
            handle: Artifact::new_handle(&owner),
            owner,
            made: 1,
            upstream: "u".to_owned(),
            tool: "t".to_owned(),
            id: "u:t".to_owned(),
            key: key.to_owned(),
            result: json!({"content": [{"type": "text", "text": text}]}).into(),
            raw: None,
            chars: text.len(),
            parts: <_>::default(),
        }
    }

    #[tokio::test]
    async fn what_one_replica_keeps_the_others_view_list_and_find_again() {
        for kind in KINDS {
            let Replicas { clock, one, other, .. } = replicas(1 << 20, kind);
            let kept = artifact("ann", "k", "hello");
            let (ann, bob) = (kept.owner.clone(), Owner::from_stored("bob"));
            assert_eq!(one.put(kept.clone()).await, Ok(StoredIn::Stored));
            let seen = other.get(&ann, &kept.handle).await.unwrap().unwrap();
            assert_eq!(seen.result.as_str(), kept.result.as_str());
            assert!(other.get(&bob, &kept.handle).await.unwrap().is_none(), "another owner's");
            assert_eq!(other.list(&ann).await.len(), 1);
            assert_eq!(other.find_by_call(&ann, "k").await.unwrap().unwrap().handle, kept.handle);
            other.forget_call(&ann, &kept.handle).await;
            assert!(
                one.find_by_call(&ann, "k").await.unwrap().is_none(),
                "the call runs again everywhere"
            );
            clock.advance(Config::default().ttl);
            assert!(
                one.get(&ann, &kept.handle).await.unwrap().is_none()
                    && one.list(&ann).await.is_empty()
            );
        }
    }

    #[tokio::test]
    async fn an_owner_has_one_share_over_all_replicas() {
        for kind in KINDS {
            let Replicas { one, other, .. } = replicas(1000, kind);
            let texts = ["a".repeat(400), "b".repeat(400), "c".repeat(400)];
            let kept: Vec<Artifact> =
                texts.iter().map(|text| artifact("ann", text, text)).collect();
            let owner = kept[0].owner.clone();
            for (n, kept) in kept.iter().enumerate() {
                let store = if n % 2 == 0 { &one } else { &other };
                assert_eq!(store.put(kept.clone()).await, Ok(StoredIn::Stored));
            }
            assert!(
                one.get(&owner, &kept[0].handle).await.unwrap().is_none(),
                "the oldest gave way"
            );
            assert!(one.get(&owner, &kept[2].handle).await.unwrap().is_some());
        }
    }

    #[tokio::test]
    async fn blobs_are_swept_after_their_end_by_one_replica_at_a_time() {
        let Replicas { clock, store, one, .. } = replicas(1 << 20, KINDS[1]);
        let sweeper = || {
            let (blobs, documents) = (Arc::clone(&store) as _, Arc::clone(&store) as _);
            Sweeper::new(blobs, Arc::clone(&store) as _, documents, Arc::clone(&clock) as _)
        };
        let kept = artifact("ann", "k", "hello");
        assert_eq!(one.put(kept.clone()).await, Ok(StoredIn::Stored));
        assert_eq!(sweeper().sweep().await, Ok(0), "it lives");
        assert!(one.get(&kept.owner, &kept.handle).await.unwrap().is_some());
        clock.advance(Config::default().ttl + Duration::from_secs(2 * 60 * 60));
        let busy = Leases::acquire(&*store, "sweep artifacts", TIMEOUT, TIMEOUT).await.unwrap();
        assert_eq!(sweeper().sweep().await, Err(StateError::Conflict));
        assert_eq!(Leases::release(&*store, busy, TIMEOUT).await, Ok(()));
        assert_eq!(sweeper().sweep().await, Ok(1));
        assert_eq!(sweeper().sweep().await, Ok(0), "each once");
    }

    /// A store that nobody can reach.
    struct Away;

    fn away<T>() -> StateFuture<'static, T> {
        futures::future::Either::Left(futures::future::ready(Err(StateError::unavailable("away"))))
    }

    impl Documents for Away {
        fn read<'a>(&'a self, _: &'a str, _: Duration) -> StateFuture<'a, Option<Versioned>> {
            away()
        }

        fn swap<'a>(
            &'a self,
            _: &'a str,
            _: Option<Version>,
            _: Option<Bytes>,
            _: Duration,
        ) -> StateFuture<'a, Option<Version>> {
            away()
        }

        fn watch(&self, _: &str) -> BoxStream<'static, ()> {
            Box::pin(futures::stream::empty())
        }
    }

    impl Expiring for Away {
        fn put<'a>(
            &'a self,
            _: &'a str,
            _: Bytes,
            _: Duration,
            _: Duration,
        ) -> StateFuture<'a, ()> {
            away()
        }

        fn get<'a>(&'a self, _: &'a str, _: Duration) -> StateFuture<'a, Option<Bytes>> {
            away()
        }

        fn append_at<'a>(
            &'a self,
            _: &'a str,
            _: u64,
            _: Bytes,
            _: Duration,
            _: Duration,
        ) -> StateFuture<'a, ()> {
            away()
        }

        fn replace<'a>(
            &'a self,
            _: &'a str,
            _: Option<Bytes>,
            _: Bytes,
            _: Duration,
            _: Duration,
        ) -> StateFuture<'a, ()> {
            away()
        }

        fn touch<'a>(&'a self, _: &'a str, _: Duration, _: Duration) -> StateFuture<'a, bool> {
            away()
        }

        fn remove<'a>(&'a self, _: &'a str, _: Duration) -> StateFuture<'a, bool> {
            away()
        }
    }

    #[tokio::test]
    async fn while_the_store_is_away_nobody_is_told_that_nothing_is_kept() {
        let clock = Arc::new(Fake::default());
        let contents = Contents::Values(Arc::new(Away));
        let leases = memory::Memory::new(Arc::clone(&clock) as _, Limits::default());
        let logs = Logs { values: Arc::new(Away), leases: Arc::new(leases) };
        let store = SharedArtifacts::new(contents, Arc::new(Away), logs, Config::default(), clock);
        let kept = artifact("ann", "k", "hello");
        let ann = kept.owner.clone();
        assert!(store.find_by_call(&ann, "k").await.is_err(), "the call may have run");
        assert!(store.get(&ann, &kept.handle).await.is_err());
        assert!(matches!(store.put(kept.clone()).await, Ok(StoredIn::MemoryFallback { .. })));
        let found = store.find_by_call(&ann, "k").await.unwrap();
        assert_eq!(found.unwrap().handle, kept.handle, "what this replica has it knows of");
    }

    #[tokio::test]
    async fn a_writer_that_lost_its_log_stores_nothing() {
        for kind in KINDS {
            let Replicas { clock, one, other, .. } = replicas(1 << 20, kind);
            let kept = artifact("ann", "k", "hello");
            let (ann, handle) = (kept.owner.clone(), kept.handle.clone());
            assert_eq!(one.put_with_log(kept).await, Ok(StoredIn::Stored));
            let first = one.open_log(&ann, &handle).await.unwrap().unwrap();
            first.log.add(b"first\n");
            assert_eq!(first.log.flush().await, Ok(()));
            let taken = other.open_log(&ann, &handle).await.err();
            assert_eq!(taken, Some(LogError::Taken), "at both replicas");
            // It stands still until its lease is over.
            clock.advance(Duration::from_secs(60));
            let second = other.open_log(&ann, &handle).await.unwrap().unwrap();
            assert_eq!(second.bytes, b"first\n");
            assert!(first.log.fence() < second.log.fence());
            second.log.add(b"second\n");
            assert_eq!(second.log.flush().await, Ok(()));
            first.log.add(b"late\n");
            assert_eq!(first.log.flush().await, Err(LogError::Taken));
            drop((first, second));
            clock.advance(Duration::from_secs(60));
            let third = one.open_log(&ann, &handle).await.unwrap().unwrap();
            assert_eq!(third.bytes, b"first\nsecond\n");
        }
    }

    #[tokio::test]
    async fn what_was_stored_without_an_answer_is_not_stored_twice() {
        let Replicas { store, one, .. } = replicas(1 << 20, KINDS[0]);
        let kept = artifact("ann", "k", "hello");
        assert_eq!(one.put_with_log(kept.clone()).await, Ok(StoredIn::Stored));
        let opened = one.open_log(&kept.owner, &kept.handle).await.unwrap().unwrap();
        opened.log.add(b"a\n");
        // The store did it, and its answer was lost.
        let key = log_key(&value_key(&kept.owner, &kept.handle));
        let life = Duration::from_secs(60);
        assert_eq!(store.append_at(&key, 0, "a\n".into(), life, TIMEOUT).await, Ok(()));
        opened.log.add(b"b\n");
        assert_eq!(opened.log.flush().await, Ok(()));
        assert_eq!(Expiring::get(&*store, &key, TIMEOUT).await, Ok(Some("a\nb\n".into())));
    }

    #[tokio::test]
    async fn a_log_that_is_missing_or_void_is_not_taken_for_one_that_is_empty() {
        let Replicas { clock, store, one, .. } = replicas(1 << 20, KINDS[0]);
        let kept = artifact("ann", "k", "hello");
        assert_eq!(one.put_with_log(kept.clone()).await, Ok(StoredIn::Stored));
        let opened = one.open_log(&kept.owner, &kept.handle).await.unwrap().unwrap();
        assert!(opened.bytes.is_empty());
        drop(opened);
        // A failover lost the log, and not the artifact.
        let key = log_key(&value_key(&kept.owner, &kept.handle));
        assert_eq!(Expiring::remove(&*store, &key, TIMEOUT).await, Ok(true));
        clock.advance(Duration::from_secs(60));
        let lost = one.open_log(&kept.owner, &kept.handle).await.err();
        assert_eq!(lost, Some(LogError::Void));
    }

    #[tokio::test]
    async fn a_log_counts_toward_its_owners_share() {
        let Replicas { one, .. } = replicas(50_000, KINDS[0]);
        let old = artifact("ann", "old", &"x".repeat(30_000));
        let kept = artifact("ann", "k", "hello");
        for artifact in [&old, &kept] {
            assert_eq!(one.put_with_log(artifact.clone()).await, Ok(StoredIn::Stored));
        }
        let opened = one.open_log(&kept.owner, &kept.handle).await.unwrap().unwrap();
        opened.log.add(&[b'a'; 30_000]);
        assert_eq!(opened.log.flush().await, Ok(()));
        assert!(one.get(&old.owner, &old.handle).await.unwrap().is_none(), "it gave way");
        opened.log.add(&[b'a'; 30_000]);
        assert_eq!(opened.log.flush().await, Err(LogError::TooLarge { limit: 50_000 }));
    }
}
