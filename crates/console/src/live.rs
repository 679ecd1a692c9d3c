//! The event stream that tells open pages when something changed. An event only names a
//! topic, such as `calls`; the page then loads itself again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::{self, BoxStream};

use crate::backend::Backend;

/// How many streams may be open at once.
const MAX_STREAMS: usize = 32;
/// How often something is sent when nothing changes, so that proxies keep the stream open.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// A stream ends after this and the page opens another, so that no stream outlives its
/// session for long.
const MAX_STREAM_TIME: Duration = Duration::from_secs(15 * 60);

/// The number of open streams.
#[derive(Default)]
pub(crate) struct Streams(Arc<AtomicUsize>);

/// Counts a stream for as long as it is open.
struct OpenStream(Arc<AtomicUsize>);

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Streams {
    /// Opens a stream; `None` when too many are open.
    pub(crate) fn open(&self, backend: &Backend) -> Option<BoxStream<'static, Bytes>> {
        let open = OpenStream(Arc::clone(&self.0));
        if MAX_STREAMS <= self.0.fetch_add(1, Ordering::Relaxed) {
            return None;
        }
        let approvals = backend.gateway.approvals().watch().map(|()| "approvals");
        let pool = backend.gateway.roster().default_pool();
        let upstreams = pool.events().map(|_| "upstreams");
        // Reading the log switches the logging of calls on.
        drop(backend.calls.recent());
        let calls = throttled(backend.calls.watch()).map(|()| "calls");
        let beat = ticks(HEARTBEAT).map(|()| "tick");
        let topics =
            stream::select(stream::select(approvals, upstreams), stream::select(calls, beat));
        let end = tokio::time::sleep(MAX_STREAM_TIME);
        let events = topics.take_until(end).map(move |topic| {
            let _open = &open;
            event(topic)
        });
        Some(stream::iter([Bytes::from_static(b"retry: 2000\n\n")]).chain(events).boxed())
    }
}

fn event(topic: &str) -> Bytes {
    Bytes::from(format!("event: change\ndata: {topic}\n\n"))
}

/// The shortest time between two events about calls.
const MIN_INTERVAL: Duration = Duration::from_secs(1);

/// Limits a stream to one item per [`MIN_INTERVAL`].
fn throttled(changes: BoxStream<'static, ()>) -> impl futures::Stream<Item = ()> + Send + 'static {
    stream::unfold(changes, |mut changes| async move {
        changes.next().await?;
        tokio::time::sleep(MIN_INTERVAL).await;
        Some(((), changes))
    })
}

/// Yields an item after every pause.
pub(crate) fn ticks(pause: Duration) -> impl futures::Stream<Item = ()> + Send + 'static {
    stream::unfold((), move |()| async move {
        tokio::time::sleep(pause).await;
        Some(((), ()))
    })
}
