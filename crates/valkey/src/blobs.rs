//! Blobs: one value each, and an index of their sizes for every owner. Meant for few
//! and small blobs; many or large ones belong in an object store.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use redis::cmd;
use store::state::{BlobMeta, Blobs, StateError, StateFuture, check_size, later, ready};

use crate::Valkey;

impl Valkey {
    /// Returns the keys of a blob and of the owner's index.
    fn blob_keys(&self, owner: &str, name: &str) -> [String; 2] {
        [self.tagged("b", owner, &format!(":{name}")), self.tagged("i", owner, "")]
    }
}

impl Blobs for Valkey {
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
        later(async move {
            let (keys, script) = (self.blob_keys(owner, name), &self.0.scripts.put_blob);
            let arguments = [bytes.as_ref(), name.as_bytes()];
            self.0.link.script::<u8>(timeout, script, &keys, &arguments).await.map(drop)
        })
    }

    fn get<'a>(
        &'a self,
        owner: &'a str,
        name: &'a str,
        range: Range<u64>,
        timeout: Duration,
    ) -> StateFuture<'a, Bytes> {
        later(async move {
            let [blob, _] = self.blob_keys(owner, name);
            // The server's ranges include their last index.
            let longest = i64::MAX.unsigned_abs();
            let (first, last) = (range.start.min(longest), range.end.min(longest));
            let Some(last) = last.checked_sub(1).filter(|last| first <= *last) else {
                let mut exists = cmd("EXISTS");
                exists.arg(&blob);
                let is_there: bool = self.0.link.command(timeout, &exists).await?;
                return if is_there { Ok(Bytes::new()) } else { Err(StateError::Gone) };
            };
            let numbers = [first.to_string(), last.to_string()];
            let arguments = [numbers[0].as_bytes(), numbers[1].as_bytes()];
            let script = &self.0.scripts.get_blob;
            let part: Option<Bytes> =
                self.0.link.script(timeout, script, &[blob], &arguments).await?;
            part.ok_or(StateError::Gone)
        })
    }

    fn delete<'a>(
        &'a self,
        owner: &'a str,
        name: &'a str,
        timeout: Duration,
    ) -> StateFuture<'a, bool> {
        later(async move {
            let (keys, script) = (self.blob_keys(owner, name), &self.0.scripts.delete_blob);
            self.0.link.script(timeout, script, &keys, &[name.as_bytes()]).await
        })
    }

    fn list<'a>(&'a self, owner: &'a str, timeout: Duration) -> StateFuture<'a, Vec<BlobMeta>> {
        later(async move {
            let mut all = cmd("HGETALL");
            all.arg(self.tagged("i", owner, ""));
            let found: BTreeMap<String, u64> = self.0.link.command(timeout, &all).await?;
            Ok(found.into_iter().map(|(name, n_bytes)| BlobMeta { name, n_bytes }).collect())
        })
    }
}
