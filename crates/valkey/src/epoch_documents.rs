//! Documents that do not outlive a failover.
//!
//! A failover may bring back an older content of a document. For most documents that
//! is a change to be merged; where it would allow something a second time, the
//! document must rather be gone. So each begins with the replication id of its
//! server, as single-use values do, and one with another id does not exist.

use std::time::Duration;

use bytes::Bytes;
use futures::stream::BoxStream;
use store::state::{Documents, StateFuture, Version, Versioned, later};

use crate::Valkey;
use crate::documents::{Swap, parse_versioned};

/// Documents that are gone after a failover and after a restart of the server. They
/// are apart from the other documents of the same store.
#[derive(Clone)]
pub struct EpochDocuments(pub Valkey);

impl Documents for EpochDocuments {
    fn read<'a>(&'a self, name: &'a str, timeout: Duration) -> StateFuture<'a, Option<Versioned>> {
        let EpochDocuments(store) = self;
        later(async move {
            let (script, keys) = (&store.0.scripts.read_epoch, [store.key("g", name)]);
            let found: Option<Bytes> = store.0.link.script(timeout, script, &keys, &[]).await?;
            found.as_ref().map(parse_versioned).transpose()
        })
    }

    fn swap<'a>(
        &'a self,
        name: &'a str,
        expected: Option<Version>,
        next: Option<Bytes>,
        timeout: Duration,
    ) -> StateFuture<'a, Option<Version>> {
        let EpochDocuments(store) = self;
        let swap = Swap { script: &store.0.scripts.swap_epoch, key: store.key("g", name), name };
        later(store.run_swap(swap, expected, next, timeout))
    }

    /// Changes of other replicas are noticed while [`Valkey::listen`] runs.
    fn watch(&self, name: &str) -> BoxStream<'static, ()> {
        self.0.watch(name)
    }
}
