//! A store of artifacts in a directory, so that they outlive the process.
//!
//! Each artifact is one file that is written atomically. An index in memory knows
//! what there is; a file is read only when its artifact is requested, and its name
//! never comes from a caller.

mod index;
mod log;
mod paths;

use std::io::Error;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use artifacts::{
    Artifact, ArtifactMeta, Config, LogError, Lookup, Memory, OpenLog, Owner, Store, StoredIn,
    TooLarge, Unreadable, Usage,
};
use async_trait::async_trait;
use tool::clock::Clock;

use crate::artifact_format::{parse, write};
use crate::file::{self, Safety};
use index::{Entry, Index};
use paths::{ARTIFACT, LOG, file_of, log_of, measure_log, remove_files};

/// Artifacts in a directory.
pub struct Disk {
    directory: PathBuf,
    config: Config,
    clock: Arc<dyn Clock>,
    index: Arc<Mutex<Index>>,
    /// Artifacts that could not be written.
    unwritten: Memory,
}

impl Disk {
    /// Opens a directory, creating it if it is missing. Files that are damaged or
    /// expired are removed.
    pub async fn open(
        directory: &Path,
        config: Config,
        clock: Arc<dyn Clock>,
    ) -> std::io::Result<Disk> {
        // Results may contain anything, so nobody else may read them.
        file::create_private_dir(directory)?;
        let directory = directory.to_owned();
        let unwritten = Memory::new(config.clone(), Arc::clone(&clock));
        let disk = Disk { directory, config, clock, index: Arc::default(), unwritten };
        disk.load_index().await?;
        Ok(disk)
    }

    async fn load_index(&self) -> std::io::Result<()> {
        let mut files = tokio::fs::read_dir(&self.directory).await?;
        let mut found: Vec<(String, Entry)> = Vec::new();
        while let Some(file) = files.next_entry().await? {
            let path = file.path();
            if path.extension().is_some_and(|own| own == LOG) {
                // A log goes with its artifact.
                if !tokio::fs::try_exists(path.with_extension(ARTIFACT)).await.unwrap_or(true) {
                    let _ = tokio::fs::remove_file(&path).await;
                }
                continue;
            }
            let kinds = [ARTIFACT, "part", file::TEMP_EXTENSION];
            let ours = kinds.iter().any(|kind| path.extension().is_some_and(|own| own == *kind));
            match read(&path).await {
                Ok(Some(artifact)) if path == self.path(&artifact.handle) => {
                    // Whether its call may still find it is not stored; in doubt the
                    // call runs again.
                    let (log_bytes, written) = measure_log(&path);
                    let end = self.end(artifact.made.max(written));
                    let entry = Entry { log_bytes, ..Entry::new(&artifact, false, end) };
                    found.push((entry.meta.handle.clone(), entry));
                }
                // Another process that opens the same directory may be faster.
                Ok(_) if ours => {
                    let _ = tokio::fs::remove_file(&path).await;
                }
                Ok(_) => {}
                // A directory, or a file that may be readable next time.
                Err(error) => {
                    tracing::debug!(path = %path.display(), %error, "cannot read what is kept");
                }
            }
        }
        found.sort_by_key(|(_, entry)| entry.meta.made);
        let gone = self.with(|index| {
            for (handle, entry) in found {
                index.add(handle, entry);
            }
            index.remove_excess(&self.config, self.clock.elapsed(), None)
        });
        self.remove(gone).await;
        Ok(())
    }

    fn path(&self, handle: &str) -> PathBuf {
        file_of(&self.directory, handle)
    }

    fn with<T>(&self, act: impl FnOnce(&mut Index) -> T) -> T {
        act(&mut self.index.lock().expect("nothing panics while it holds this"))
    }

    async fn remove(&self, handles: Vec<String>) {
        let files: Vec<PathBuf> = handles.iter().map(|handle| self.path(handle)).collect();
        if !files.is_empty() {
            let remove = move || files.iter().for_each(|file| remove_files(file));
            let _ = tokio::task::spawn_blocking(remove).await;
        }
    }

