//! Kept answers that every replica can view.
//!
//! An artifact is a value that expires by itself, or a blob ([`Contents`]). What an
//! owner has is noted in a document, for listing, for the owner's share and for finding the answer of a
//! call again; the note is changed by compare-and-swap, so replicas lose nothing.
//! An artifact that cannot be stored stays in the memory of this replica, and its
//! envelope says so.

mod contents;

use std::sync::Arc;

use artifacts::{
    Artifact, ArtifactMeta, Config, Lookup, Memory, Owner, Store, StoredIn, TooLarge, Unreadable,
};
use async_trait::async_trait;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use tool::clock::Clock;
use tool::context::CONNECTION_PREFIX;

use crate::artifact_format::{parse, write};
use crate::state::{Change, Documents, StateError, change};

use contents::WITHIN;
pub use contents::{Contents, Sweeper};

/// Artifacts in a store that replicas share.
pub struct SharedArtifacts {
    contents: Contents,
    documents: Arc<dyn Documents>,
    config: Config,
    clock: Arc<dyn Clock>,
    /// What could not be stored.
    unsent: Memory,
}

/// What an owner has, oldest first.
#[derive(Default, Serialize, Deserialize)]
struct Index {
    entries: Vec<Entry>,
}

#[derive(Clone, Serialize, Deserialize)]
struct Entry {
    handle: String,
    made: u64,
    upstream: String,
    tool: String,
    chars: usize,
    parts: Vec<artifacts::envelope::PartRef>,
    key: String,
    bytes: usize,
    /// Whether the call that made it may be answered with it.
    attached: bool,
    /// When it is over, in milliseconds since 1970. The store's own clock ends the
    /// value; replicas that differ by seconds only list it for that much longer.
    end: u64,
}

impl Entry {
    fn new(artifact: &Artifact, end: u64) -> Entry {
        let ArtifactMeta { handle, made, upstream, tool, chars, parts } = artifact.meta();
        let (key, bytes, attached) = (artifact.key.clone(), artifact.bytes(), true);
        Entry { handle, made, upstream, tool, chars, parts, key, bytes, attached, end }
    }

    fn meta(self) -> ArtifactMeta {
        let Entry { handle, made, upstream, tool, chars, parts, .. } = self;
        ArtifactMeta { handle, made, upstream, tool, chars, parts }
    }
}

impl Index {
    fn parse(bytes: Option<&[u8]>) -> Index {
        // One that cannot be read is written anew; the artifacts end by themselves.
        bytes.and_then(|bytes| serde_json::from_slice(bytes).ok()).unwrap_or_default()
    }

    fn to_change(&self) -> Change {
        match self.entries.is_empty() {
            true => Change::Remove,
            false => Change::Replace(tool::Json::encode(self).as_str().to_owned().into()),
        }
    }

    /// Adds one, and takes out what is over and what the owner has no room for.
    fn add(&mut self, entry: Entry, config: &Config, now: u64) -> Vec<String> {
        self.entries.retain(|other| now < other.end);
        for other in self.entries.iter_mut().filter(|other| other.key == entry.key) {
            other.attached = false;
        }
        self.entries.push(entry);
        let mut bytes: usize = self.entries.iter().map(|entry| entry.bytes).sum();
        let mut gone = Vec::new();
        while config.owner_bytes < bytes && 1 < self.entries.len() {
            let oldest = self.entries.remove(0);
            bytes -= oldest.bytes;
            gone.push(oldest.handle);
        }
        gone
    }
}

impl SharedArtifacts {
    pub fn new(
        contents: Contents,
        documents: Arc<dyn Documents>,
        config: Config,
        clock: Arc<dyn Clock>,
    ) -> SharedArtifacts {
        let unsent = Memory::new(config.clone(), Arc::clone(&clock));
        SharedArtifacts { contents, documents, config, clock, unsent }
    }

    async fn store(&self, artifact: &Artifact) -> Result<(), StateError> {
        let mut bytes = Vec::with_capacity(artifact.bytes() + 1024);
        write(artifact, &mut bytes).map_err(StateError::unavailable)?;
        let value = value_key(&artifact.owner, &artifact.handle);
        let now = self.clock.unix_millis();
        self.contents.put(&value, bytes.into(), self.config.ttl, now).await?;
        let life = u64::try_from(self.config.ttl.as_millis()).unwrap_or(u64::MAX);
        let entry = Entry::new(artifact, now.saturating_add(life));
        let mut gone = Vec::new();
        self.change(&artifact.owner, |index| {
            gone = index.add(entry.clone(), &self.config, now);
        })
        .await?;
        for handle in gone {
            self.contents.remove(&value_key(&artifact.owner, &handle)).await;
        }
        Ok(())
    }

    async fn change(
        &self,
        owner: &Owner,
        mut act: impl FnMut(&mut Index),
    ) -> Result<(), StateError> {
        let decide = |before: Option<&[u8]>| -> Result<Change, StateError> {
            let mut index = Index::parse(before);
            act(&mut index);
            Ok(index.to_change())
        };
        change(&*self.documents, &index_name(owner), WITHIN, decide).await.map(drop)
    }

