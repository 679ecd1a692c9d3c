//! Single-use and expiring values: one small file each, with its TTL in front.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;

use super::attempt::{Attempt, run};
use super::documents::{ignore_missing, read_file};
use super::{Directory, Files};
use crate::file::{self, Lock, with_path};
use crate::state::{Expiring, SingleUse, StateError, StateFuture, check_size, ready};

/// The first bytes of every file; the digit is the version of the format.
const MARK: &[u8; 8] = b"gatevle1";
/// The length of the mark, the time of writing and the TTL, both in milliseconds.
const HEAD_BYTES: usize = 24;

const SINGLE_USE: &str = "single-use";
const EXPIRING: &str = "expiring";

/// The age at which a temporary file of a process that died is removed.
const ABANDONED_AFTER: Duration = Duration::from_secs(60 * 60);

impl SingleUse for Files {
    fn put<'a>(
        &'a self,
        key: &'a str,
        value: Bytes,
        ttl: Duration,
        timeout: Duration,
    ) -> StateFuture<'a, ()> {
        self.put_value(SINGLE_USE, key, value, ttl, timeout, Replaces::Expired)
    }

    /// The one caller that renames the file gets the value. If its process dies right
    /// after that, the value is lost: better nobody gets it than two.
    fn take<'a>(&'a self, key: &'a str, timeout: Duration) -> StateFuture<'a, Option<Bytes>> {
        let (directory, file) = (Arc::clone(&self.0), self.0.keyed_file(SINGLE_USE, key));
        run(timeout, move || {
            let hidden = format!(".{}.{}", uuid::Uuid::new_v4().simple(), file::TEMP_EXTENSION);
            let taken = file.with_file_name(hidden);
            match std::fs::rename(&file, &taken) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    return Ok(Attempt::Done(None));
                }
                renamed => {
                    renamed.map_err(with_path("take", &file)).map_err(StateError::unavailable)?
                }
            }
            let value = directory.value(&taken, &file);
            directory.lifetimes.forget(&name(&file));
            // A file that could not be removed has a name that nobody looks for.
            let _ = std::fs::remove_file(&taken);
            value.map(Attempt::Done)
        })
    }
}

impl Expiring for Files {
    fn put<'a>(
        &'a self,
        key: &'a str,
        value: Bytes,
        ttl: Duration,
        timeout: Duration,
    ) -> StateFuture<'a, ()> {
        self.put_value(EXPIRING, key, value, ttl, timeout, Replaces::Any)
    }

    fn get<'a>(&'a self, key: &'a str, timeout: Duration) -> StateFuture<'a, Option<Bytes>> {
        let (directory, file) = (Arc::clone(&self.0), self.0.keyed_file(EXPIRING, key));
        run(timeout, move || Ok(Attempt::Done(directory.value(&file, &file)?)))
    }

    fn append_at<'a>(
        &'a self,
        key: &'a str,
        at: u64,
        bytes: Bytes,
        ttl: Duration,
        timeout: Duration,
    ) -> StateFuture<'a, ()> {
        let length = usize::try_from(at).unwrap_or(usize::MAX).saturating_add(bytes.len());
        if let Err(error) = check_size(length, self.0.limits.value_bytes) {
            return ready(Err(error));
        }
        self.locked(EXPIRING, key, timeout, move |directory, file| {
            directory.append_value(file, at, &bytes, ttl)
        })
    }

    fn replace<'a>(
        &'a self,
        key: &'a str,
        expected: Option<Bytes>,
        next: Bytes,
        ttl: Duration,
        timeout: Duration,
    ) -> StateFuture<'a, ()> {
        if let Err(error) = check_size(next.len(), self.0.limits.value_bytes) {
            return ready(Err(error));
        }
        self.locked(EXPIRING, key, timeout, move |directory, file| {
            if directory.value(file, file)? != expected {
                return Err(StateError::Conflict);
            }
            directory.write_value(file, &next, ttl)
        })
    }

    fn touch<'a>(
        &'a self,
        key: &'a str,
        ttl: Duration,
        timeout: Duration,
    ) -> StateFuture<'a, bool> {
        self.locked(EXPIRING, key, timeout, move |directory, file| {
            let Some(value) = directory.value(file, file)? else { return Ok(false) };
            directory.write_value(file, &value, ttl)?;
            Ok(true)
        })
    }

    fn remove<'a>(&'a self, key: &'a str, timeout: Duration) -> StateFuture<'a, bool> {
        self.locked(EXPIRING, key, timeout, |directory, file| {
            let is_there = directory.value(file, file)?.is_some();
            directory.discard(file)?;
            Ok(is_there)
        })
    }
}

/// Which earlier value a new one may replace.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Replaces {
    Any,
    Expired,
}

impl Files {
    /// Writes the file of a value; [`StateError::Conflict`] if it must not replace
    /// the one that is there.
    fn put_value<'a>(
        &'a self,
        kind: &'static str,
        key: &str,
        value: Bytes,
        ttl: Duration,
        timeout: Duration,
        replaces: Replaces,
    ) -> StateFuture<'a, ()> {
        if let Err(error) = check_size(value.len(), self.0.limits.value_bytes) {
            return ready(Err(error));
        }
        self.locked(kind, key, timeout, move |directory, file| {
            if replaces == Replaces::Expired && directory.value(file, file)?.is_some() {
                return Err(StateError::Conflict);
            }
            directory.write_value(file, &value, ttl)?;
            directory.sweep(kind);
            Ok(())
        })
    }

    /// Does `act` with the file of a value, under the lock of its kind.
    fn locked<'a, T: Send + 'static>(
        &'a self,
        kind: &'static str,
        key: &str,
        timeout: Duration,
        act: impl Fn(&Directory, &Path) -> Result<T, StateError> + Send + Sync + 'static,
    ) -> StateFuture<'a, T> {
        let (directory, file) = (Arc::clone(&self.0), self.0.keyed_file(kind, key));
        run(timeout, move || {
            let Some(_lock) = directory.lock(kind)? else { return Ok(Attempt::Busy) };
            act(&directory, &file).map(Attempt::Done)
        })
    }
}

