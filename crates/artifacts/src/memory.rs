//! A store of artifacts in the memory of this process.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tool::clock::Clock;

use crate::artifact::{Artifact, ArtifactMeta, Owner};
use crate::store::{Config, Lookup, Store, StoredIn, TooLarge, Usage};

/// Artifacts in memory.
pub struct Memory {
    config: Config,
    clock: Arc<dyn Clock>,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// In the order of their last use.
    entries: VecDeque<Entry>,
    bytes: usize,
}

struct Entry {
    artifact: Arc<Artifact>,
    since: Duration,
    attached: bool,
}

impl Memory {
    pub fn new(config: Config, clock: Arc<dyn Clock>) -> Memory {
        Memory { config, clock, kept: Mutex::default() }
    }

    /// Has no artifact answer this call any more.
    pub fn supersede(&self, owner: &Owner, key: &str) {
        self.with(|kept| kept.supersede(owner, key));
    }

    fn with<T>(&self, act: impl FnOnce(&mut Kept) -> T) -> T {
        let mut kept = self.kept.lock();
        let now = self.clock.elapsed();
        let ttl = self.config.ttl;
        kept.drop_where(|entry| ttl <= now.saturating_sub(entry.since));
        act(&mut kept)
    }
}

impl Kept {
    fn drop_where(&mut self, gone: impl Fn(&Entry) -> bool) {
        let freed = &mut self.bytes;
        self.entries.retain(|entry| {
            let goes = gone(entry);
            if goes {
                *freed -= entry.artifact.bytes();
            }
            !goes
        });
    }

    fn owned(&self, owner: &Owner) -> usize {
        let mine = self.entries.iter().filter(|entry| entry.artifact.owner == *owner);
        mine.map(|entry| entry.artifact.bytes()).sum()
    }

    /// No artifact answers this call any more.
    fn supersede(&mut self, owner: &Owner, key: &str) {
        let same = |entry: &&mut Entry| entry.artifact.owner == *owner && entry.artifact.key == key;
        for entry in self.entries.iter_mut().filter(same) {
            entry.attached = false;
        }
    }

    /// Takes out the least recently used artifact, of `owner` if one is given.
    fn evict(&mut self, owner: Option<&Owner>) -> bool {
        let matches = |entry: &Entry| owner.is_none_or(|owner| entry.artifact.owner == *owner);
        let Some(at) = self.entries.iter().position(matches) else { return false };
        let entry = self.entries.remove(at);
        self.bytes -= entry.map_or(0, |entry| entry.artifact.bytes());
        true
    }
}

/// A long artifact in memory of its own: the message that it came in counts for as
/// long as anything shares its memory.
async fn detached(artifact: Artifact) -> Artifact {
    let copied = artifact.clone();
    let copy = move |_: &offload::Stop| Artifact {
        result: copied.result.copied_out(),
        raw: copied.raw.as_ref().map(tool::Json::copied_out),
        ..copied
    };
    offload::run(copy).await.unwrap_or(artifact)
}

#[async_trait]
impl Store for Memory {
    async fn put(&self, mut artifact: Artifact) -> Result<StoredIn, TooLarge> {
        self.config.check_size(&artifact)?;
        if offload::is_long(artifact.bytes()) {
            artifact = detached(artifact).await;
        }
        artifact.parts();
        let (bytes, since) = (artifact.bytes(), self.clock.elapsed());
        self.with(|kept| {
            while self.config.owner_bytes < kept.owned(&artifact.owner) + bytes
                && kept.evict(Some(&artifact.owner))
            {}
            while self.config.total_bytes < kept.bytes + bytes && kept.evict(None) {}
            kept.supersede(&artifact.owner, &artifact.key);
            kept.drop_where(|entry| {
                entry.artifact.handle == artifact.handle && entry.artifact.owner == artifact.owner
            });
            kept.bytes += bytes;
            kept.entries.push_back(Entry { artifact: Arc::new(artifact), since, attached: true });
        });
        Ok(StoredIn::Stored)
    }

    async fn get(&self, owner: &Owner, handle: &str) -> Lookup {
        Ok(self.with(|kept| {
            let mine = |entry: &Entry| {
                entry.artifact.handle == handle && owner.opens(&entry.artifact.owner)
            };
            let at = kept.entries.iter().position(mine)?;
            let entry = kept.entries.remove(at)?;
            let artifact = Arc::clone(&entry.artifact);
            kept.entries.push_back(entry);
            Some(artifact)
        }))
    }

    async fn find_by_call(&self, owner: &Owner, key: &str) -> Lookup {
        Ok(self.with(|kept| {
            let mine = |entry: &&Entry| {
                entry.attached && entry.artifact.key == key && entry.artifact.owner == *owner
            };
            kept.entries.iter().rev().find(mine).map(|entry| Arc::clone(&entry.artifact))
        }))
    }

    async fn forget_call(&self, owner: &Owner, handle: &str) {
        self.with(|kept| {
            let mine = |entry: &&mut Entry| {
                entry.artifact.handle == handle && entry.artifact.owner == *owner
            };
            if let Some(entry) = kept.entries.iter_mut().find(mine) {
                entry.attached = false;
            }
        });
    }

    async fn list(&self, owner: &Owner) -> Vec<ArtifactMeta> {
        let mut mine: Vec<ArtifactMeta> = self.with(|kept| {
            let mine = kept.entries.iter().filter(|entry| entry.artifact.owner == *owner);
            mine.map(|entry| entry.artifact.meta()).collect()
        });
        mine.sort_by_key(|meta| std::cmp::Reverse(meta.made));
        mine
    }

    async fn usage(&self) -> Option<Usage> {
        Some(self.with(|kept| Usage { artifacts: kept.entries.len(), bytes: kept.bytes }))
    }
}

#[cfg(test)]
mod tests;
