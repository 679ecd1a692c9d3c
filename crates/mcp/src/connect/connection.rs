//! An open connection to a server: what the upstream and its background tasks
//! share.

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
use super::request::{Payload, Question, RequestMode};
use super::subscriptions::Subscriptions;
use super::transport::Transport;
use crate::level::Level;
use crate::peer::Timeouts;
use crate::revision::{Revision, meta, method};

/// After how many timeouts in a row a server is asked whether it is there.
const TIMEOUTS: u32 = 3;

/// How long it may take to say so.
const SIGN_OF_LIFE: Duration = Duration::from_secs(5);

/// What was agreed when the session was opened.
#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) revision: Revision,
    pub(super) server: Server,
}

/// What the upstream and its background tasks share.
pub(super) struct Connection {
    pub(super) label: String,
    pub(super) transport: Arc<Transport>,
    pub(super) relay: Arc<Relay>,
    pub(super) session: Session,
    /// For whom the session was opened.
    pub(super) client: Arc<Client>,
    pub(super) listing: ArcSwap<Listing>,
    pub(super) lists: ListLimits,
    timeouts: Timeouts,
    pub(super) subscriptions: Subscriptions,
    pub(super) listening: Mutex<Option<Listening>>,
    /// How much an older server was told to log.
    level: Mutex<Option<Level>>,
    /// How many calls in a row got no answer in time.
    n_timeouts: AtomicU32,
}

/// An open stream. Dropped, it is closed, which the server is told.
pub(super) struct Listening(pub(super) AbortHandle);

impl Drop for Listening {
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
            lists: options.lists,
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

    /// Changes the listing. Only the keeper and the opening do.
    pub(super) fn replace(&self, change: impl FnOnce(&mut Listing)) {
        let mut listing = Listing::clone(&self.listing.load());
        change(&mut listing);
        self.listing.store(Arc::new(listing));
    }

    /// Asks something for ourselves.
    pub(super) async fn request_internal(
        &self,
        method: &'static str,
        params: Object,
    ) -> Result<Reply, Failure> {
        let is_modern = self.session.revision.is_modern();
        let params = match (is_modern, params.is_empty()) {
            (true, _) => Some(params::modern(&params, &self.client)),
            (false, true) => None,
            (false, false) => Some(params.to_json()),
        };
        let mode = self.mode(|| headers::plain(method, None));
        let question = Question {
            request_id: self.transport.next_request_id(),
            payload: Payload::Internal { method, params },
            timeouts: self.timeouts,
            mode,
            trace: None,
        };
        self.transport.request(question).await
    }

    pub(super) async fn ask(&self, ask: Ask, context: &Context) -> Result<Reply, Failure> {
        if let Some(level) = wanted_level(&ask) {
            Box::pin(self.log_at(level)).await;
        }
        let request_id = self.transport.next_request_id();
        let mode = self.mode(|| headers::for_ask(&ask, &self.listing.load()));
        let (ask, token) = params::prepare(ask, &context.client, request_id, self.session.revision);
        let (payload, timeouts) = (Payload::Forwarded(ask), self.timeouts_for(context.timeout));
        let turn = self.relay.calls.enter_in_turn(request_id, context, token, timeouts.whole);
        let Some(_place) = turn.await else {
            let reason = "it asks its callers questions, so it serves them one at a time, and calls \
                          of others took too long";
            return Err(Failure::Unavailable { reason: reason.to_owned() });
        };
        let trace = context.trace.clone();
        if let Some(trace) = &trace {
            trace.set_request_id(|| request_id.0.to_string());
        }
        let question = Question { request_id, payload, timeouts, mode, trace };
        let answer = self.transport.request(question).await;
        match answer {
            Err(Failure::Timeout { .. }) => Box::pin(self.note_timeout()).await,
            Ok(_) | Err(_) => self.n_timeouts.store(0, Ordering::Relaxed),
        }
        answer.map(|reply| self.relay.attributed(reply))
    }

