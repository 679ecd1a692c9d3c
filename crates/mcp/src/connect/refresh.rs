//! Fetches the lists of a server again when they have changed.
//!
//! A list is fetched a moment after the notification, so that a burst of notifications
//! costs one fetch, and once more if it was notified meanwhile, so that no change is lost.

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

/// The longest pause between two fetches.
const PAUSE: Duration = Duration::from_secs(10);

/// After this many failed fetches in a row the failure is reported in the listing.
const TRIES: u32 = 3;

/// The pauses after failed fetches, before and after the failure is reported.
const SOON: Backoff = Backoff::doubling(Duration::from_millis(500), PAUSE);
const LATER: Backoff = Backoff::doubling(PAUSE, Duration::from_secs(300));

/// Fetches stale lists until the connection ends.
pub(super) async fn keep_fresh(connection: Arc<Connection>) {
    let mut n_failed = 0;
    while connection.relay.stale.wait_for_any().await {
        if connection.relay.stale.is_new_session.swap(false, Ordering::AcqRel) {
            connection.restore_log_level().await;
            resubscribe(&connection).await;
        }
        sleep(BURST).await;
        let started = Instant::now();
        let mut failed = Vec::new();
        for kind in connection.relay.stale.take_marked() {
            match lists::fetch(&connection, kind).await {
                Ok(list) => {
                    lists::store(&connection, kind, list).await;
                    connection.relay.send_event(Event::Changed(kind));
                }
                Err(why) => failed.push((kind, why)),
            }
        }
        n_failed = if failed.is_empty() { 0 } else { n_failed + 1 };
        // A server with slow lists, or with endless notifications, is asked less often.
        sleep((started.elapsed() * 2).min(PAUSE)).await;
        retry_failed(&connection, failed, n_failed).await;
    }
}

/// Marks lists that could not be fetched as stale again after a pause, and reports them
/// after some failures.
async fn retry_failed(connection: &Connection, failed: Vec<(Kind, ListError)>, n_failed: u32) {
    if failed.is_empty() || connection.relay.stale.has_ended() {
        return;
    }
    let kinds: Vec<_> = failed.iter().map(|(kind, _)| *kind).collect();
    if n_failed == TRIES {
        for (kind, why) in failed {
            tracing::warn!(target: "upstream", upstream = connection.label, "a list {why}");
            connection.update_listing(|listing| lists::mark_failed(listing, kind, &why));
            // The items are unchanged, but the listing says now that they may be old.
            connection.relay.send_event(Event::Changed(kind));
        }
    }
    tokio::select! {
        () = sleep(pause_after(n_failed)) => {}
        _ = connection.relay.stale.wait_for_any() => {}
    }
    connection.relay.stale.mark(&kinds);
}

/// Returns the pause after `n_failed` failures in a row.
fn pause_after(n_failed: u32) -> Duration {
    match n_failed < TRIES {
        true => SOON.pause_after(n_failed, 1.0),
        false => LATER.pause_after(n_failed + 1 - TRIES, 1.0),
    }
}

/// Subscribes a reopened session to the watched resources.
async fn resubscribe(connection: &Connection) {
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
