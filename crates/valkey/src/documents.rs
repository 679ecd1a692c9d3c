//! Documents: one value each, with its version in front. A change is published to
//! all replicas, and watchers check again at intervals in case a message is lost.

use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use redis::cmd;
use store::state::{
    Documents, StateError, StateFuture, Version, Versioned, changes, check_size, later,
};
use tool::Backoff;

use crate::scripts::Script;
use crate::{Valkey, unexpected};

/// The length of a version.
const VERSION_BYTES: usize = 32;

/// How often every watched document counts as changed, in case a message was
/// lost. Looking again at one that did not change costs one request.
const RECHECK_INTERVAL: Duration = Duration::from_secs(10);

/// The pauses between attempts to subscribe.
const PAUSES: Backoff = Backoff::doubling(Duration::from_millis(100), Duration::from_secs(2));

impl Documents for Valkey {
    fn read<'a>(&'a self, name: &'a str, timeout: Duration) -> StateFuture<'a, Option<Versioned>> {
        later(async move {
            let mut get = cmd("GET");
            get.arg(self.key("d", name));
            let found: Option<Bytes> = self.0.link.command(timeout, &get).await?;
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
        let swap = Swap { script: &self.0.scripts.swap, key: self.key("d", name), name };
        later(self.run_swap(swap, expected, next, timeout))
    }

    /// Changes of other replicas are noticed while [`Valkey::listen`] runs.
    fn watch(&self, name: &str) -> BoxStream<'static, ()> {
        let mut watched = self.0.watched.lock();
        watched.retain(|_, watched| 0 < watched.receiver_count());
        let receiver = watched.entry(name.to_owned()).or_default().subscribe();
        drop(watched);
        changes(receiver)
    }
}

pub(crate) fn parse_versioned(stored: &Bytes) -> Result<Versioned, StateError> {
    let head =
        stored.get(..VERSION_BYTES).and_then(|head| <[u8; VERSION_BYTES]>::try_from(head).ok());
    let version = head.map(Version::from_bytes).ok_or_else(|| unexpected("a document"))?;
    Ok(Versioned { bytes: stored.slice(VERSION_BYTES..), version })
}

/// A script that replaces a document, and the document.
pub(crate) struct Swap<'a> {
    pub(crate) script: &'a Script,
    pub(crate) key: String,
    /// The name under which watchers hear of the change.
    pub(crate) name: &'a str,
}

impl Valkey {
    pub(crate) async fn run_swap(
        &self,
        swap: Swap<'_>,
        expected: Option<Version>,
        next: Option<Bytes>,
        timeout: Duration,
    ) -> Result<Option<Version>, StateError> {
        let Swap { script, key, name } = swap;
        if let Some(next) = &next {
            check_size(next.len(), self.0.limits.value_bytes)?;
        }
        let version = next.as_ref().map(|bytes| Version::of_content(bytes));
        let expected = expected.as_ref().map_or(&[][..], |version| version.as_bytes());
        let changed = version.as_ref().map_or(&[][..], |version| version.as_bytes());
        let bytes = next.as_ref().map_or(&[][..], |bytes| bytes.as_ref());
        let channel = self.channel();
        let arguments = [expected, changed, bytes, channel.as_bytes(), name.as_bytes()];
        match self.0.link.script::<u8>(timeout, script, &[key], &arguments).await? {
            0 => Err(StateError::Conflict),
            _ => {
                self.notify_watchers(name);
                Ok(version)
            }
        }
    }

    fn channel(&self) -> String {
        format!("{}changed", self.0.prefix)
    }

    fn notify_watchers(&self, name: &str) {
        if let Some(watched) = self.0.watched.lock().get(name) {
            watched.send_replace(());
        }
    }

    fn notify_all_watchers(&self) {
        for watched in self.0.watched.lock().values() {
            watched.send_replace(());
        }
    }

    /// Notifies the watchers of documents in this process of the changes of other
    /// replicas, until it is dropped. It reconnects when the connection is lost; then
    /// every document counts as changed.
    pub async fn listen(&self) {
        let mut pauses = PAUSES;
        loop {
            match self.0.link.subscribe(&self.channel()).await {
                Ok(listening) => {
                    pauses = PAUSES;
                    self.notify_all_watchers();
                    self.forward_changes(listening).await;
                    tracing::warn!("the connection that tells of changes in the store was lost");
                }
                Err(error) => tracing::debug!(%error, "cannot hear of changes in the store"),
            }
            tokio::time::sleep(pauses.fail()).await;
        }
    }

    /// Notifies watchers of what is published, until the connection is lost.
    async fn forward_changes(&self, listening: redis::aio::PubSub) {
        let (mut asking, mut messages) = listening.split();
        let mut ticks = tokio::time::interval(RECHECK_INTERVAL);
        ticks.tick().await;
        loop {
            tokio::select! {
                message = messages.next() => match message {
                    Some(message) => self.notify_watchers(&String::from_utf8_lossy(message.get_payload_bytes())),
                    None => return,
                },
                _ = ticks.tick() => {
                    // Only a ping shows that a silent connection was lost.
                    let pong = asking.ping::<redis::Value>();
                    match tokio::time::timeout(RECHECK_INTERVAL / 2, pong).await {
                        Ok(Ok(_)) => self.notify_all_watchers(),
                        Ok(Err(_)) | Err(_) => return,
                    }
                }
            }
        }
    }
}
