//! Requests the lists of a server again when they have changed.
//!
//! A server that says that a list changed is asked for it again: a moment
//! later, so that a burst costs one reading, and once more when it said so
//! again meanwhile, so that the last word is never lost.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tool::{Backoff, Event, Json, Kind, Object, Reply};

use super::connection::Connection;
use super::lists::{self, ListError};
use crate::revision::method;

/// How long to wait for the rest of a burst.
const BURST: Duration = Duration::from_millis(50);

/// The longest pause between two readings.
const PAUSE: Duration = Duration::from_secs(10);

/// How often a reading that fails is tried again before that is told.
const TRIES: u32 = 3;

/// The pauses after readings that failed, before that is told and after.
const SOON: Backoff = Backoff::doubling(Duration::from_millis(500), PAUSE);
const LATER: Backoff = Backoff::doubling(PAUSE, Duration::from_secs(300));

/// Reads lists again as they change, to the end of the upstream.
pub(super) async fn keep_fresh(connection: Arc<Connection>) {
    let mut n_failed = 0;
    while connection.relay.stale.any().await {
        if connection.relay.stale.is_new.swap(false, Ordering::AcqRel) {
            connection.log_again().await;
            watch_again(&connection).await;
        }
        sleep(BURST).await;
        let started = Instant::now();
        let mut failed = Vec::new();
        for kind in connection.relay.stale.take() {
            match lists::read(&connection, kind).await {
                Ok(list) => {
                    lists::place(&connection, kind, list).await;
                    connection.relay.tell(Event::Changed(kind));
                }
                Err(why) => failed.push((kind, why)),
            }
        }
        n_failed = if failed.is_empty() { 0 } else { n_failed + 1 };
        // A server whose lists are slow, or that cries without end, is asked
        // less often.
        sleep((started.elapsed() * 2).min(PAUSE)).await;
        again(&connection, failed, n_failed).await;
    }
}

/// Tries lists again that could not be read, soon at first, and says so when
/// that does not help.
async fn again(connection: &Connection, failed: Vec<(Kind, ListError)>, n_failed: u32) {
    if failed.is_empty() || connection.relay.stale.has_ended() {
        return;
    }
    let kinds: Vec<_> = failed.iter().map(|(kind, _)| *kind).collect();
    if n_failed == TRIES {
        for (kind, why) in failed {
            tracing::warn!(target: "upstream", upstream = connection.label, "a list {why}");
            connection.replace(|listing| lists::unread(listing, kind, &why));
            // What is listed is what it was, but now it is known to be old.
            connection.relay.tell(Event::Changed(kind));
        }
    }
    tokio::select! {
        () = sleep(pause(n_failed)) => {}
        // Something changed, and perhaps this.
        _ = connection.relay.stale.any() => {}
    }
    connection.relay.stale.mark(&kinds);
}

/// Returns how long to wait after so many failures.
fn pause(n_failed: u32) -> Duration {
    match n_failed < TRIES {
        true => SOON.pause_after(n_failed, 1.0),
        false => LATER.pause_after(n_failed + 1 - TRIES, 1.0),
    }
}

/// Subscribes a new session to what was watched on the last.
async fn watch_again(connection: &Connection) {
    for uri in connection.subscriptions.uris() {
        let mut params = Object::new();
        params.push("uri", Json::encode(&uri));
        let why = match connection.request_internal(method::SUBSCRIBE, params).await {
            Ok(Reply::Result(_)) => continue,
            Ok(Reply::Error(error)) => error.message,
            Err(failure) => failure.to_string(),
        };
        tracing::warn!(target: "upstream", upstream = connection.label, uri, "no longer watched: {why}");
    }
}
