//! Remembers the resource subscriptions and log levels that clients requested of
//! upstreams, and requests them again of every new session.
//!
//! A session with an upstream may die, be stopped when idle, or be replaced, so they are
//! remembered here, once per pool. Upstreams log at the lowest level that a client wants,
//! and at a higher one again when that client has left.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::future::join_all;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tool::{Ask, Client, Context, Json, NoClient, Provider, Reply};

const SET_LEVEL: &str = "logging/setLevel";
const SUBSCRIBE: &str = "resources/subscribe";
const UNSUBSCRIBE: &str = "resources/unsubscribe";

/// MCP's log levels, from the most verbose to the least.
const LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// How many subscriptions are remembered.
const MAX_SUBSCRIPTIONS: usize = 10_000;

/// How long a new session may take to accept all requests.
const REPLAY_TIMEOUT: Duration = Duration::from_secs(5);

/// The subscriptions and log levels of all clients of a pool.
#[derive(Default)]
pub(crate) struct Subscriptions {
    state: Mutex<State>,
    /// Notified when a session sets its log level.
    level_set: Notify,
}

#[derive(Default)]
struct State {
    /// The log level of each session.
    levels: BTreeMap<Arc<str>, WantedLevel>,
    subscribed: BTreeMap<Subscription, ReplayedAsk>,
}

/// A resource of an upstream that a session is subscribed to.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Subscription {
    label: String,
    session: Arc<str>,
    uri: String,
}

/// The log level of one session.
struct WantedLevel {
    /// Its index in [`LEVELS`].
    rank: usize,
    request: ReplayedAsk,
    /// Gone when the session has ended: only the session and its requests hold it.
    client: Weak<Client>,
}

/// A request that is repeated for every new session.
#[derive(Clone)]
struct ReplayedAsk {
    ask: Ask,
    context: Context,
}

impl ReplayedAsk {
    fn new(ask: Ask, context: &Context) -> ReplayedAsk {
        let client_handle = Arc::new(NoClient);
        // A copy, so that the session's own client is dropped when it ends.
        let client = Arc::new(Client::clone(&context.client));
        ReplayedAsk {
            ask,
            context: Context { client_handle, client, timeout: None, ..context.clone() },
        }
    }
}

/// What a request changes about the subscriptions.
pub(crate) enum SubscriptionChange {
    None,
    Subscribe,
    Unsubscribe,
}

impl SubscriptionChange {
    pub(crate) fn from_ask(ask: &Ask) -> SubscriptionChange {
        match ask {
            Ask::Other { method, .. } if method == SUBSCRIBE => SubscriptionChange::Subscribe,
            Ask::Other { method, .. } if method == UNSUBSCRIBE => SubscriptionChange::Unsubscribe,
            Ask::Call(_)
            | Ask::ReadResource(_)
            | Ask::Prompt(_)
            | Ask::Complete(_)
            | Ask::Other { .. } => SubscriptionChange::None,
        }
    }
}

impl Subscriptions {
    /// Remembers the log level that a session wants of every upstream.
    pub(crate) fn set_log_level(&self, ask: &Ask, context: &Context) {
        let level = ask.other_params().get("level").and_then(Json::string_value);
        let rank = LEVELS.iter().position(|known| Some(*known) == level.as_deref());
        let Some(rank) = rank else { return };
        let (request, client) =
            (ReplayedAsk::new(ask.clone(), context), Arc::downgrade(&context.client));
        let mut state = self.lock();
        state.forget_ended_sessions();
        state.levels.insert(Arc::clone(&context.session), WantedLevel { rank, request, client });
        self.level_set.notify_one();
    }

    /// Replaces a session's `logging/setLevel` by one with the lowest level that any
    /// session wants. Returns any other request unchanged.
    pub(crate) fn with_common_level(&self, ask: Ask) -> Ask {
        match &ask {
            Ask::Other { method, .. } if method == SET_LEVEL => {
                self.lock().most_verbose().map_or(ask, |request| request.ask)
            }
            Ask::Call(_)
            | Ask::ReadResource(_)
            | Ask::Prompt(_)
            | Ask::Complete(_)
            | Ask::Other { .. } => ask,
        }
    }

