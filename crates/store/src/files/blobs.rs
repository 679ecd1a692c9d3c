//! Blobs: files in a directory of their owner.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::attempt::{Attempt, run};
use super::{Files, file_name};
use crate::file::{self, named};
use crate::state::{BlobInfo, Blobs, StateError, StateFuture, fits, ready};

impl Files {
    fn of_owner(&self, owner: &str) -> PathBuf {
        self.0.path.join("blobs").join(file_name(owner))
    }

    /// The name is written into the file name, so that it can be listed.
    fn blob(&self, owner: &str, name: &str) -> PathBuf {
        self.of_owner(owner).join(tool::hex::encode(name.as_bytes()))
    }
}

impl Blobs for Files {
    fn put<'a>(
        &'a self,
        owner: &'a str,
        name: &'a str,
        bytes: Bytes,
        within: Duration,
    ) -> StateFuture<'a, ()> {
        if let Err(error) = fits(bytes.len(), self.0.limits.blob_bytes) {
            return ready(Err(error));
        }
        let (directory, file) = (Arc::clone(&self.0), self.blob(owner, name));
        run(within, move || {
            let written = file::replace(&file, &bytes, directory.safety);
            written.map_err(named("write", &file)).map_err(StateError::unavailable)?;
            Ok(Attempt::Done(()))
        })
    }

    fn get<'a>(
        &'a self,
        owner: &'a str,
        name: &'a str,
        range: Range<u64>,
        within: Duration,
    ) -> StateFuture<'a, Bytes> {
        let file = self.blob(owner, name);
        run(within, move || Ok(Attempt::Done(part(&file, &range)?)))
    }

    fn delete<'a>(
        &'a self,
        owner: &'a str,
        name: &'a str,
        within: Duration,
    ) -> StateFuture<'a, bool> {
        let file = self.blob(owner, name);
        run(within, move || match std::fs::remove_file(&file) {
            Ok(()) => Ok(Attempt::Done(true)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Attempt::Done(false)),
            Err(error) => Err(StateError::unavailable(named("remove", &file)(error))),
        })
    }

    fn list<'a>(&'a self, owner: &'a str, within: Duration) -> StateFuture<'a, Vec<BlobInfo>> {
        let directory = self.of_owner(owner);
        run(within, move || {
            let entries = match std::fs::read_dir(&directory) {
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    return Ok(Attempt::Done(Vec::new()));
                }
                read => read.map_err(named("read", &directory)).map_err(StateError::unavailable)?,
            };
            let mut found: Vec<BlobInfo> = entries.filter_map(|entry| info(&entry.ok()?)).collect();
            found.sort_by(|one, other| one.name.cmp(&other.name));
            Ok(Attempt::Done(found))
        })
    }
}

fn part(file: &Path, range: &Range<u64>) -> Result<Bytes, StateError> {
    let unavailable = |error| StateError::unavailable(named("read", file)(error));
    let mut opened = match File::open(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(StateError::Gone),
        opened => opened.map_err(unavailable)?,
    };
    let mut bytes = Vec::new();
    opened.seek(SeekFrom::Start(range.start)).map_err(unavailable)?;
    let n_bytes = range.end.saturating_sub(range.start);
    opened.take(n_bytes).read_to_end(&mut bytes).map_err(unavailable)?;
    Ok(bytes.into())
}

/// What is not in its place yet has a name that is none of a blob.
fn info(entry: &std::fs::DirEntry) -> Option<BlobInfo> {
    let name = tool::hex::decode(entry.file_name().to_str()?)?;
    let n_bytes = entry.metadata().ok()?.len();
    Some(BlobInfo { name: String::from_utf8(name).ok()?, n_bytes })
}
