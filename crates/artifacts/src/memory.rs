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
    contents: Mutex<Contents>,
}

#[derive(Default)]
struct Contents {
    /// In the order of their last use.
    entries: VecDeque<Entry>,
    bytes: usize,
}

struct Entry {
    artifact: Arc<Artifact>,
    stored_at: Duration,
    /// Whether the call that created the artifact still finds it.
    answers_call: bool,
}

impl Memory {
    pub fn new(config: Config, clock: Arc<dyn Clock>) -> Memory {
        Memory { config, clock, contents: Mutex::default() }
    }

    /// Makes sure that this call finds no artifact any more; handles still do.
    pub fn detach_call(&self, owner: &Owner, key: &str) {
        self.with(|contents| contents.detach_call(owner, key));
    }

    fn with<T>(&self, act: impl FnOnce(&mut Contents) -> T) -> T {
        let mut contents = self.contents.lock();
        let now = self.clock.elapsed();
        let ttl = self.config.ttl;
        contents.remove_where(|entry| ttl <= now.saturating_sub(entry.stored_at));
        act(&mut contents)
    }
}

impl Contents {
    fn remove_where(&mut self, gone: impl Fn(&Entry) -> bool) {
        let freed = &mut self.bytes;
        self.entries.retain(|entry| {
            let goes = gone(entry);
            if goes {
                *freed -= entry.artifact.bytes();
            }
            !goes
        });
    }

    fn n_owner_bytes(&self, owner: &Owner) -> usize {
        let mine = self.entries.iter().filter(|entry| entry.artifact.owner == *owner);
        mine.map(|entry| entry.artifact.bytes()).sum()
    }

    fn detach_call(&mut self, owner: &Owner, key: &str) {
        let same = |entry: &&mut Entry| entry.artifact.owner == *owner && entry.artifact.key == key;
        for entry in self.entries.iter_mut().filter(same) {
            entry.answers_call = false;
        }
    }

    /// Removes the least recently used artifact, of `owner` if one is given; returns
    /// whether there was one.
    fn evict(&mut self, owner: Option<&Owner>) -> bool {
        let matches = |entry: &Entry| owner.is_none_or(|owner| entry.artifact.owner == *owner);
        let Some(at) = self.entries.iter().position(matches) else { return false };
        let entry = self.entries.remove(at);
        self.bytes -= entry.map_or(0, |entry| entry.artifact.bytes());
        true
    }
}

/// Copies a long artifact, so that the message it is a slice of can be freed.
async fn in_own_memory(artifact: Artifact) -> Artifact {
    let copied = artifact.clone();
    let copy = move |_: &offload::StopFlag| Artifact {
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
            artifact = in_own_memory(artifact).await;
        }
        artifact.parts();
        let (bytes, stored_at) = (artifact.bytes(), self.clock.elapsed());
        self.with(|contents| {
            while self.config.owner_bytes < contents.n_owner_bytes(&artifact.owner) + bytes
                && contents.evict(Some(&artifact.owner))
            {}
            while self.config.total_bytes < contents.bytes + bytes && contents.evict(None) {}
            contents.detach_call(&artifact.owner, &artifact.key);
            contents.remove_where(|entry| {
                entry.artifact.handle == artifact.handle && entry.artifact.owner == artifact.owner
            });
            contents.bytes += bytes;
            contents.entries.push_back(Entry {
                artifact: Arc::new(artifact),
                stored_at,
                answers_call: true,
            });
        });
        Ok(StoredIn::Stored)
    }

    async fn get(&self, owner: &Owner, handle: &str) -> Lookup {
        Ok(self.with(|contents| {
            let mine = |entry: &Entry| {
                entry.artifact.handle == handle && owner.opens(&entry.artifact.owner)
            };
            let at = contents.entries.iter().position(mine)?;
            let entry = contents.entries.remove(at)?;
            let artifact = Arc::clone(&entry.artifact);
            contents.entries.push_back(entry);
            Some(artifact)
        }))
    }

    async fn find_by_call(&self, owner: &Owner, key: &str) -> Lookup {
        Ok(self.with(|contents| {
            let mine = |entry: &&Entry| {
                entry.answers_call && entry.artifact.key == key && entry.artifact.owner == *owner
            };
            contents.entries.iter().rev().find(mine).map(|entry| Arc::clone(&entry.artifact))
        }))
    }

    async fn find_begun(&self, owner: &Owner, key: &str) -> Lookup {
        Ok(self.with(|contents| {
            let same = |entry: &&Entry| {
                entry.artifact.key == key && owner.may_have_been(&entry.artifact.owner)
            };
            let latest =
                contents.entries.iter().filter(same).max_by_key(|entry| entry.artifact.made);
            latest.filter(|entry| entry.answers_call).map(|entry| Arc::clone(&entry.artifact))
        }))
    }

    async fn forget_call(&self, owner: &Owner, handle: &str) {
        self.with(|contents| {
            let mine = |entry: &&mut Entry| {
                entry.artifact.handle == handle && entry.artifact.owner == *owner
            };
            if let Some(entry) = contents.entries.iter_mut().find(mine) {
                entry.answers_call = false;
            }
        });
    }

    async fn list(&self, owner: &Owner) -> Vec<ArtifactMeta> {
        let mut mine: Vec<ArtifactMeta> = self.with(|contents| {
            let mine = contents.entries.iter().filter(|entry| entry.artifact.owner == *owner);
            mine.map(|entry| entry.artifact.meta()).collect()
        });
        mine.sort_by_key(|meta| std::cmp::Reverse(meta.made));
        mine
    }

    async fn usage(&self) -> Option<Usage> {
        Some(
            self.with(|contents| Usage {
                artifacts: contents.entries.len(),
                bytes: contents.bytes,
            }),
        )
    }
}

#[cfg(test)]
mod tests;