    async fn load(&self, handle: &str) -> Lookup {
        let unreadable = |error: Error| Unreadable { reason: error.to_string() };
        Ok(read(&self.path(handle)).await.map_err(unreadable)?.map(Arc::new))
    }

    async fn write(&self, artifact: &Artifact) -> std::io::Result<()> {
        let (artifact, path) = (artifact.clone(), self.path(&artifact.handle));
        let write =
            move || file::replace_with(&path, Safety::Unsynced, |file| write(&artifact, file));
        tokio::task::spawn_blocking(write).await.unwrap_or_else(|error| Err(Error::other(error)))
    }

    /// Returns when an artifact of an earlier process expires. Only here the wall
    /// clock is used, and once: it may be set at any time, and artifacts must not
    /// expire early or late because of that.
    fn end(&self, made: u64) -> Duration {
        let age = Duration::from_millis(self.clock.unix_millis().saturating_sub(made));
        self.clock.elapsed().saturating_add(self.config.ttl.saturating_sub(age))
    }

    fn expire(&self) -> Vec<String> {
        self.with(|index| index.remove_excess(&self.config, self.clock.elapsed(), None))
    }
}

#[async_trait]
impl Store for Disk {
    async fn put(&self, artifact: Artifact) -> Result<StoredIn, TooLarge> {
        self.config.check_size(&artifact)?;
        if let Err(error) = self.write(&artifact).await {
            self.with(|index| index.detach_call(&artifact.owner, &artifact.key));
            self.unwritten.put(artifact).await?;
            return Ok(StoredIn::MemoryFallback { reason: error.to_string() });
        }
        self.unwritten.detach_call(&artifact.owner, &artifact.key);
        let end = self.clock.elapsed().saturating_add(self.config.ttl);
        let entry = Entry::new(&artifact, true, end);
        let gone = self.with(|index| {
            index.detach_call(&artifact.owner, &artifact.key);
            index.add(artifact.handle.clone(), entry);
            index.remove_excess(&self.config, self.clock.elapsed(), Some(&artifact.owner))
        });
        self.remove(gone).await;
        Ok(StoredIn::Stored)
    }

    async fn get(&self, owner: &Owner, handle: &str) -> Lookup {
        self.remove(self.expire()).await;
        match self.with(|index| index.touch(owner, handle)) {
            true => self.load(handle).await,
            false => self.unwritten.get(owner, handle).await,
        }
    }

    async fn find_by_call(&self, owner: &Owner, key: &str) -> Lookup {
        self.remove(self.expire()).await;
        let latest = self.with(|index| {
            let mine =
                |entry: &Entry| entry.answers_call && entry.key == key && entry.owner == *owner;
            let found = index.entries.iter().filter(|(_, entry)| mine(entry));
            found.max_by_key(|(_, entry)| entry.used).map(|(handle, _)| handle.clone())
        });
        match latest {
            Some(latest) => self.load(&latest).await,
            None => self.unwritten.find_by_call(owner, key).await,
        }
    }

    async fn find_begun(&self, owner: &Owner, key: &str) -> Lookup {
        self.remove(self.expire()).await;
        let latest = self.with(|index| {
            let same = |entry: &Entry| entry.key == key && owner.may_have_been(&entry.owner);
            let found = index.entries.iter().filter(|(_, entry)| same(entry));
            let latest = found.max_by_key(|(_, entry)| (entry.meta.made, entry.used));
            latest.filter(|(_, entry)| !entry.is_forgotten).map(|(handle, _)| handle.clone())
        });
        match latest {
            Some(latest) => self.load(&latest).await,
            None => self.unwritten.find_begun(owner, key).await,
        }
    }

