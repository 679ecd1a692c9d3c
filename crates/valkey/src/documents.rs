//! Documents: one value each, its version in front. A change is published, and
//! whoever watches looks again now and then in any case.

use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use redis::cmd;
use store::state::{
    Documents, StateError, StateFuture, Version, Versioned, changes, fits, later, ready,
};
use tool::Backoff;

use crate::{Valkey, unexpected};

/// The length of a version.
const VERSION: usize = 32;

/// How often every watched document counts as changed, in case a message was
/// lost. Looking again at one that did not change costs one request.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// The pauses between attempts to listen.
const PAUSES: Backoff = Backoff::doubling(Duration::from_millis(100), Duration::from_secs(2));

impl Documents for Valkey {
    fn read<'a>(&'a self, name: &'a str, within: Duration) -> StateFuture<'a, Option<Versioned>> {
        later(async move {
            let mut get = cmd("GET");
            get.arg(self.key("d", name));
            let found: Option<Bytes> = self.0.link.command(within, &get).await?;
            found.as_ref().map(versioned).transpose()
        })
    }

    fn swap<'a>(
        &'a self,
        name: &'a str,
        expected: Option<Version>,
        next: Option<Bytes>,
        within: Duration,
    ) -> StateFuture<'a, Option<Version>> {
        let limit = self.0.limits.value_bytes;
        if let Some(Err(error)) = next.as_ref().map(|next| fits(next.len(), limit)) {
            return ready(Err(error));
        }
        later(async move {
            let version = next.as_ref().map(|bytes| Version::of(bytes));
            let expected = expected.as_ref().map_or(&[][..], |version| version.as_bytes());
            let changed = version.as_ref().map_or(&[][..], |version| version.as_bytes());
            let bytes = next.as_ref().map_or(&[][..], |bytes| bytes.as_ref());
            let channel = self.channel();
            let arguments = [expected, changed, bytes, channel.as_bytes(), name.as_bytes()];
            let keys = [self.key("d", name)];
            let done: u8 =
                self.0.link.script(within, &self.0.scripts.swap, &keys, &arguments).await?;
            match done {
                0 => Err(StateError::Conflict),
                _ => {
                    self.tell(name);
                    Ok(version)
                }
            }
        })
    }

    /// Changes of others are told while [`Valkey::listen`] runs.
    fn watch(&self, name: &str) -> BoxStream<'static, ()> {
        let mut watched = self.0.watched.lock();
        watched.retain(|_, watched| 0 < watched.receiver_count());
        let receiver = watched.entry(name.to_owned()).or_default().subscribe();
        drop(watched);
        changes(receiver)
    }
}

fn versioned(stored: &Bytes) -> Result<Versioned, StateError> {
    let head = stored.get(..VERSION).and_then(|head| <[u8; VERSION]>::try_from(head).ok());
    let version = head.map(Version::from_bytes).ok_or_else(|| unexpected("a document"))?;
    Ok(Versioned { bytes: stored.slice(VERSION..), version })
}

impl Valkey {
    fn channel(&self) -> String {
        format!("{}changed", self.0.prefix)
    }

    fn tell(&self, name: &str) {
        if let Some(watched) = self.0.watched.lock().get(name) {
            watched.send_replace(());
        }
    }

    fn tell_all(&self) {
        for watched in self.0.watched.lock().values() {
            watched.send_replace(());
        }
    }

    /// Tells whoever watches a document here of the changes that others make,
    /// until it is dropped. A connection that is lost is made anew, and everything
    /// counts as changed then.
    pub async fn listen(&self) {
        let mut pauses = PAUSES;
        loop {
            match self.0.link.subscribe(&self.channel()).await {
                Ok(listening) => {
                    pauses = PAUSES;
                    self.tell_all();
                    self.hear(listening).await;
                    tracing::warn!("the connection that tells of changes in the store was lost");
                }
                Err(error) => tracing::debug!(%error, "cannot hear of changes in the store"),
            }
            tokio::time::sleep(pauses.fail()).await;
        }
    }

    /// Ends when the connection is lost.
    async fn hear(&self, listening: redis::aio::PubSub) {
        let (mut asking, mut messages) = listening.split();
        let mut ticks = tokio::time::interval(LOOK_AGAIN);
        ticks.tick().await;
        loop {
            tokio::select! {
                message = messages.next() => match message {
                    Some(message) => self.tell(&String::from_utf8_lossy(message.get_payload_bytes())),
                    None => return,
                },
                _ = ticks.tick() => {
                    // A link that was cut says nothing, not even that.
                    let pong = asking.ping::<redis::Value>();
                    match tokio::time::timeout(LOOK_AGAIN / 2, pong).await {
                        Ok(Ok(_)) => self.tell_all(),
                        Ok(Err(_)) | Err(_) => return,
                    }
                }
            }
        }
    }
}
