//! What clients want of upstreams for longer than one question.
//!
//! A session with an upstream ends for many reasons, and another takes its
//! place: it died, it was stopped because nobody called, its settings changed.
//! What clients watch and how much they want logged is kept here, once for a
//! hall, and asked again of every session that is opened.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures::future::join_all;
use tool::{Ask, Context, Deaf, Json, Provider, Reply};

const SUBSCRIBE: &str = "resources/subscribe";
const UNSUBSCRIBE: &str = "resources/unsubscribe";

/// How many watched resources are kept in mind.
const MOST: usize = 10_000;

/// How long a new session may take to be told all of it.
const TELLING: Duration = Duration::from_secs(5);

#[derive(Default)]
pub(super) struct Wishes(Mutex<State>);

#[derive(Default)]
struct State {
    level: Option<Wish>,
    watched: BTreeMap<Watched, Wish>,
}

/// Whose upstream, which client, and what.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Watched {
    label: String,
    session: Arc<str>,
    uri: String,
}

/// A question to be asked again.
#[derive(Clone)]
struct Wish {
    ask: Ask,
    context: Context,
}

impl Wish {
    fn new(ask: Ask, context: &Context) -> Wish {
        let back = Arc::new(Deaf);
        Wish { ask, context: Context { back, patience: None, ..context.clone() } }
    }
}

/// What a question changes for the time after it.
pub(super) enum Lasting {
    No,
    Watch,
    Unwatch,
}

impl Lasting {
    pub(super) fn of(ask: &Ask) -> Lasting {
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
    /// How much everybody wants logged, by every upstream.
    pub(super) fn log(&self, ask: &Ask, context: &Context) {
        self.lock().level = Some(Wish::new(ask.clone(), context));
    }

    pub(super) fn watch(&self, label: &str, ask: Ask, context: &Context) {
        let Some(watched) = Watched::of(label, &ask, context) else { return };
        let mut state = self.lock();
        if state.watched.len() < MOST {
            state.watched.insert(watched, Wish::new(ask, context));
        }
    }

    pub(super) fn unwatch(&self, label: &str, ask: &Ask, context: &Context) {
        if let Some(watched) = Watched::of(label, ask, context) {
            self.lock().watched.remove(&watched);
        }
    }

    /// Whether somebody watches something of an upstream.
    pub(super) fn any(&self, label: &str) -> bool {
        self.lock().watched.keys().any(|watched| watched.label == label)
    }

    /// Asks a new session for all that is wanted. What it refuses to watch is
    /// not asked for again.
    pub(super) async fn ask_again(&self, label: &str, provider: &Arc<dyn Provider>) {
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
        let level = state.level.iter().filter(|_| logs).map(|wish| (None, wish.clone()));
        let watched = state.watched.iter().filter(|(watched, _)| watched.label == label);
        let watched = watched.map(|(watched, wish)| (Some(watched.clone()), wish.clone()));
        level.chain(watched).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("nothing panics while it holds this")
    }
}

impl Watched {
    fn of(label: &str, ask: &Ask, context: &Context) -> Option<Watched> {
        let uri = ask.rest().get("uri").and_then(Json::text)?;
        Some(Watched { label: label.to_owned(), session: Arc::clone(&context.session), uri })
    }
}
