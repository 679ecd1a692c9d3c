//! What a directory of artifacts has, without its content.

use std::collections::HashMap;
use std::time::Duration;

use artifacts::{Artifact, ArtifactMeta, Config, LogError, Owner};

/// What is in the directory.
#[derive(Default)]
pub(super) struct Index {
    pub(super) entries: HashMap<String, Entry>,
    uses: u64,
}

/// How many bytes of a log are counted ahead.
const LOG_STEP: usize = 16 << 10;

/// Whether a log has more than was counted before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counted {
    Before,
    More,
}

/// An artifact without its content.
#[derive(Clone)]
pub(super) struct Entry {
    pub(super) owner: Owner,
    pub(super) meta: ArtifactMeta,
    pub(super) key: String,
    pub(super) bytes: usize,
    /// The size of its log.
    pub(super) log_bytes: usize,
    /// Whether the call that created the artifact still finds it.
    pub(super) answers_call: bool,
    /// Whether it is known that the call is not to find it any more.
    pub(super) is_forgotten: bool,
    /// The number of its last use; the entry with the smallest is evicted first.
    pub(super) used: u64,
    /// When it expires, by the monotonic clock.
    pub(super) end: Duration,
}

impl Entry {
    pub(super) fn new(artifact: &Artifact, answers_call: bool, end: Duration) -> Entry {
        Entry {
            owner: artifact.owner.clone(),
            meta: artifact.meta(),
            key: artifact.key.clone(),
            bytes: artifact.bytes(),
            log_bytes: 0,
            answers_call,
            is_forgotten: false,
            used: 0,
            end,
        }
    }

    /// Makes sure that the call that created it does not find it any more.
    pub(super) fn forget_call(&mut self) {
        (self.answers_call, self.is_forgotten) = (false, true);
    }

    /// Returns the size of the artifact with its log.
    pub(super) fn size(&self) -> usize {
        self.bytes.saturating_add(self.log_bytes)
    }
}

impl Index {
    pub(super) fn add(&mut self, handle: String, mut entry: Entry) {
        self.uses += 1;
        entry.used = self.uses;
        self.entries.insert(handle, entry);
    }

    /// Removes what has expired, and then what was unused for longest until the limits
    /// of `owner` and of all owners hold. Returns the handles of what was removed.
    pub(super) fn remove_excess(
        &mut self,
        config: &Config,
        now: Duration,
        owner: Option<&Owner>,
    ) -> Vec<String> {
        let old = |entry: &Entry| entry.end <= now;
        let mut gone: Vec<String> = self
            .entries
            .iter()
            .filter(|(_, entry)| old(entry))
            .map(|(handle, _)| handle.clone())
            .collect();
        for handle in &gone {
            self.entries.remove(handle);
        }
        if let Some(owner) = owner {
            self.evict(config.owner_bytes, |entry| entry.owner == *owner, &mut gone);
        }
        self.evict(config.total_bytes, |_| true, &mut gone);
        gone
    }

    fn evict(&mut self, limit: usize, mine: impl Fn(&Entry) -> bool, gone: &mut Vec<String>) {
        let mut bytes: usize =
            self.entries.values().filter(|entry| mine(entry)).map(Entry::size).sum();
        while limit < bytes {
            let oldest = self
                .entries
                .iter()
                .filter(|(_, entry)| mine(entry))
                .min_by_key(|(_, entry)| entry.used)
                .map(|(handle, entry)| (handle.clone(), entry.size()));
            let Some((handle, size)) = oldest else { return };
            self.entries.remove(&handle);
            bytes -= size;
            gone.push(handle);
        }
    }

    /// Counts the log of an artifact, which counts as used and expires at `end`. It is
    /// counted in steps, so that a line more costs nothing.
    pub(super) fn count_log(
        &mut self,
        handle: &str,
        log_bytes: usize,
        end: Duration,
        config: &Config,
    ) -> Result<Counted, LogError> {
        self.uses += 1;
        let gone = || LogError::unavailable("it is not stored any more");
        let entry = self.entries.get_mut(handle).ok_or_else(gone)?;
        (entry.end, entry.used) = (end, self.uses);
        if log_bytes <= entry.log_bytes {
            return Ok(Counted::Before);
        }
        let limit = config.owner_bytes.min(config.total_bytes);
        let room = limit.saturating_sub(entry.bytes);
        if room < log_bytes {
            return Err(LogError::TooLarge { limit });
        }
        entry.log_bytes = log_bytes.saturating_add(LOG_STEP).min(room);
        Ok(Counted::More)
    }

    /// Makes sure that this call finds no artifact any more; handles still do.
    pub(super) fn detach_call(&mut self, owner: &Owner, key: &str) {
        let same = |entry: &&mut Entry| entry.owner == *owner && entry.key == key;
        for entry in self.entries.values_mut().filter(same) {
            entry.forget_call();
        }
    }

    pub(super) fn touch(&mut self, owner: &Owner, handle: &str) -> bool {
        self.uses += 1;
        let used = self.uses;
        match self.entries.get_mut(handle).filter(|entry| owner.opens(&entry.owner)) {
            Some(entry) => {
                entry.used = used;
                true
            }
            None => false,
        }
    }
}
