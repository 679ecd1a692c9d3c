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
use crate::file::{self, with_path};
use crate::state::{BlobMeta, Blobs, StateError, StateFuture, check_size, ready};

impl Files {
    fn owner_dir(&self, owner: &str) -> PathBuf {
        self.0.path.join("blobs").join(file_name(owner))
    }

    fn blob_file(&self, owner: &str, name: &str) -> PathBuf {
        self.owner_dir(owner).join(BlobMeta::encode_name(name))
    }
}

impl Blobs for Files {
    fn put<'a>(
        &'a self,
        owner: &'a str,
        name: &'a str,
        bytes: Bytes,
        timeout: Duration,
    ) -> StateFuture<'a, ()> {
        if let Err(error) = check_size(bytes.len(), self.0.limits.blob_bytes) {
            return ready(Err(error));
        }
        let (directory, file) = (Arc::clone(&self.0), self.blob_file(owner, name));
        run(timeout, move || {
            let written = file::replace(&file, &bytes, directory.safety);
            written.map_err(with_path("write", &file)).map_err(StateError::unavailable)?;
            Ok(Attempt::Done(()))
        })
    }

    fn get<'a>(
        &'a self,
        owner: &'a str,
        name: &'a str,
        range: Range<u64>,
        timeout: Duration,
    ) -> StateFuture<'a, Bytes> {
        let file = self.blob_file(owner, name);
        run(timeout, move || Ok(Attempt::Done(read_range(&file, &range)?)))
    }

    fn delete<'a>(
        &'a self,
        owner: &'a str,
        name: &'a str,
        timeout: Duration,
    ) -> StateFuture<'a, bool> {
        let file = self.blob_file(owner, name);
        run(timeout, move || match std::fs::remove_file(&file) {
            Ok(()) => Ok(Attempt::Done(true)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Attempt::Done(false)),
            Err(error) => Err(StateError::unavailable(with_path("remove", &file)(error))),
        })
    }

    fn list<'a>(&'a self, owner: &'a str, timeout: Duration) -> StateFuture<'a, Vec<BlobMeta>> {
        let directory = self.owner_dir(owner);
        run(timeout, move || {
            let entries = match std::fs::read_dir(&directory) {
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    return Ok(Attempt::Done(Vec::new()));
                }
                read => {
                    read.map_err(with_path("read", &directory)).map_err(StateError::unavailable)?
                }
            };
            // Files that are still being written have other names, and are left out.
            let entries = entries.filter_map(|entry| {
                let entry = entry.ok()?;
                BlobMeta::decode(entry.file_name().to_str()?, entry.metadata().ok()?.len())
            });
            Ok(Attempt::Done(BlobMeta::sorted(entries)))
        })
    }
}

fn read_range(file: &Path, range: &Range<u64>) -> Result<Bytes, StateError> {
    let unavailable = |error| StateError::unavailable(with_path("read", file)(error));
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