    async fn forget_call(&self, owner: &Owner, handle: &str) {
        self.with(|index| {
            if let Some(entry) = index.entries.get_mut(handle).filter(|e| e.owner == *owner) {
                entry.forget_call();
            }
        });
        self.unwritten.forget_call(owner, handle).await;
    }

    async fn open_log(&self, owner: &Owner, handle: &str) -> Result<Option<OpenLog>, LogError> {
        let found = self.with(|index| {
            let found = index.entries.get(handle).filter(|entry| owner.opens(&entry.owner));
            found.map(|entry| entry.owner.clone())
        });
        let Some(owner) = found else { return Ok(None) };
        let shared = log::Shared {
            index: Arc::clone(&self.index),
            config: self.config.clone(),
            clock: Arc::clone(&self.clock),
            directory: self.directory.clone(),
        };
        let path = log_of(&self.path(handle));
        log::open(shared, owner, handle.to_owned(), path).await.map(Some)
    }

    fn survives_restart(&self) -> bool {
        true
    }

    async fn list(&self, owner: &Owner) -> Vec<ArtifactMeta> {
        self.remove(self.expire()).await;
        let written: Vec<ArtifactMeta> = self.with(|index| {
            let mine = index.entries.values().filter(|entry| entry.owner == *owner);
            mine.map(|entry| entry.meta.clone()).collect()
        });
        let mut headers = self.unwritten.list(owner).await;
        for meta in written {
            // Somebody may have deleted files while the process ran.
            if tokio::fs::try_exists(self.path(&meta.handle)).await.unwrap_or(false) {
                headers.push(meta);
            }
        }
        headers.sort_by(|a, b| (b.made, &b.handle).cmp(&(a.made, &a.handle)));
        headers
    }

    async fn usage(&self) -> Option<Usage> {
        let unwritten = self.unwritten.usage().await.unwrap_or_default();
        Some(self.with(|index| Usage {
            artifacts: index.entries.len() + unwritten.artifacts,
            bytes: index.entries.values().map(Entry::size).sum::<usize>() + unwritten.bytes,
        }))
    }
}

