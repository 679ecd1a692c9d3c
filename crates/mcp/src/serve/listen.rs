//! `subscriptions/listen`: notifies a client of changes.
//!
//! The first message acknowledges what will be told; every message carries the
//! id of the request, because on a pipe many listeners share one stream. The
//! listening ends when the client stops it, by dropping this, or when the
//! provider is gone.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Task, Poll, ready};

use bytes::Bytes;
use futures::stream::{BoxStream, Stream};
use tool::{Context, Event, Json, Kind, Listing, Notification, Object, Provider, Reply, RpcError};

use super::caller::{CallerKey, Counted, PerCaller};
use super::session::{changed, is_below};
use super::{adapt, discovery, subscriptions};
use crate::message;
use crate::revision::{meta, method};

/// A client that listens. A stream of notifications, as written on the wire.
pub(crate) struct SubscriptionStream {
    id: Json,
    filter: Filter,
    acknowledged: bool,
    events: BoxStream<'static, Event>,
    provider: Arc<dyn Provider>,
    _subscriptions: Subscriptions,
}

/// What a listener wants to hear.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Filter {
    tools: bool,
    prompts: bool,
    resources: bool,
    uris: BTreeSet<String>,
}

/// The resources that a listener subscribed to, given up when it goes.
struct Subscriptions {
    watcher: Watcher,
    uris: BTreeMap<String, Counted>,
}

/// In whose name a listener subscribes, and what counts its subscriptions.
pub(crate) struct Watcher {
    pub(crate) provider: Arc<dyn Provider>,
    pub(crate) context: Context,
    pub(crate) key: CallerKey,
    pub(crate) watched: Arc<PerCaller>,
}

impl SubscriptionStream {
    /// Opens the stream, with all of `wanted` that the provider can tell.
    pub(crate) async fn open(
        watcher: Watcher,
        wanted: Option<&Json>,
        id: &Json,
    ) -> Result<SubscriptionStream, RpcError> {
        let provider = Arc::clone(&watcher.provider);
        // Before anything is promised, so that nothing is missed.
        let events = provider.events();
        let wanted = wanted.and_then(|wanted| Object::parse(wanted).ok()).unwrap_or_default();
        let mut filter = Filter::read(&wanted, &provider.listing());
        let uris = std::mem::take(&mut filter.uris);
        if subscriptions::PER_SESSION < uris.len() {
            return Err(subscriptions::too_many());
        }
        let mut watched = Subscriptions { watcher, uris: BTreeMap::new() };
        for uri in uris {
            if watched.add(&uri).await? {
                filter.uris.insert(uri);
            }
        }
        let id = id.clone();
        let acknowledged = false;
        Ok(SubscriptionStream {
            id,
            filter,
            acknowledged,
            events,
            provider,
            _subscriptions: watched,
        })
    }

    /// The answer to the request, when there is nothing more to hear.
    pub(crate) fn final_reply(&self) -> Reply {
        let mut about = Object::new();
        about.push(meta::SUBSCRIPTION_ID, self.id.clone());
        let mut result = Object::new();
        result.push("resultType", Json::encode("complete"));
        result.push("_meta", about.to_json());
        adapt::modern(method::LISTEN, Reply::Result(result.to_json()), &self.provider.listing())
    }

    fn write(&self, note: Notification) -> Bytes {
        let mut params = note.params;
        let about = params.get("_meta").and_then(|about| Object::parse(about).ok());
        let mut about = about.unwrap_or_default();
        about.set(meta::SUBSCRIPTION_ID, self.id.clone());
        params.set("_meta", about.to_json());
        let mut text = String::new();
        message::write_notification(&mut text, &note.method, Some(&params.to_json()));
        text.into()
    }
}

impl Stream for SubscriptionStream {
    type Item = Bytes;

    fn poll_next(mut self: Pin<&mut Self>, task: &mut Task<'_>) -> Poll<Option<Bytes>> {
        if !self.acknowledged {
            self.acknowledged = true;
            let params = Object::from_iter([("notifications".to_owned(), self.filter.to_json())]);
            let note = Notification { method: method::ACKNOWLEDGED.to_owned(), params };
            return Poll::Ready(Some(self.write(note)));
        }
        loop {
            let Some(event) = ready!(self.events.as_mut().poll_next(task)) else {
                return Poll::Ready(None);
            };
            if let Some(note) = self.filter.news(event) {
                return Poll::Ready(Some(self.write(note)));
            }
        }
    }
}

impl Filter {
    /// Returns what was asked for, as far as the provider can tell.
    fn read(wanted: &Object, listing: &Listing) -> Filter {
        let announced = discovery::capabilities(listing);
        let tells = |capability: &str, key: &str| {
            let capability = announced.member(capability);
            capability.and_then(|capability| capability.member_as::<bool>(key)).unwrap_or(false)
        };
        let wants = |key: &str| wanted.get(key).is_some_and(|value| value.as_str() == "true");
        let uris = wanted.get("resourceSubscriptions").and_then(|uris| uris.parse_as().ok());
        Filter {
            tools: wants("toolsListChanged") && tells("tools", "listChanged"),
            prompts: wants("promptsListChanged") && tells("prompts", "listChanged"),
            resources: wants("resourcesListChanged") && tells("resources", "listChanged"),
            uris: uris.filter(|_| tells("resources", "subscribe")).unwrap_or_default(),
        }
    }

    fn to_json(&self) -> Json {
        let mut filter = Object::new();
        for (key, wanted) in [
            ("toolsListChanged", self.tools),
            ("promptsListChanged", self.prompts),
            ("resourcesListChanged", self.resources),
        ] {
            if wanted {
                filter.push(key, Json::encode(&true));
            }
        }
        if !self.uris.is_empty() {
            filter.push("resourceSubscriptions", Json::encode(&self.uris));
        }
        filter.to_json()
    }

    /// Returns what the listener is told of something that happened, if anything.
    fn news(&self, event: Event) -> Option<Notification> {
        match event {
            Event::Changed(kind) => {
                let wants = match kind {
                    Kind::Tools => self.tools,
                    Kind::Prompts => self.prompts,
                    Kind::Resources | Kind::Templates => self.resources,
                };
                wants.then(|| Notification {
                    method: changed(kind).to_owned(),
                    params: Object::new(),
                })
            }
            Event::Updated { uri, notification: note } => {
                let wants = |wanted: &String| uri == *wanted || is_below(&uri, wanted);
                self.uris.iter().any(wants).then_some(note)
            }
            // Log lines belong to requests, and what belongs to none of the
            // kinds above was not asked for.
            Event::Notification(_) | Event::Gone { .. } => None,
        }
    }
}

impl Subscriptions {
    async fn add(&mut self, uri: &str) -> Result<bool, RpcError> {
        let Watcher { provider, context, key, watched } = &self.watcher;
        subscriptions::check(uri)?;
        let counted = watched.count(key)?;
        let params = Object::from_iter([("uri".to_owned(), Json::encode(uri))]);
        let reply = subscriptions::subscribe(provider, params, context).await;
        let subscribed = matches!(reply, Reply::Result(_));
        if subscribed {
            self.uris.insert(uri.to_owned(), counted);
        }
        Ok(subscribed)
    }
}

impl Drop for Subscriptions {
    fn drop(&mut self) {
        let uris = std::mem::take(&mut self.uris);
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if uris.is_empty() {
            return;
        }
        let provider = Arc::clone(&self.watcher.provider);
        let context = self.watcher.context.clone();
        runtime.spawn(async move {
            for uri in uris.into_keys() {
                drop(subscriptions::unsubscribe(&provider, &uri, &context).await);
            }
        });
    }
}
