//! An open connection to a server, shared by the upstream and its background tasks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::Mutex;
use tokio::task::AbortHandle;
use tool::{Ask, Client, Context, Failure, Listing, Object, Reply, Server};

use super::headers::{self, Headers};
use super::options::{ListLimits, Options};
use super::params;
use super::relay::Relay;
use super::request::{OutgoingRequest, Payload, RequestMode};
use super::subscriptions::Subscriptions;
use super::transport::Transport;
use crate::level::Level;
use crate::peer::Timeouts;
use crate::revision::{Revision, meta, method};

/// After this many timeouts in a row the server is pinged.
const TIMEOUTS_BEFORE_PING: u32 = 3;

/// How long the server may take to answer that ping.
const PING_TIMEOUT: Duration = Duration::from_secs(5);

/// The result of opening the session.
#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) revision: Revision,
    pub(super) server: Server,
}

/// An open connection.
pub(super) struct Connection {
    pub(super) label: String,
    pub(super) transport: Arc<Transport>,
    pub(super) relay: Arc<Relay>,
    pub(super) session: Session,
    /// The client that the session was opened for.
    pub(super) client: Arc<Client>,
    pub(super) listing: ArcSwap<Listing>,
    pub(super) list_limits: ListLimits,
    timeouts: Timeouts,
    pub(super) subscriptions: Subscriptions,
    pub(super) listening: Mutex<Option<ListenTask>>,
    /// The log level that was set at a legacy server.
    level: Mutex<Option<Level>>,
    /// How many calls in a row timed out.
    n_timeouts: AtomicU32,
}

/// The task of an open `subscriptions/listen`. Dropping it closes the stream.
pub(super) struct ListenTask(pub(super) AbortHandle);

impl Drop for ListenTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Connection {
    pub(super) fn new(
        transport: Arc<Transport>,
        relay: Arc<Relay>,
        session: Session,
        client: Arc<Client>,
        options: &Options,
    ) -> Connection {
        let listing = Listing { server: session.server.clone(), ..Listing::default() };
        Connection {
            label: options.label.clone(),
            transport,
            relay,
            session,
            client,
            listing: ArcSwap::from_pointee(listing),
            list_limits: options.list_limits,
            timeouts: options.timeouts,
            subscriptions: Subscriptions::default(),
            listening: Mutex::new(None),
            level: Mutex::new(None),
            n_timeouts: AtomicU32::new(0),
        }
    }

    pub(super) fn is_modern_http(&self) -> bool {
        self.session.revision.is_modern() && self.transport.is_http()
    }

    /// Replaces the listing by a changed copy. Only the opening and the refresh task call it.
    pub(super) fn update_listing(&self, change: impl FnOnce(&mut Listing)) {
        let mut listing = Listing::clone(&self.listing.load());
        change(&mut listing);
        self.listing.store(Arc::new(listing));
    }

    /// Sends a request of our own, not on behalf of a client's call.
    pub(super) async fn request_internal(
        &self,
        method: &'static str,
        params: Object,
    ) -> Result<Reply, Failure> {
        let is_modern = self.session.revision.is_modern();
        let params = match (is_modern, params.is_empty()) {
            (true, _) => Some(params::with_modern_meta(&params, &self.client)),
            (false, true) => None,
            (false, false) => Some(params.to_json()),
        };
        let mode = self.request_mode(|| headers::for_method(method, None));
        let request = OutgoingRequest {
            request_id: self.transport.next_request_id(),
            payload: Payload::Internal { method, params },
            timeouts: self.timeouts,
            mode,
            trace: None,
        };
        self.transport.request(request).await
    }

    /// Sends a client's request to the server.
    pub(super) async fn ask(&self, ask: Ask, context: &Context) -> Result<Reply, Failure> {
        if let Some(level) = log_level_of(&ask) {
            Box::pin(self.ensure_log_level(level)).await;
        }
        let request_id = self.transport.next_request_id();
        let mode = self.request_mode(|| headers::for_ask(&ask, &self.listing.load()));
        let (ask, token) =
            params::rewrite_meta(ask, &context.client, request_id, self.session.revision);
        let (payload, timeouts) = (Payload::Forwarded(ask), self.timeouts_for(context.timeout));
        let turn = self.relay.calls.enter_in_turn(request_id, context, token, timeouts.whole);
        let Some(_call_guard) = turn.await else {
            let reason = "it asks its callers questions, so it serves them one at a time, and calls \
                          of others took too long";
            return Err(Failure::Unavailable { reason: reason.to_owned() });
        };
        let trace = context.trace.clone();
        if let Some(trace) = &trace {
            trace.set_request_id(|| request_id.0.to_string());
        }
        let request = OutgoingRequest { request_id, payload, timeouts, mode, trace };
        let answer = self.transport.request(request).await;
        match answer {
            Err(Failure::Timeout { .. }) => Box::pin(self.note_timeout()).await,
            Ok(_) | Err(_) => self.n_timeouts.store(0, Ordering::Relaxed),
        }
        answer.map(|reply| self.relay.attribute_reply(reply))
    }