    /// After several timeouts in a row, with nothing else under way, looks
    /// whether the server is there at all. One that is not is given up, so that
    /// whoever keeps it can start another.
    async fn note_timeout(&self) {
        let n_timeouts = self.n_timeouts.fetch_add(1, Ordering::Relaxed) + 1;
        if n_timeouts < TIMEOUTS || 1 < self.relay.calls.n_under_way() {
            return;
        }
        let method = match self.session.revision.is_modern() {
            true => method::DISCOVER,
            false => method::PING,
        };
        let is_modern = self.session.revision.is_modern();
        let params = is_modern.then(|| params::modern(&Object::new(), &self.client));
        let question = Question {
            request_id: self.transport.next_request_id(),
            payload: Payload::Internal { method, params },
            timeouts: Timeouts::same(SIGN_OF_LIFE.min(self.timeouts.quiet)),
            mode: self.mode(|| headers::plain(method, None)),
            trace: None,
        };
        if let Err(Failure::Timeout { .. }) = self.transport.request(question).await {
            let reason =
                format!("{n_timeouts} calls in a row and a ping were not answered in time");
            self.relay.gone(&reason);
            self.transport.close(&reason);
        }
    }

    /// Returns how a question is put; its headers are made only where they are
    /// sent.
    fn mode(&self, headers: impl FnOnce() -> Headers) -> RequestMode {
        match (self.session.revision.is_modern(), self.transport.is_http()) {
            (false, _) => RequestMode::InSession,
            (true, true) => RequestMode::Stateless(headers()),
            (true, false) => RequestMode::Stateless(Vec::new()),
        }
    }

    /// Asks who is there now. An older server says so only to who opens a
    /// session; over a pipe there is no other than this one.
    pub(super) async fn rediscover(&self) -> Result<Reply, Failure> {
        match &*self.transport {
            _ if self.session.revision.is_modern() => {
                self.request_internal(method::DISCOVER, Object::new()).await
            }
            Transport::Http(http) => http.greet_on_new_session().await,
            Transport::Pipe(_) => {
                let what = "asking an older server again who it is".to_owned();
                Err(Failure::Unsupported { feature: what })
            }
        }
    }

    /// Passes on how much is to be logged.
    pub(super) async fn set_level(
        &self,
        params: &Object,
        ask: &Ask,
        context: &Context,
    ) -> Result<Reply, Failure> {
        let reply = self.ask(ask.clone(), context).await?;
        if matches!(reply, Reply::Result(_)) {
            *self.level.lock().await = Level::read(params, "level");
        }
        Ok(reply)
    }

    /// Has an older server log at least this much. A modern client says so with
    /// every question, and an older server is told once.
    async fn log_at(&self, level: Level) {
        let logs = self.session.server.capabilities.member("logging").is_some();
        if self.session.revision.is_modern() || !logs {
            return;
        }
        let mut told = self.level.lock().await;
        if told.is_none_or(|told| level < told) {
            *told = Some(level);
            self.tell_level(level).await;
        }
    }

    /// Tells a new session how much to log.
    pub(super) async fn log_again(&self) {
        if let Some(level) = *self.level.lock().await {
            self.tell_level(level).await;
        }
    }

    async fn tell_level(&self, level: Level) {
        let params = Object::from_iter([("level".to_owned(), level.to_json())]);
        let why = match self.request_internal(method::SET_LEVEL, params).await {
            Ok(Reply::Result(_)) => return,
            Ok(Reply::Error(error)) => error.message,
            Err(failure) => failure.to_string(),
        };
        tracing::debug!(target: "upstream", upstream = self.label, "it does not log as told: {why}");
    }

    /// The caller's limit counts in all; ours counts without progress.
    fn timeouts_for(&self, caller: Option<Duration>) -> Timeouts {
        match caller {
            None => self.timeouts,
            Some(caller) => Timeouts {
                quiet: self.timeouts.quiet.min(caller),
                whole: self.timeouts.whole.min(caller),
            },
        }
    }
}

/// Returns how much the log of one question is to hold.
fn wanted_level(ask: &Ask) -> Option<Level> {
    let about = ask.other_params().get("_meta")?;
    if !about.mentions(meta::LOG_LEVEL) {
        return None;
    }
    Level::read(&Object::parse(about).ok()?, meta::LOG_LEVEL)
}
