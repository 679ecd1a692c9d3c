//! The index of an owner's shared artifacts, a document that replicas change by
//! compare-and-swap.

use std::sync::Arc;

use artifacts::{Artifact, ArtifactMeta, Config, Owner};
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use tool::context::CONNECTION_PREFIX;

use super::contents::TIMEOUT;
use crate::state::{Change, Documents, StateError, change};

/// The index of one owner, as it is stored.
#[derive(Clone)]
pub(super) struct OwnerIndex {
    documents: Arc<dyn Documents>,
    name: String,
}

impl OwnerIndex {
    pub(super) fn new(documents: Arc<dyn Documents>, owner: &Owner) -> OwnerIndex {
        OwnerIndex { documents, name: index_name(owner) }
    }

    pub(super) async fn read(&self) -> Result<Index, StateError> {
        let found = self.documents.read(&self.name, TIMEOUT).await?;
        Ok(Index::parse(found.as_ref().map(|found| found.bytes.as_ref())))
    }

    pub(super) async fn change(&self, mut act: impl FnMut(&mut Index)) -> Result<(), StateError> {
        let decide = |before: Option<&[u8]>| -> Result<Change, StateError> {
            let mut index = Index::parse(before);
            act(&mut index);
            Ok(index.to_change())
        };
        change(&*self.documents, &self.name, TIMEOUT, decide).await.map(drop)
    }
}

/// The artifacts of one owner, oldest first.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Index {
    pub(super) entries: Vec<Entry>,
}

#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) handle: String,
    pub(super) made: u64,
    pub(super) upstream: String,
    pub(super) tool: String,
    pub(super) chars: usize,
    pub(super) parts: Vec<artifacts::envelope::PartRef>,
    pub(super) key: String,
    pub(super) bytes: usize,
    /// Whether the call that created the artifact still finds it.
    pub(super) attached: bool,
    /// When it expires, in milliseconds since 1970. The store itself expires the
    /// value; if clocks differ, it is only listed a little longer or shorter.
    pub(super) end: u64,
}

impl Entry {
    pub(super) fn new(artifact: &Artifact, end: u64) -> Entry {
        let ArtifactMeta { handle, made, upstream, tool, chars, parts } = artifact.meta();
        let (key, bytes, attached) = (artifact.key.clone(), artifact.bytes(), true);
        Entry { handle, made, upstream, tool, chars, parts, key, bytes, attached, end }
    }

    pub(super) fn meta(self) -> ArtifactMeta {
        let Entry { handle, made, upstream, tool, chars, parts, .. } = self;
        ArtifactMeta { handle, made, upstream, tool, chars, parts }
    }
}

impl Index {
    pub(super) fn parse(bytes: Option<&[u8]>) -> Index {
        // A damaged index starts over; the artifacts expire by themselves.
        bytes.and_then(|bytes| serde_json::from_slice(bytes).ok()).unwrap_or_default()
    }

    pub(super) fn to_change(&self) -> Change {
        match self.entries.is_empty() {
            true => Change::Remove,
            false => Change::Replace(tool::Json::encode(self).as_str().to_owned().into()),
        }
    }

    /// Adds an entry, and removes those that have expired or exceed the owner's limit.
    /// Returns the handles of artifacts whose bytes are to be removed.
    pub(super) fn add(&mut self, entry: Entry, config: &Config, now: u64) -> Vec<String> {
        self.entries.retain(|other| now < other.end);
        for other in self.entries.iter_mut().filter(|other| other.key == entry.key) {
            other.attached = false;
        }
        self.entries.push(entry);
        self.evict(config)
    }

    /// Counts the bytes of an artifact with its log, and lets it live until `end`.
    /// Returns the handles of artifacts whose bytes are to be removed; `None` if the
    /// artifact is gone itself.
    pub(super) fn grow(
        &mut self,
        handle: &str,
        bytes: usize,
        end: u64,
        config: &Config,
    ) -> Option<Vec<String>> {
        let at = self.entries.iter().position(|entry| entry.handle == handle)?;
        let entry = self.entries.remove(at);
        self.entries.push(Entry { bytes, end, ..entry });
        Some(self.evict(config))
    }

    /// Removes the oldest entries that exceed the owner's limit.
    fn evict(&mut self, config: &Config) -> Vec<String> {
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

/// Returns the key of an artifact that this owner [may open](Owner::opens). It
/// includes the owner, because owners may have equal handles, except for callers
/// that are known by a connection only: any of them may open it by its handle.
pub(super) fn value_key(owner: &Owner, handle: &str) -> String {
    match owner.as_str().starts_with(CONNECTION_PREFIX) {
        true => format!("artifact {handle}"),
        false => format!("artifact {} {handle}", digest_of(owner)),
    }
}

fn digest_of(owner: &Owner) -> String {
    tool::hex::encode(digest(&SHA256, owner.as_str().as_bytes()).as_ref())
}

/// Returns the name of an owner's index. A digest, because the owner's name may
/// contain any characters.
fn index_name(owner: &Owner) -> String {
    format!("artifacts/{}", digest_of(owner))
}