    /// Counts a timeout. After several in a row, with no other call in flight, pings the
    /// server and closes the connection if that times out too.
    async fn note_timeout(&self) {
        let n_timeouts = self.n_timeouts.fetch_add(1, Ordering::Relaxed) + 1;
        if n_timeouts < TIMEOUTS_BEFORE_PING || 1 < self.relay.calls.n_in_flight() {
            return;
        }
        let method = match self.session.revision.is_modern() {
            true => method::DISCOVER,
            false => method::PING,
        };
        let is_modern = self.session.revision.is_modern();
        let params = is_modern.then(|| params::with_modern_meta(&Object::new(), &self.client));
        let request = OutgoingRequest {
            request_id: self.transport.next_request_id(),
            payload: Payload::Internal { method, params },
            timeouts: Timeouts::same(PING_TIMEOUT.min(self.timeouts.quiet)),
            mode: self.request_mode(|| headers::for_method(method, None)),
            trace: None,
        };
        if let Err(Failure::Timeout { .. }) = self.transport.request(request).await {
            let reason =
                format!("{n_timeouts} calls in a row and a ping were not answered in time");
            self.relay.mark_gone(&reason);
            self.transport.close(&reason);
        }
    }

    /// Returns the mode for a request; `headers` is only called when they are sent.
    fn request_mode(&self, headers: impl FnOnce() -> Headers) -> RequestMode {
        match (self.session.revision.is_modern(), self.transport.is_http()) {
            (false, _) => RequestMode::InSession,
            (true, true) => RequestMode::Stateless(headers()),
            (true, false) => RequestMode::Stateless(Vec::new()),
        }
    }

    /// Asks the server again for its identity and capabilities. A legacy server tells them
    /// only on a new session, which a pipe cannot open.
    pub(super) async fn rediscover(&self) -> Result<Reply, Failure> {
        match &*self.transport {
            _ if self.session.revision.is_modern() => {
                self.request_internal(method::DISCOVER, Object::new()).await
            }
            Transport::Http(http) => http.initialize_on_new_session().await,
            Transport::Pipe(_) => {
                let what = "asking an older server again who it is".to_owned();
                Err(Failure::Unsupported { feature: what })
            }
        }
    }

    /// Forwards a client's `logging/setLevel`, and remembers the level.
    pub(super) async fn set_level(
        &self,
        params: &Object,
        ask: &Ask,
        context: &Context,
    ) -> Result<Reply, Failure> {
        let reply = self.ask(ask.clone(), context).await?;
        if matches!(reply, Reply::Result(_)) {
            *self.level.lock().await = Level::from_params(params, "level");
        }
        Ok(reply)
    }

    /// Makes a legacy server log at least at this level. Modern clients name a level with
    /// every request; a legacy server is told once.
    async fn ensure_log_level(&self, level: Level) {
        let logs = self.session.server.capabilities.member("logging").is_some();
        if self.session.revision.is_modern() || !logs {
            return;
        }
        let mut requested = self.level.lock().await;
        if requested.is_none_or(|requested| level < requested) {
            *requested = Some(level);
            self.send_log_level(level).await;
        }
    }

    /// Sets the log level again after the session was reopened.
    pub(super) async fn restore_log_level(&self) {
        if let Some(level) = *self.level.lock().await {
            self.send_log_level(level).await;
        }
    }

    async fn send_log_level(&self, level: Level) {
        let params = Object::from_iter([("level".to_owned(), level.to_json())]);
        let why = match self.request_internal(method::SET_LEVEL, params).await {
            Ok(Reply::Result(_)) => return,
            Ok(Reply::Error(error)) => error.message,
            Err(failure) => failure.to_string(),
        };
        tracing::debug!(target: "upstream", upstream = self.label, "it does not log as told: {why}");
    }

    /// Returns our timeouts, each cut to the caller's limit.
    fn timeouts_for(&self, caller_limit: Option<Duration>) -> Timeouts {
        match caller_limit {
            None => self.timeouts,
            Some(caller) => Timeouts {
                quiet: self.timeouts.quiet.min(caller),
                whole: self.timeouts.whole.min(caller),
            },
        }
    }
}

/// Returns the log level that a modern client names in `_meta` of a request.
fn log_level_of(ask: &Ask) -> Option<Level> {
    let about = ask.other_params().get("_meta")?;
    if !about.mentions(meta::LOG_LEVEL) {
        return None;
    }
    Level::from_params(&Object::parse(about).ok()?, meta::LOG_LEVEL)
}