impl Directory {
    /// Takes the lock for writing values of a kind; `None` while another process
    /// has it.
    fn lock(&self, kind: &str) -> Result<Option<Lock>, StateError> {
        Lock::try_beside(&self.path.join(kind)).map_err(StateError::unavailable)
    }

    fn write_value(&self, file: &Path, value: &[u8], ttl: Duration) -> Result<(), StateError> {
        let made = self.lifetimes.unix_millis();
        let millis = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
        let head = [MARK.as_slice(), &made.to_le_bytes(), &millis.to_le_bytes()];
        let bytes = [&head.concat(), value].concat();
        let written = file::replace(file, &bytes, self.safety).map_err(with_path("write", file));
        written.map_err(StateError::unavailable)?;
        self.lifetimes.start(&name(file), made, ttl);
        Ok(())
    }

    /// Adds to the file of a value that has `at` bytes. A process that dies in the middle
    /// leaves part of the bytes.
    fn append_value(
        &self,
        file: &Path,
        at: u64,
        bytes: &[u8],
        ttl: Duration,
    ) -> Result<(), StateError> {
        let before = file::stamp(file).filter(|_| {
            read_head(file)
                .is_some_and(|(made, ttl)| !self.lifetimes.is_expired(&name(file), made, ttl))
        });
        let head = HEAD_BYTES as u64;
        let length = before.map_or(0, |(_, length)| length.saturating_sub(head));
        if length != at {
            return Err(StateError::Conflict);
        }
        if before.is_none() {
            return self.write_value(file, bytes, ttl);
        }
        let made = self.lifetimes.unix_millis();
        let millis = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
        let lifetime = [made.to_le_bytes(), millis.to_le_bytes()].concat();
        let opened = OpenOptions::new().write(true).open(file);
        let written = opened.and_then(|opened| {
            opened.write_all_at(bytes, head + at).inspect_err(|_| {
                let _ = opened.set_len(head + at);
            })?;
            opened.write_all_at(&lifetime, MARK.len() as u64)
        });
        written.map_err(with_path("write", file)).map_err(StateError::unavailable)?;
        self.lifetimes.start(&name(file), made, ttl);
        Ok(())
    }

    /// Reads the value in `file`, unless it has expired. It was written as
    /// `original`, before it was renamed.
    fn value(&self, file: &Path, original: &Path) -> Result<Option<Bytes>, StateError> {
        let head = u64::try_from(HEAD_BYTES).unwrap_or(0);
        let Some(bytes) = read_file(file, self.limits.value_bytes.saturating_add(head))? else {
            return Ok(None);
        };
        let is_expired = bytes
            .get(..HEAD_BYTES)
            .and_then(parse_head)
            .is_none_or(|(made, ttl)| self.lifetimes.is_expired(&name(original), made, ttl));
        Ok((!is_expired).then(|| Bytes::from(bytes).slice(HEAD_BYTES..)))
    }

    fn discard(&self, file: &Path) -> Result<(), StateError> {
        self.lifetimes.forget(&name(file));
        let removed = std::fs::remove_file(file).or_else(ignore_missing);
        removed.map_err(with_path("remove", file)).map_err(StateError::unavailable)
    }

    /// Removes expired values, at most once a minute. What cannot be removed is tried
    /// again later.
    fn sweep(&self, kind: &str) {
        if !self.lifetimes.is_sweep_due() {
            return;
        }
        let Ok(entries) = std::fs::read_dir(self.path.join(kind)) else { return };
        for file in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            let is_hidden = name(&file).starts_with('.');
            let is_expired = match is_hidden {
                true => self.is_abandoned(&file),
                false => read_head(&file)
                    .is_none_or(|(made, ttl)| self.lifetimes.is_expired(&name(&file), made, ttl)),
            };
            if is_expired {
                let _ = self.discard(&file);
            }
        }
    }

    /// Returns whether a temporary file is so old that nobody is writing it.
    fn is_abandoned(&self, file: &Path) -> bool {
        let written = file::stamp(file).and_then(|(when, _)| when.duration_since(UNIX_EPOCH).ok());
        let now = Duration::from_millis(self.lifetimes.unix_millis());
        written.is_some_and(|written| ABANDONED_AFTER < now.saturating_sub(written))
    }
}

fn name(file: &Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn read_head(file: &Path) -> Option<(u64, Duration)> {
    let mut head = [0; HEAD_BYTES];
    File::open(file).ok()?.read_exact(&mut head).ok()?;
    parse_head(&head)
}

/// Returns when a value was written, in milliseconds since 1970, and its TTL.
fn parse_head(head: &[u8]) -> Option<(u64, Duration)> {
    let rest = head.strip_prefix(MARK)?;
    let (made, millis) = rest.split_first_chunk::<8>()?;
    let millis = u64::from_le_bytes(*millis.first_chunk::<8>()?);
    Some((u64::from_le_bytes(*made), Duration::from_millis(millis)))
}
