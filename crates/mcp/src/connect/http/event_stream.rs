//! The standing event stream of a session, for messages that belong to no request.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use reqwest::Response;
use tokio::sync::oneshot;
use tokio::time::sleep;
use tool::Kind;

use super::answer::is_stream;
use super::reconnect::{Received, ReconnectDelay};
use super::{Http, Session, forgot_session};
use crate::connect::sse::Parser;
use crate::revision::Revision;

const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// How often in a row a server may not be there before it is gone.
const TRIES: u32 = 6;

impl Http {
    /// Starts to listen to what belongs to no question, where that is a thing,
    /// and says when somebody listens, or never will.
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

/// Listens to the end of the upstream, or until the server has no such stream.
///
/// `ready` is told when the first connection stands; it is dropped when there
/// will be none.
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
    let mut parser = Parser::new(http.limit).within(http.memory.clone());
    let mut n_failed = 0;
    let mut delay = ReconnectDelay::within(LONGEST_PAUSE);
    let mut is_first = true;
    loop {
        if reopened.has_changed().unwrap_or_default() {
            reopened.mark_unchanged();
            // Another session has other events.
            parser = Parser::new(http.limit).within(http.memory.clone());
        }
        let session = http.session().clone();
        let Some(get) = http.get(parser.last_id()).await else {
            sleep(LONGEST_PAUSE).await;
            continue;
        };
        delay.open();
        let mut received = Received::Nothing;
        match get.send().await {
            Ok(response) if response.status().is_success() && is_stream(response.headers()) => {
                n_failed = 0;
                if let Some(ready) = ready.take() {
                    ready.send(()).ok();
                }
                // Without ids nobody can say what was missed in between.
                if !is_first && parser.last_id().is_none() {
                    http.relay.stale.mark(&Kind::ALL);
                }
                is_first = false;
                tokio::select! {
                    () = read(http, &mut parser, response, &mut received) => {}
                    // What is told from now on is told on the new session.
                    _ = reopened.changed() => {
                        reopened.mark_changed();
                        continue;
                    }
                }
            }
            Ok(response) if http.note_move(&response) => {}
            // Most servers have nothing to say here, and say so.
            Ok(response) if response.status() == StatusCode::METHOD_NOT_ALLOWED => return,
            Ok(response) if response.status().is_client_error() => {
                // A server that never had such a stream may say so with any
                // status; one that had forgot the session.
                if is_first || !reopen(http, response, &session).await {
                    return;
                }
            }
            Ok(_) => {}
            Err(error) => {
                n_failed += 1;
                if TRIES <= n_failed {
                    http.relay.gone(&super::unreachable(&error).to_string());
                    return;
                }
            }
        }
        parser.interrupt();
        sleep(delay.ended(received, parser.retry())).await;
    }
}

/// Opens the session again if it was forgotten; `false` when it was not.
///
/// Who only listens would otherwise never hear of anything again.
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

/// Reads one connection to its end.
async fn read(
    http: &Arc<Http>,
    parser: &mut Parser,
    mut response: Response,
    received: &mut Received,
) {
    while let Ok(Some(chunk)) = response.chunk().await {
        parser.push(&chunk);
        loop {
            match parser.next_event() {
                Ok(Some(event)) => {
                    received.note(&event.data);
                    http.hear(&event.data, None).await.ok();
                }
                Ok(None) => break,
                Err(error) => {
                    tracing::warn!(target: "upstream", upstream = http.label, %error, "the event stream is dropped");
                    return;
                }
            }
        }
    }
}
