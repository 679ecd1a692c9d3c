//! Blobs: a value each, and an index of their sizes for every owner. For small
//! ones; an object store is the place for many or large ones.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use redis::cmd;
use store::state::{BlobInfo, Blobs, StateError, StateFuture, fits, later, ready};

use crate::Valkey;

impl Valkey {
    fn blob(&self, owner: &str, name: &str) -> [String; 2] {
        [self.tagged("b", owner, &format!(":{name}")), self.tagged("i", owner, "")]
    }
}

impl Blobs for Valkey {
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
        later(async move {
            let (keys, script) = (self.blob(owner, name), &self.0.scripts.put_blob);
            let arguments = [bytes.as_ref(), name.as_bytes()];
            self.0.link.script::<u8>(within, script, &keys, &arguments).await.map(drop)
        })
    }

    fn get<'a>(
        &'a self,
        owner: &'a str,
        name: &'a str,
        range: Range<u64>,
        within: Duration,
    ) -> StateFuture<'a, Bytes> {
        later(async move {
            let [blob, _] = self.blob(owner, name);
            // The server's ranges have their last place in them.
            let longest = i64::MAX.unsigned_abs();
            let (first, last) = (range.start.min(longest), range.end.min(longest));
            let Some(last) = last.checked_sub(1).filter(|last| first <= *last) else {
                let mut exists = cmd("EXISTS");
                exists.arg(&blob);
                let is_there: bool = self.0.link.command(within, &exists).await?;
                return if is_there { Ok(Bytes::new()) } else { Err(StateError::Gone) };
            };
            let numbers = [first.to_string(), last.to_string()];
            let arguments = [numbers[0].as_bytes(), numbers[1].as_bytes()];
            let script = &self.0.scripts.get_blob;
            let part: Option<Bytes> =
                self.0.link.script(within, script, &[blob], &arguments).await?;
            part.ok_or(StateError::Gone)
        })
    }

    fn delete<'a>(
        &'a self,
        owner: &'a str,
        name: &'a str,
        within: Duration,
    ) -> StateFuture<'a, bool> {
        later(async move {
            let (keys, script) = (self.blob(owner, name), &self.0.scripts.delete_blob);
            self.0.link.script(within, script, &keys, &[name.as_bytes()]).await
        })
    }

    fn list<'a>(&'a self, owner: &'a str, within: Duration) -> StateFuture<'a, Vec<BlobInfo>> {
        later(async move {
            let mut all = cmd("HGETALL");
            all.arg(self.tagged("i", owner, ""));
            let found: BTreeMap<String, u64> = self.0.link.command(within, &all).await?;
            Ok(found.into_iter().map(|(name, n_bytes)| BlobInfo { name, n_bytes }).collect())
        })
    }
}
