//! Serves `subscriptions/listen`: notifies a modern client of changes.
//!
//! The first message acknowledges which notifications will be sent. Every message carries
//! the id of the request, because on a pipe many subscriptions share one stream. The
//! subscription ends when the client cancels it, which drops the stream, or when the
//! provider is gone.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Task, Poll, ready};

use bytes::Bytes;
use futures::stream::{BoxStream, Stream};
use tool::{Context, Event, Json, Kind, Listing, Notification, Object, Provider, Reply, RpcError};

use super::caller::{CallerKey, CountedSlot, PerCallerLimit};
use super::session::{is_below, list_changed_method};
use super::{adapt, discovery, subscriptions};
use crate::message;
use crate::revision::{meta, method};

/// An open subscription: a stream of serialized notifications.
pub(crate) struct SubscriptionStream {
    id: Json,
    filter: Filter,
    acknowledged: bool,
    events: BoxStream<'static, Event>,
    provider: Arc<dyn Provider>,
    _subscriptions: Subscriptions,
}

/// The notifications that a subscription includes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Filter {
    tools: bool,
    prompts: bool,
    resources: bool,
    uris: BTreeSet<String>,
}

/// The resources that were subscribed to at the provider; unsubscribes when dropped.
struct Subscriptions {
    subscriber: Subscriber,
    uris: BTreeMap<String, CountedSlot>,
}

/// The subscribing client, and the limit on its subscriptions.
pub(crate) struct Subscriber {
    pub(crate) provider: Arc<dyn Provider>,
    pub(crate) context: Context,
    pub(crate) key: CallerKey,
    pub(crate) subscription_limit: Arc<PerCallerLimit>,
}

impl SubscriptionStream {
    /// Opens a subscription for those of the `requested` notifications that the provider
    /// sends.
    pub(crate) async fn open(
        subscriber: Subscriber,
        requested: Option<&Json>,
        id: &Json,
    ) -> Result<SubscriptionStream, RpcError> {
        let provider = Arc::clone(&subscriber.provider);
        // Before the acknowledgement, so that no event is missed.
        let events = provider.events();
        let requested =
            requested.and_then(|requested| Object::parse(requested).ok()).unwrap_or_default();
        let mut filter = Filter::parse(&requested, &provider.listing());
        let uris = std::mem::take(&mut filter.uris);
        if subscriptions::PER_SESSION < uris.len() {
            return Err(subscriptions::too_many());
        }
        let mut subscriptions = Subscriptions { subscriber, uris: BTreeMap::new() };
        for uri in uris {
            if subscriptions.add(&uri).await? {
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
            _subscriptions: subscriptions,
        })
    }

    /// Returns the reply to the request, when the subscription ends.
    pub(crate) fn final_reply(&self) -> Reply {
        let mut about = Object::new();
        about.push(meta::SUBSCRIPTION_ID, self.id.clone());
        let mut result = Object::new();
        result.push("resultType", Json::encode("complete"));
        result.push("_meta", about.to_json());
        adapt::to_modern(method::LISTEN, Reply::Result(result.to_json()), &self.provider.listing())
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
            if let Some(note) = self.filter.notification_for(event) {
                return Poll::Ready(Some(self.write(note)));
            }
        }
    }
}

impl Filter {
    /// Parses the requested notifications, without those that the provider does not send.
    fn parse(requested: &Object, listing: &Listing) -> Filter {
        let announced = discovery::capabilities(listing);
        let tells = |capability: &str, key: &str| {
            let capability = announced.member(capability);
            capability.and_then(|capability| capability.member_as::<bool>(key)).unwrap_or(false)
        };
        let wants = |key: &str| requested.get(key).is_some_and(|value| value.as_str() == "true");
        let uris = requested.get("resourceSubscriptions").and_then(|uris| uris.parse_as().ok());
        Filter {
            tools: wants("toolsListChanged") && tells("tools", "listChanged"),
            prompts: wants("promptsListChanged") && tells("prompts", "listChanged"),
            resources: wants("resourcesListChanged") && tells("resources", "listChanged"),
            uris: uris.filter(|_| tells("resources", "subscribe")).unwrap_or_default(),
        }
    }

    fn to_json(&self) -> Json {
        let mut filter = Object::new();
        for (key, requested) in [
            ("toolsListChanged", self.tools),
            ("promptsListChanged", self.prompts),
            ("resourcesListChanged", self.resources),
        ] {
            if requested {
                filter.push(key, Json::encode(&true));
            }
        }
        if !self.uris.is_empty() {
            filter.push("resourceSubscriptions", Json::encode(&self.uris));
        }
        filter.to_json()
    }

    /// Returns the notification for an event, if the filter includes it.
    fn notification_for(&self, event: Event) -> Option<Notification> {
        match event {
            Event::Changed(kind) => {
                let wants = match kind {
                    Kind::Tools => self.tools,
                    Kind::Prompts => self.prompts,
                    Kind::Resources | Kind::Templates => self.resources,
                };
                wants.then(|| Notification {
                    method: list_changed_method(kind).to_owned(),
                    params: Object::new(),
                })
            }
            Event::Updated { uri, notification: note } => {
                let wants = |requested: &String| uri == *requested || is_below(&uri, requested);
                self.uris.iter().any(wants).then_some(note)
            }
            // Log lines belong to requests; other notifications cannot be subscribed to.
            Event::Notification(_) | Event::Gone { .. } => None,
        }
    }
}

impl Subscriptions {
    /// Subscribes to a resource; returns `false` if the provider refuses.
    async fn add(&mut self, uri: &str) -> Result<bool, RpcError> {
        let Subscriber { provider, context, key, subscription_limit } = &self.subscriber;
        subscriptions::check(uri)?;
        let counted = subscription_limit.acquire(key)?;
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
        let provider = Arc::clone(&self.subscriber.provider);
        let context = self.subscriber.context.clone();
        runtime.spawn(async move {
            for uri in uris.into_keys() {
                drop(subscriptions::unsubscribe(&provider, &uri, &context).await);
            }
        });
    }
}