    async fn index(&self, owner: &Owner) -> Index {
        self.read_index(owner).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot look up what is kept");
            Index::default()
        })
    }

    async fn read_index(&self, owner: &Owner) -> Result<Index, StateError> {
        let found = self.documents.read(&index_name(owner), WITHIN).await?;
        Ok(Index::parse(found.as_ref().map(|found| found.bytes.as_ref())))
    }

    async fn load(&self, owner: &Owner, handle: &str) -> Lookup {
        let found = self.contents.get(&value_key(owner, handle)).await;
        let Some(bytes) = found.map_err(unreadable)? else { return Ok(None) };
        // A long one takes a while to look through.
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

/// Where an artifact is that this owner [may open](Owner::opens): handles of two
/// owners may be the same, except for those that are a key by themselves.
fn value_key(owner: &Owner, handle: &str) -> String {
    match owner.as_str().starts_with(CONNECTION_PREFIX) {
        true => format!("artifact {handle}"),
        false => format!("artifact {} {handle}", digest_of(owner)),
    }
}

fn digest_of(owner: &Owner) -> String {
    tool::hex::encode(digest(&SHA256, owner.as_str().as_bytes()).as_ref())
}

/// Owners may be called anything.
fn index_name(owner: &Owner) -> String {
    format!("artifacts/{}", digest_of(owner))
}

#[async_trait]
impl Store for SharedArtifacts {
    /// What replicas share outlives each of them.
    fn survives_restart(&self) -> bool {
        true
    }

    async fn put(&self, artifact: Artifact) -> Result<StoredIn, TooLarge> {
        self.config.check_size(&artifact)?;
        match self.store(&artifact).await {
            Ok(()) => {
                self.unsent.supersede(&artifact.owner, &artifact.key);
                Ok(StoredIn::Stored)
            }
            Err(error) => {
                self.unsent.put(artifact).await?;
                Ok(StoredIn::MemoryFallback { reason: error.to_string() })
            }
        }
    }

    async fn get(&self, owner: &Owner, handle: &str) -> Lookup {
        if let Some(unsent) = self.unsent.get(owner, handle).await? {
            return Ok(Some(unsent));
        }
        let found = self.load(owner, handle).await?;
        Ok(found.filter(|artifact| owner.opens(&artifact.owner)))
    }

    async fn find_by_call(&self, owner: &Owner, key: &str) -> Lookup {
        if let Some(unsent) = self.unsent.find_by_call(owner, key).await? {
            return Ok(Some(unsent));
        }
        let index = self.read_index(owner).await.map_err(unreadable)?;
        let now = self.clock.unix_millis();
        let answers = |entry: &&Entry| entry.attached && entry.key == key && now < entry.end;
        let Some(latest) = index.entries.iter().rev().find(answers) else { return Ok(None) };
        let found = self.load(owner, &latest.handle).await?;
        Ok(found.filter(|artifact| artifact.owner == *owner))
    }

    async fn forget_call(&self, owner: &Owner, handle: &str) {
        self.unsent.forget_call(owner, handle).await;
        let forget = |index: &mut Index| {
            for entry in index.entries.iter_mut().filter(|entry| entry.handle == handle) {
                entry.attached = false;
            }
        };
        if let Err(error) = self.change(owner, forget).await {
            tracing::warn!(%error, "cannot note that a kept answer is not to be used again");
        }
    }

    async fn list(&self, owner: &Owner) -> Vec<ArtifactMeta> {
        let (index, now) = (self.index(owner).await, self.clock.unix_millis());
        let stored = index.entries.into_iter().filter(|entry| now < entry.end).map(Entry::meta);
        let mut all = self.unsent.list(owner).await;
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
            SharedArtifacts::new(contents, documents, config.clone(), Arc::clone(&clock) as _)
        };
        Replicas { one: open(), other: open(), clock, store }
    }

    const KINDS: [fn(&Arc<memory::Memory>) -> Contents; 2] = [
        |store| Contents::Values(Arc::clone(store) as _),
        |store| Contents::Blobs { blobs: Arc::clone(store) as _, places: Arc::clone(store) as _ },
    ];

    fn artifact(owner: &str, key: &str, text: &str) -> Artifact {
        let owner = Owner::read(owner);
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
            let (ann, bob) = (kept.owner.clone(), Owner::read("bob"));
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
        let busy = Leases::acquire(&*store, "sweep artifacts", WITHIN, WITHIN).await.unwrap();
        assert_eq!(sweeper().sweep().await, Err(StateError::Conflict));
        assert_eq!(Leases::release(&*store, busy, WITHIN).await, Ok(()));
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
        let store = SharedArtifacts::new(contents, Arc::new(Away), Config::default(), clock);
        let kept = artifact("ann", "k", "hello");
        let ann = kept.owner.clone();
        assert!(store.find_by_call(&ann, "k").await.is_err(), "the call may have run");
        assert!(store.get(&ann, &kept.handle).await.is_err());
        assert!(matches!(store.put(kept.clone()).await, Ok(StoredIn::MemoryFallback { .. })));
        let found = store.find_by_call(&ann, "k").await.unwrap();
        assert_eq!(found.unwrap().handle, kept.handle, "what this replica has it knows of");
    }
}
