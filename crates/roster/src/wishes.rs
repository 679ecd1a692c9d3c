//! What clients want of upstreams for longer than one question.
//!
//! A session with an upstream ends for many reasons, and another takes its
//! place: it died, it was stopped because nobody called, its settings changed.
//! What clients watch and how much they want logged is kept here, once for a
//! hall, and asked again of every session that is opened. Upstreams log as much
//! as the most curious client wants, and less again when that one has left.

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

/// How much can be logged, from everything to next to nothing.
const LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// How many watched resources are kept in mind.
const MOST: usize = 10_000;

/// How long a new session may take to be told all of it.
const TELLING: Duration = Duration::from_secs(5);

#[derive(Default)]
pub(crate) struct Wishes {
    state: Mutex<State>,
    /// Somebody said how much is to be logged.
    curious: Notify,
}

#[derive(Default)]
struct State {
    /// By session.
    levels: BTreeMap<Arc<str>, Curious>,
    watched: BTreeMap<Watched, Wish>,
}

/// Whose upstream, which client, and what.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Watched {
    label: String,
    session: Arc<str>,
    uri: String,
}

/// Who wants something logged.
struct Curious {
    /// Its place among [`LEVELS`].
    rank: usize,
    wish: Wish,
    /// Gone with the session: only its questions hold it as well.
    client: Weak<Client>,
}

/// A question to be asked again.
#[derive(Clone)]
struct Wish {
    ask: Ask,
    context: Context,
}

impl Wish {
    fn new(ask: Ask, context: &Context) -> Wish {
        let client_handle = Arc::new(NoClient);
        // The same client, but not held for longer than its session lasts.
        let client = Arc::new(Client::clone(&context.client));
        Wish { ask, context: Context { client_handle, client, timeout: None, ..context.clone() } }
    }
}

/// What a question changes for the time after it.
pub(crate) enum Lasting {
    No,
    Watch,
    Unwatch,
}

impl Lasting {
    pub(crate) fn of(ask: &Ask) -> Lasting {
        match ask {
            Ask::Other { method, .. } if method == SUBSCRIBE => Lasting::Watch,
            Ask::Other { method, .. } if method == UNSUBSCRIBE => Lasting::Unwatch,
            Ask::Call(_) | Ask::Read(_) | Ask::Prompt(_) | Ask::Complete(_) | Ask::Other { .. } => {
                Lasting::No
            }
        }
    }
}

impl Wishes {
    /// How much a session wants logged, by every upstream.
    pub(crate) fn log(&self, ask: &Ask, context: &Context) {
        let level = ask.rest().get("level").and_then(Json::text);
        let rank = LEVELS.iter().position(|known| Some(*known) == level.as_deref());
        let Some(rank) = rank else { return };
        let (wish, client) = (Wish::new(ask.clone(), context), Arc::downgrade(&context.client));
        let mut state = self.lock();
        state.forget_who_left();
        state.levels.insert(Arc::clone(&context.session), Curious { rank, wish, client });
        self.curious.notify_one();
    }

    /// What upstreams are told when one session says how much it wants logged:
    /// what all of them want together. Everything else is told as it is.
    pub(crate) fn together(&self, ask: Ask) -> Ask {
        match &ask {
            Ask::Other { method, .. } if method == SET_LEVEL => {
                self.lock().most_curious().map_or(ask, |wish| wish.ask)
            }
            Ask::Call(_) | Ask::Read(_) | Ask::Prompt(_) | Ask::Complete(_) | Ask::Other { .. } => {
                ask
            }
        }
    }

    /// Waits until somebody wants something logged.
    pub(crate) async fn any_curious(&self) {
        while self.lock().levels.is_empty() {
            self.curious.notified().await;
        }
    }

    /// Forgets who left, and says what to tell upstreams if that means that
    /// less is to be logged. With nobody left nobody hears what they log.
    pub(crate) fn quieter(&self) -> Option<(Ask, Context)> {
        let mut state = self.lock();
        let before = state.lowest();
        state.forget_who_left();
        let Wish { ask, context } = state.most_curious().filter(|_| state.lowest() != before)?;
        Some((ask, context))
    }

    pub(crate) fn watch(&self, label: &str, ask: Ask, context: &Context) {
        let Some(watched) = Watched::of(label, &ask, context) else { return };
        let mut state = self.lock();
        if state.watched.len() < MOST {
            state.watched.insert(watched, Wish::new(ask, context));
        }
    }

    pub(crate) fn unwatch(&self, label: &str, ask: &Ask, context: &Context) {
        if let Some(watched) = Watched::of(label, ask, context) {
            self.lock().watched.remove(&watched);
        }
    }

    /// Whether somebody watches something of an upstream.
    pub(crate) fn any(&self, label: &str) -> bool {
        self.lock().watched.keys().any(|watched| watched.label == label)
    }

    /// Asks a new session for all that is wanted. What it refuses to watch is
    /// not asked for again.
    pub(crate) async fn ask_again(&self, label: &str, provider: &Arc<dyn Provider>) {
        let all = self.of(label, provider);
        let asked = all.into_iter().map(|(watched, wish)| async move {
            let why = match provider.ask(wish.ask, &wish.context).await {
                Ok(Reply::Result(_)) => return,
                Ok(Reply::Error(error)) => error.message,
                Err(failure) => failure.to_string(),
            };
            if let Some(watched) = watched {
                tracing::warn!(upstream = label, uri = watched.uri, "no longer watched: {why}");
                self.lock().watched.remove(&watched);
            }
        });
        if tokio::time::timeout(TELLING, join_all(asked)).await.is_err() {
            tracing::warn!(upstream = label, "what is watched there may not be any more");
        }
    }

    fn of(&self, label: &str, provider: &Arc<dyn Provider>) -> Vec<(Option<Watched>, Wish)> {
        let logs = provider.listing().server.capabilities.member("logging").is_some();
        let state = self.lock();
        let level = state.most_curious().filter(|_| logs).map(|wish| (None, wish)).into_iter();
        let watched = state.watched.iter().filter(|(watched, _)| watched.label == label);
        let watched = watched.map(|(watched, wish)| (Some(watched.clone()), wish.clone()));
        level.chain(watched).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl State {
    fn forget_who_left(&mut self) {
        self.levels.retain(|_, curious| 0 < curious.client.strong_count());
    }

    fn lowest(&self) -> Option<usize> {
        self.levels.values().map(|curious| curious.rank).min()
    }

    /// The wish of a session that wants the most logged.
    fn most_curious(&self) -> Option<Wish> {
        let most = self.levels.values().min_by_key(|curious| curious.rank);
        most.map(|curious| curious.wish.clone())
    }
}

impl Watched {
    fn of(label: &str, ask: &Ask, context: &Context) -> Option<Watched> {
        let uri = ask.rest().get("uri").and_then(Json::text)?;
        Some(Watched { label: label.to_owned(), session: Arc::clone(&context.session), uri })
    }
}