/// Reads the artifact in a file; `None` if there is none. Fails if the file cannot
/// be read, such as when too many are open.
async fn read(path: &Path) -> std::io::Result<Option<Artifact>> {
    let path = path.to_owned();
    // Reading and parsing a long one takes a while.
    let read = move || match std::fs::read(path) {
        Ok(bytes) => Ok(parse(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    };
    tokio::task::spawn_blocking(read).await.unwrap_or_else(|error| Err(Error::other(error)))
}

#[cfg(test)]
mod tests {
    use artifacts::PartIndex;
    use serde_json::json;
    use std::sync::atomic::{AtomicU64, Ordering};
    use tool::clock::Fake;

    use super::*;

    fn artifact(handle: &str, owner: &str, text: &str, clock: &Fake) -> Artifact {
        Artifact {
            handle: handle.to_owned(),
            owner: Owner::from_stored(owner),
            made: clock.unix_millis(),
            upstream: "up".to_owned(),
            tool: "t".to_owned(),
            id: "up:t#12345678".to_owned(),
            key: "k".to_owned(),
            result: json!({"content": [{"type": "text", "text": text}]}).into(),
            raw: Some(json!({"secret": text}).into()),
            chars: text.len(),
            parts: PartIndex::default(),
        }
    }

    async fn disk(directory: &Path, clock: &Arc<Fake>, bytes: usize) -> Disk {
        let config =
            Config { ttl: Duration::from_secs(60), owner_bytes: bytes, total_bytes: 10 * bytes };
        Disk::open(directory, config, Arc::clone(clock) as _).await.unwrap()
    }

    #[tokio::test]
    async fn artifacts_survive_a_restart_and_only_their_owner_reads_them() {
        let (directory, clock) = (tempfile::tempdir().unwrap(), Arc::new(Fake::default()));
        let first = disk(directory.path(), &clock, 10_000).await;
        let kept = artifact("h1", "ann", "hello", &clock);
        first.put(kept.clone()).await.unwrap();
        drop(first);
        for left in ["h9.part", ".h7.artifact.1.new", "h8.artifact"] {
            std::fs::write(directory.path().join(left), "damaged").unwrap();
        }
        let second = disk(directory.path(), &clock, 10_000).await;
        assert_eq!(*second.get(&kept.owner, "h1").await.unwrap().unwrap(), kept);
        assert_eq!(second.get(&Owner::from_stored("bob"), "h1").await, Ok(None));
        assert_eq!(second.get(&kept.owner, "../h1").await, Ok(None));
        assert_eq!(second.list(&kept.owner).await.len(), 1);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[tokio::test]
    async fn what_there_is_can_be_listed_without_reading_it() {
        let (directory, clock) = (tempfile::tempdir().unwrap(), Arc::new(Fake::default()));
        let first = disk(directory.path(), &clock, 10_000).await;
        let kept = artifact("h1", "ann", "hello", &clock);
        first.put(kept.clone()).await.unwrap();
        let file = directory.path().join("h1.artifact");
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, "not to be read").unwrap();
        let listed = first.list(&kept.owner).await;
        assert_eq!(listed, [kept.meta()]);
        assert_eq!((listed[0].parts.len(), listed[0].parts[0].size_bytes), (1, 5));
        // One that was written before parts were.
        let mut written: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(written.as_object_mut().unwrap().remove("parts").is_some());
        std::fs::write(&file, written.to_string()).unwrap();
        let second = disk(directory.path(), &clock, 10_000).await;
        assert_eq!(second.list(&kept.owner).await, listed);
    }

    #[tokio::test]
    async fn what_is_too_old_goes_from_the_disk_too() {
        let (directory, clock) = (tempfile::tempdir().unwrap(), Arc::new(Fake::default()));
        let disk = disk(directory.path(), &clock, 10_000).await;
        disk.put(artifact("h1", "ann", "hello", &clock)).await.unwrap();
        clock.advance(Duration::from_secs(60));
        assert_eq!(disk.get(&Owner::from_stored("ann"), "h1").await.unwrap(), None);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    /// A machine whose clock is set while it runs.
    #[derive(Default)]
    struct Set {
        fake: Fake,
        ahead: AtomicU64,
    }

    impl Clock for Set {
        fn elapsed(&self) -> Duration {
            self.fake.elapsed()
        }

        fn unix_millis(&self) -> u64 {
            self.fake.unix_millis() - 86_400_000 + self.ahead.load(Ordering::SeqCst)
        }
    }

    #[tokio::test]
    async fn a_clock_that_is_set_takes_nothing_away_and_keeps_nothing_longer() {
        let (directory, clock) = (tempfile::tempdir().unwrap(), Arc::new(Set::default()));
        let life = Duration::from_secs(60);
        let config = Config { ttl: life, owner_bytes: 10_000, total_bytes: 10_000 };
        let disk = Disk::open(directory.path(), config, Arc::clone(&clock) as _).await.unwrap();
        let ann = Owner::from_stored("ann");
        let kept = |handle: &str| Artifact {
            made: clock.unix_millis(),
            ..artifact(handle, "ann", "hello", &clock.fake)
        };
        disk.put(kept("h1")).await.unwrap();
        clock.ahead.store(172_800_000, Ordering::SeqCst);
        assert!(disk.get(&ann, "h1").await.unwrap().is_some(), "two days ahead");
        disk.put(kept("h2")).await.unwrap();
        clock.ahead.store(0, Ordering::SeqCst);
        clock.fake.advance(life);
        for handle in ["h1", "h2"] {
            assert_eq!(disk.get(&ann, handle).await.unwrap(), None, "{handle}: its life is over");
        }
    }

    #[tokio::test]
    async fn an_owner_over_their_quota_loses_what_they_used_least_recently() {
        let (directory, clock) = (tempfile::tempdir().unwrap(), Arc::new(Fake::default()));
        let disk = disk(directory.path(), &clock, 140).await;
        let ann = Owner::from_stored("ann");
        disk.put(artifact("h1", "ann", "one", &clock)).await.unwrap();
        disk.put(artifact("h2", "ann", "two", &clock)).await.unwrap();
        disk.put(artifact("h3", "bob", "other", &clock)).await.unwrap();
        assert!(disk.get(&ann, "h1").await.unwrap().is_some());
        disk.put(artifact("h4", "ann", "three", &clock)).await.unwrap();
        assert_eq!(disk.get(&ann, "h2").await.unwrap(), None);
        assert!(
            disk.get(&ann, "h1").await.unwrap().is_some()
                && disk.get(&ann, "h4").await.unwrap().is_some()
        );
        assert!(disk.get(&Owner::from_stored("bob"), "h3").await.unwrap().is_some());
    }

    #[tokio::test]
    async fn the_latest_answer_of_a_call_is_found_until_it_is_detached() {
        let (directory, clock) = (tempfile::tempdir().unwrap(), Arc::new(Fake::default()));
        let disk = disk(directory.path(), &clock, 10_000).await;
        let ann = Owner::from_stored("ann");
        disk.put(artifact("h1", "ann", "one", &clock)).await.unwrap();
        disk.put(artifact("h2", "ann", "two", &clock)).await.unwrap();
        assert_eq!(disk.find_by_call(&ann, "k").await.unwrap().unwrap().handle, "h2");
        disk.get(&ann, "h1").await.unwrap();
        assert_eq!(
            disk.find_by_call(&ann, "k").await.unwrap().unwrap().handle,
            "h2",
            "h1 was read since"
        );
        disk.forget_call(&ann, "h2").await;
        assert_eq!(disk.find_by_call(&ann, "k").await.unwrap(), None);
    }

    #[tokio::test]
    async fn what_cannot_be_written_is_kept_in_memory_and_said_to_be() {
        let (directory, clock) = (tempfile::tempdir().unwrap(), Arc::new(Fake::default()));
        let place = directory.path().join("kept");
        let disk = disk(&place, &clock, 10_000).await;
        let ann = Owner::from_stored("ann");
        disk.put(artifact("h1", "ann", "one", &clock)).await.unwrap();
        std::fs::remove_dir_all(&place).unwrap();
        std::fs::write(&place, "in the way").unwrap();
        let kept = disk.put(artifact("h2", "ann", "two", &clock)).await.unwrap();
        assert!(matches!(kept, StoredIn::MemoryFallback { .. }), "{kept:?}");
        assert_eq!(disk.get(&ann, "h2").await.unwrap().unwrap().handle, "h2");
        assert_eq!(disk.find_by_call(&ann, "k").await.unwrap().unwrap().handle, "h2");
        assert_eq!(disk.get(&Owner::from_stored("bob"), "h2").await.unwrap(), None);
        assert_eq!(disk.list(&ann).await.len(), 1);
        disk.forget_call(&ann, "h2").await;
        assert_eq!(disk.find_by_call(&ann, "k").await.unwrap(), None);
        std::fs::remove_file(&place).unwrap();
        let kept = disk.put(artifact("h3", "ann", "three", &clock)).await.unwrap();
        assert_eq!(kept, StoredIn::Stored, "a directory that was taken away is made again");
        assert_eq!(disk.find_by_call(&ann, "k").await.unwrap().unwrap().handle, "h3");
    }

    #[tokio::test]
    async fn what_is_longer_than_a_quota_is_not_kept_and_takes_nothing_with_it() {
        let (directory, clock) = (tempfile::tempdir().unwrap(), Arc::new(Fake::default()));
        let disk = disk(directory.path(), &clock, 110).await;
        disk.put(artifact("h1", "ann", "one", &clock)).await.unwrap();
        let refused = disk.put(artifact("h2", "ann", &"x".repeat(200), &clock)).await.unwrap_err();
        assert_eq!(refused.limit, 110);
        assert!(disk.get(&Owner::from_stored("ann"), "h1").await.unwrap().is_some());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn nobody_else_on_the_machine_reads_a_file() {
        use std::os::unix::fs::PermissionsExt;
        let (directory, clock) = (tempfile::tempdir().unwrap(), Arc::new(Fake::default()));
        let disk = disk(&directory.path().join("kept"), &clock, 10_000).await;
        disk.put(artifact("h1", "ann", "one", &clock)).await.unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&disk.path("h1")), 0o600);
        assert_eq!(mode(&disk.directory), 0o700);
    }

    async fn open(disk: &Disk, handle: &str) -> Result<OpenLog, LogError> {
        disk.open_log(&Owner::from_stored("ann"), handle).await.map(Option::unwrap)
    }

    #[tokio::test]
    async fn a_log_has_one_writer_and_survives_it_but_for_a_line_that_was_cut() {
        let (directory, clock) = (tempfile::tempdir().unwrap(), Arc::new(Fake::default()));
        let first = disk(directory.path(), &clock, 100_000).await;
        first.put(artifact("h1", "ann", "hello", &clock)).await.unwrap();
        let second = disk(directory.path(), &clock, 100_000).await;
        let stranger = first.open_log(&Owner::from_stored("bob"), "h1").await.unwrap();
        assert!(stranger.is_none() && open(&first, "h1").await.unwrap().bytes.is_empty());
        let one = open(&first, "h1").await.unwrap();
        for disk in [&first, &second] {
            assert_eq!(open(disk, "h1").await.err(), Some(LogError::Taken));
        }
        one.log.add(b"a\n");
        one.log.flush().await.unwrap();
        one.log.add(b"b\nc");
        one.log.flush().await.unwrap();
        drop(one);
        let other = open(&second, "h1").await.unwrap();
        assert_eq!(other.bytes, b"a\nb\n");
        other.log.add(b"d\n");
        other.log.flush().await.unwrap();
        drop(other);
        let third = disk(directory.path(), &clock, 100_000).await;
        assert_eq!(open(&third, "h1").await.unwrap().bytes, b"a\nb\nd\n");
        clock.advance(Duration::from_secs(60));
        assert_eq!(third.get(&Owner::from_stored("ann"), "h1").await.unwrap(), None);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "both files go");
    }

    #[tokio::test]
    async fn a_log_counts_toward_its_owners_share_and_ends_with_it() {
        let (directory, clock) = (tempfile::tempdir().unwrap(), Arc::new(Fake::default()));
        let disk = super::tests::disk(directory.path(), &clock, 100_000).await;
        disk.put(artifact("old", "ann", &"x".repeat(30_000), &clock)).await.unwrap();
        disk.put(artifact("h1", "ann", "hello", &clock)).await.unwrap();
        let opened = open(&disk, "h1").await.unwrap();
        opened.log.add(&[b'a'; 60_000]);
        opened.log.flush().await.unwrap();
        assert_eq!(disk.get(&Owner::from_stored("ann"), "old").await.unwrap(), None, "it gave way");
        opened.log.add(&[b'a'; 60_000]);
        let full = opened.log.flush().await;
        assert_eq!(full, Err(LogError::TooLarge { limit: 100_000 }));
        assert_eq!(std::fs::metadata(directory.path().join("h1.log")).unwrap().len(), 60_000);
        std::fs::write(directory.path().join("h2.log"), "of nothing").unwrap();
        drop(opened);
        // All owners together have 50,000 there.
        let again = super::tests::disk(directory.path(), &clock, 5_000).await;
        assert!(again.open_log(&Owner::from_stored("ann"), "h1").await.unwrap().is_none());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "nothing is left over");
    }
}
