//! Single uses and expiring values: a small file each, with its life in front.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;

use super::attempt::{Attempt, run};
use super::documents::{read, unless_missing};
use super::{Directory, Files};
use crate::file::{self, Lock, named};
use crate::state::{Expiring, SingleUse, StateError, StateFuture, fits, ready};

/// What every file begins with; the digit is the version of the format.
const MARK: &[u8; 8] = b"gatevle1";
/// The mark, when it was made and how long it lives, in milliseconds.
const HEAD: usize = 24;

const SINGLE_USE: &str = "single-use";
const EXPIRING: &str = "expiring";

/// What a process that died in the middle left is taken away after this.
const LEFT: Duration = Duration::from_secs(60 * 60);

impl SingleUse for Files {
    fn put<'a>(
        &'a self,
        key: &'a str,
        value: Bytes,
        life: Duration,
        within: Duration,
    ) -> StateFuture<'a, ()> {
        self.write(SINGLE_USE, key, value, life, within, Over::Ended)
    }

    /// Who renames the file has the value. A process that dies right after that
    /// takes it along: better nobody than two.
    fn take<'a>(&'a self, key: &'a str, within: Duration) -> StateFuture<'a, Option<Bytes>> {
        let (directory, file) = (Arc::clone(&self.0), self.0.keyed(SINGLE_USE, key));
        run(within, move || {
            let hidden = format!(".{}.{}", uuid::Uuid::new_v4().simple(), file::FRESH);
            let taken = file.with_file_name(hidden);
            match std::fs::rename(&file, &taken) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    return Ok(Attempt::Done(None));
                }
                renamed => {
                    renamed.map_err(named("take", &file)).map_err(StateError::unavailable)?
                }
            }
            let value = directory.value(&taken, &file);
            directory.lifetimes.forget(&name(&file));
            // What could not be taken away is not to be found either.
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
        life: Duration,
        within: Duration,
    ) -> StateFuture<'a, ()> {
        self.write(EXPIRING, key, value, life, within, Over::Anything)
    }

    fn get<'a>(&'a self, key: &'a str, within: Duration) -> StateFuture<'a, Option<Bytes>> {
        let (directory, file) = (Arc::clone(&self.0), self.0.keyed(EXPIRING, key));
        run(within, move || Ok(Attempt::Done(directory.value(&file, &file)?)))
    }

    fn touch<'a>(
        &'a self,
        key: &'a str,
        life: Duration,
        within: Duration,
    ) -> StateFuture<'a, bool> {
        let (directory, file) = (Arc::clone(&self.0), self.0.keyed(EXPIRING, key));
        run(within, move || {
            let Some(_lock) = directory.lock(EXPIRING)? else { return Ok(Attempt::Busy) };
            let Some(value) = directory.value(&file, &file)? else {
                return Ok(Attempt::Done(false));
            };
            directory.keep(&file, &value, life)?;
            Ok(Attempt::Done(true))
        })
    }

    fn remove<'a>(&'a self, key: &'a str, within: Duration) -> StateFuture<'a, bool> {
        let (directory, file) = (Arc::clone(&self.0), self.0.keyed(EXPIRING, key));
        run(within, move || {
            let Some(_lock) = directory.lock(EXPIRING)? else { return Ok(Attempt::Busy) };
            let is_there = directory.value(&file, &file)?.is_some();
            directory.discard(&file)?;
            Ok(Attempt::Done(is_there))
        })
    }
}

/// What a value may be put over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Over {
    Anything,
    Ended,
}

impl Files {
    fn write<'a>(
        &'a self,
        kind: &'static str,
        key: &str,
        value: Bytes,
        life: Duration,
        within: Duration,
        over: Over,
    ) -> StateFuture<'a, ()> {
        if let Err(error) = fits(value.len(), self.0.limits.value_bytes) {
            return ready(Err(error));
        }
        let (directory, file) = (Arc::clone(&self.0), self.0.keyed(kind, key));
        run(within, move || {
            let Some(_lock) = directory.lock(kind)? else { return Ok(Attempt::Busy) };
            if over == Over::Ended && directory.value(&file, &file)?.is_some() {
                return Err(StateError::Conflict);
            }
            directory.keep(&file, &value, life)?;
            directory.sweep(kind);
            Ok(Attempt::Done(()))
        })
    }
}

impl Directory {
    /// Held while values of a kind are put in the place of others.
    fn lock(&self, kind: &str) -> Result<Option<Lock>, StateError> {
        Lock::try_beside(&self.path.join(kind)).map_err(StateError::unavailable)
    }

    fn keep(&self, file: &Path, value: &[u8], life: Duration) -> Result<(), StateError> {
        let made = self.lifetimes.unix_millis();
        let millis = u64::try_from(life.as_millis()).unwrap_or(u64::MAX);
        let head = [MARK.as_slice(), &made.to_le_bytes(), &millis.to_le_bytes()];
        let bytes = [&head.concat(), value].concat();
        let written = file::replace(file, &bytes, self.safety).map_err(named("write", file));
        written.map_err(StateError::unavailable)?;
        self.lifetimes.begin(&name(file), made, life);
        Ok(())
    }

    /// What `file` holds, unless it is over. It was `kept` under that name.
    fn value(&self, file: &Path, kept: &Path) -> Result<Option<Bytes>, StateError> {
        let head = u64::try_from(HEAD).unwrap_or(0);
        let Some(bytes) = read(file, self.limits.value_bytes.saturating_add(head))? else {
            return Ok(None);
        };
        let is_over = bytes
            .get(..HEAD)
            .and_then(life)
            .is_none_or(|(made, life)| self.lifetimes.is_over(&name(kept), made, life));
        Ok((!is_over).then(|| Bytes::from(bytes).slice(HEAD..)))
    }

    fn discard(&self, file: &Path) -> Result<(), StateError> {
        self.lifetimes.forget(&name(file));
        let removed = std::fs::remove_file(file).or_else(unless_missing);
        removed.map_err(named("remove", file)).map_err(StateError::unavailable)
    }

    /// Takes away what is over, now and then. What cannot be taken away is tried
    /// again later.
    fn sweep(&self, kind: &str) {
        if !self.lifetimes.is_time_to_sweep() {
            return;
        }
        let Ok(entries) = std::fs::read_dir(self.path.join(kind)) else { return };
        for file in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            let is_hidden = name(&file).starts_with('.');
            let is_over = match is_hidden {
                true => self.was_left(&file),
                false => head(&file)
                    .is_none_or(|(made, life)| self.lifetimes.is_over(&name(&file), made, life)),
            };
            if is_over {
                let _ = self.discard(&file);
            }
        }
    }

    /// Whether nobody can be writing this any more.
    fn was_left(&self, file: &Path) -> bool {
        let written = file::stamp(file).and_then(|(when, _)| when.duration_since(UNIX_EPOCH).ok());
        let now = Duration::from_millis(self.lifetimes.unix_millis());
        written.is_some_and(|written| LEFT < now.saturating_sub(written))
    }
}

fn name(file: &Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn head(file: &PathBuf) -> Option<(u64, Duration)> {
    let mut head = [0; HEAD];
    File::open(file).ok()?.read_exact(&mut head).ok()?;
    life(&head)
}

/// When something was made and how long it lives.
fn life(head: &[u8]) -> Option<(u64, Duration)> {
    let rest = head.strip_prefix(MARK)?;
    let (made, millis) = rest.split_first_chunk::<8>()?;
    let millis = u64::from_le_bytes(*millis.first_chunk::<8>()?);
    Some((u64::from_le_bytes(*made), Duration::from_millis(millis)))
}
