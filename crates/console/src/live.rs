//! The stream that tells pages what changed. It says where, never what: a page
//! asks for itself again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::{self, BoxStream};

use crate::backend::Backend;

/// How many pages may listen at once.
const MOST: usize = 32;
/// How often something is sent where nothing changes, so that nobody in between
/// gives up.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// A stream ends after this, and the page opens another: so nobody listens longer
/// than they are logged in.
const LONGEST: Duration = Duration::from_secs(15 * 60);

/// The streams that are open.
#[derive(Default)]
pub(crate) struct Streams(Arc<AtomicUsize>);

/// Counts a stream for as long as it is open.
struct Open(Arc<AtomicUsize>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Streams {
    /// Opens a stream; `None` when there are too many.
    pub(crate) fn open(&self, backend: &Backend) -> Option<BoxStream<'static, Bytes>> {
        let open = Open(Arc::clone(&self.0));
        if MOST <= self.0.fetch_add(1, Ordering::Relaxed) {
            return None;
        }
        let approvals = backend.gateway.approvals().watch().map(|()| "approvals");
        let pool = backend.gateway.roster().default_pool();
        let upstreams = pool.events().map(|_| "upstreams");
        // Whoever listens looks, or nothing would be noted.
        drop(backend.calls.look());
        let calls = paced(backend.calls.watch()).map(|()| "calls");
        let beat = every(HEARTBEAT).map(|()| "tick");
        let topics =
            stream::select(stream::select(approvals, upstreams), stream::select(calls, beat));
        let end = tokio::time::sleep(LONGEST);
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

/// How often a page hears of calls, however many there are.
const PACE: Duration = Duration::from_secs(1);

/// Lets through one of all that come within a while.
fn paced(changes: BoxStream<'static, ()>) -> impl futures::Stream<Item = ()> + Send + 'static {
    stream::unfold(changes, |mut changes| async move {
        changes.next().await?;
        tokio::time::sleep(PACE).await;
        Some(((), changes))
    })
}

/// Says something again and again.
pub(crate) fn every(pause: Duration) -> impl futures::Stream<Item = ()> + Send + 'static {
    stream::unfold((), move |()| async move {
        tokio::time::sleep(pause).await;
        Some(((), ()))
    })
}