    /// Waits until some session has set a log level.
    pub(crate) async fn any_log_level(&self) {
        while self.lock().levels.is_empty() {
            self.level_set.notified().await;
        }
    }

    /// Forgets the sessions that ended, and returns the request that raises the
    /// upstreams' log level, if it can be raised. With no session left nobody
    /// reads what they log, so nothing is sent.
    pub(crate) fn raised_log_level(&self) -> Option<(Ask, Context)> {
        let mut state = self.lock();
        let before = state.lowest();
        state.forget_ended_sessions();
        let ReplayedAsk { ask, context } =
            state.most_verbose().filter(|_| state.lowest() != before)?;
        Some((ask, context))
    }

    pub(crate) fn add(&self, label: &str, ask: Ask, context: &Context) {
        let Some(subscription) = Subscription::from_ask(label, &ask, context) else { return };
        let mut state = self.lock();
        if state.subscribed.len() < MAX_SUBSCRIPTIONS {
            state.subscribed.insert(subscription, ReplayedAsk::new(ask, context));
        }
    }

    pub(crate) fn remove(&self, label: &str, ask: &Ask, context: &Context) {
        if let Some(subscription) = Subscription::from_ask(label, ask, context) {
            self.lock().subscribed.remove(&subscription);
        }
    }

    /// Returns whether a client is subscribed to a resource of an upstream.
    pub(crate) fn has_any(&self, label: &str) -> bool {
        self.lock().subscribed.keys().any(|subscription| subscription.label == label)
    }

    /// Repeats all requests for a new session. A subscription that it refuses is dropped.
    pub(crate) async fn replay(&self, label: &str, provider: &Arc<dyn Provider>) {
        let all = self.requests(label, provider);
        let asked = all.into_iter().map(|(subscription, request)| async move {
            let why = match provider.ask(request.ask, &request.context).await {
                Ok(Reply::Result(_)) => return,
                Ok(Reply::Error(error)) => error.message,
                Err(failure) => failure.to_string(),
            };
            if let Some(subscription) = subscription {
                let uri = &subscription.uri;
                tracing::warn!(upstream = label, uri, "the subscription is lost: {why}");
                self.lock().subscribed.remove(&subscription);
            }
        });
        if tokio::time::timeout(REPLAY_TIMEOUT, join_all(asked)).await.is_err() {
            tracing::warn!(
                upstream = label,
                "subscriptions may be lost: it did not accept them in time"
            );
        }
    }

    /// Returns the requests for a new session, each with its subscription if it is one.
    fn requests(
        &self,
        label: &str,
        provider: &Arc<dyn Provider>,
    ) -> Vec<(Option<Subscription>, ReplayedAsk)> {
        let logs = provider.listing().server.capabilities.member("logging").is_some();
        let state = self.lock();
        let level =
            state.most_verbose().filter(|_| logs).map(|request| (None, request)).into_iter();
        let here = state.subscribed.iter().filter(|(subscription, _)| subscription.label == label);
        let here =
            here.map(|(subscription, request)| (Some(subscription.clone()), request.clone()));
        level.chain(here).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl State {
    fn forget_ended_sessions(&mut self) {
        self.levels.retain(|_, level| 0 < level.client.strong_count());
    }

    fn lowest(&self) -> Option<usize> {
        self.levels.values().map(|level| level.rank).min()
    }

    /// Returns the request of the session with the lowest log level.
    fn most_verbose(&self) -> Option<ReplayedAsk> {
        let most = self.levels.values().min_by_key(|level| level.rank);
        most.map(|level| level.request.clone())
    }
}

impl Subscription {
    fn from_ask(label: &str, ask: &Ask, context: &Context) -> Option<Subscription> {
        let uri = ask.other_params().get("uri").and_then(Json::string_value)?;
        Some(Subscription { label: label.to_owned(), session: Arc::clone(&context.session), uri })
    }
}
