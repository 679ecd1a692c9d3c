//! Reads the GET event stream of a legacy session: messages that belong to no request.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use reqwest::Response;
use tokio::sync::oneshot;
use tokio::time::sleep;
use tool::Kind;

use super::answer::is_event_stream;
use super::reconnect::{Received, ReconnectDelay};
use super::{Http, Session, forgot_session};
use crate::connect::sse::{EventTooLong, FillError, Parser};
use crate::revision::Revision;

const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// After this many failed connections in a row the server counts as gone.
const TRIES: u32 = 6;

impl Http {
    /// Starts to read the event stream, if the revision has one. The receiver resolves when
    /// the stream is open, or when there will be none.
    pub(in crate::connect) fn listen(
        self: &Arc<Http>,
        revision: Revision,
    ) -> Option<oneshot::Receiver<()>> {
        if revision.is_modern() || revision == Revision::V2024_11_05 {
            return None;
        }
        let (ready, listening) = oneshot::channel();
        tokio::spawn(listen(Arc::clone(self), ready));
        Some(listening)
    }
}

/// Reads the stream until the connection closes, or the server turns out to have none.
///
/// Sends to `ready` when the stream is open, and drops it when there will be none.
async fn listen(http: Arc<Http>, ready: oneshot::Sender<()>) {
    let closing = http.closing.clone();
    tokio::select! {
        () = closing.cancelled() => {}
        () = keep_listening(&http, ready) => {}
    }
}

async fn keep_listening(http: &Arc<Http>, ready: oneshot::Sender<()>) {
    let mut ready = Some(ready);
    let mut reopened = http.n_reopened.subscribe();
    let mut parser = Parser::new(http.limit).with_memory(http.memory.clone());
    let mut n_failed = 0;
    let mut delay = ReconnectDelay::new(LONGEST_PAUSE);
    let mut is_first = true;
    loop {
        if reopened.has_changed().unwrap_or_default() {
            reopened.mark_unchanged();
            // A new session has other events.
            parser = Parser::new(http.limit).with_memory(http.memory.clone());
        }
        let session = http.session().clone();
        let Some(get) = http.build_get(parser.last_id()).await else {
            sleep(LONGEST_PAUSE).await;
            continue;
        };
        delay.note_opened();
        let mut received = Received::Nothing;
        match get.send().await {
            Ok(response)
                if response.status().is_success() && is_event_stream(response.headers()) =>
            {
                n_failed = 0;
                if let Some(ready) = ready.take() {
                    ready.send(()).ok();
                }
                // Without event ids, changes may have been missed in between.
                if !is_first && parser.last_id().is_none() {
                    http.relay.stale.mark(&Kind::ALL);
                }
                is_first = false;
                tokio::select! {
                    () = read_events(http, &mut parser, response, &mut received) => {}
                    // New events come on the new session only.
                    _ = reopened.changed() => {
                        reopened.mark_changed();
                        continue;
                    }
                }
            }
            Ok(response) if http.note_redirect(&response) => {}
            // Most servers have no event stream.
            Ok(response) if response.status() == StatusCode::METHOD_NOT_ALLOWED => return,
            Ok(response) if response.status().is_client_error() => {
                // On the first try, any status means that there is no such stream. Later
                // it means that the server forgot the session.
                if is_first || !reopen(http, response, &session).await {
                    return;
                }
            }
            Ok(_) => {}
            Err(error) => {
                n_failed += 1;
                if TRIES <= n_failed {
                    http.relay.mark_gone(&super::failure_without_response(&error).to_string());
                    return;
                }
            }
        }
        parser.interrupt();
        sleep(delay.pause_after_end(received, parser.retry())).await;
    }
}

/// Reopens the session if the server forgot it; returns `false` if it did not.
///
/// Otherwise a client that only listens would get no more notifications.
async fn reopen(http: &Arc<Http>, response: Response, session: &Session) -> bool {
    let status = response.status();
    let body = http.body(response).await.unwrap_or_default();
    if session.id.is_none() || !forgot_session(status, &body) {
        tracing::debug!(target: "upstream", upstream = http.label, %status, "no event stream");
        return false;
    }
    if let Err(failure) = http.reopen(session).await {
        tracing::debug!(target: "upstream", upstream = http.label, %failure, "not opened again");
    }
    true
}

/// Reads one connection to its end. Sets `received` when an event with data comes.
async fn read_events(
    http: &Arc<Http>,
    parser: &mut Parser,
    mut response: Response,
    received: &mut Received,
) {
    loop {
        match parser.fill(response.chunk()).await {
            Ok(true) => {}
            Ok(false) | Err(FillError::Broken(_)) => return,
            Err(FillError::TooLong(error)) => return drop_stream(http, error),
        }
        loop {
            match parser.next_event() {
                Ok(Some(event)) => {
                    received.note(&event.data);
                    http.receive(&event.data, None).await.ok();
                }
                Ok(None) => break,
                Err(error) => return drop_stream(http, error),
            }
        }
    }
}

fn drop_stream(http: &Http, error: EventTooLong) {
    tracing::warn!(target: "upstream", upstream = http.label, %error, "the event stream is dropped");
}
