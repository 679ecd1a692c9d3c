//! The `Provider` trait: anything that lists tools and answers requests.
//!
//! Upstreams implement it towards gatelet, and the surfaces of gatelet implement
//! it towards clients.

use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;
use serde::{Deserialize, Serialize};

use crate::{Ask, Client, Context, Failure, Identity, Listing, Notification, Reply, Resource};

/// Anything that offers tools and answers calls.
#[async_trait]
pub trait Provider: Send + Sync {
    /// Returns what the provider offers, from memory. Cheap, and never waits.
    fn listing(&self) -> Arc<Listing>;

    /// Subscribes to the events from now on. The stream ends, after
    /// [`Event::Gone`], when the provider is gone for good.
    fn events(&self) -> BoxStream<'static, Event>;

    /// Answers one request. Dropping the future cancels the request, also at a
    /// remote server.
    async fn ask(&self, ask: Ask, context: &Context) -> Result<Reply, Failure>;

    /// Returns the resources that exist for this caller alone, such as stored
    /// results of earlier calls. They are listed before those of
    /// [`Provider::listing`].
    async fn resources_for(&self, _: &Context) -> Vec<Resource> {
        Vec::new()
    }

    /// Begins to observe a request that is answered from [`Provider::listing`] and so never
    /// reaches [`Provider::ask`], such as `tools/list`; `None` if nobody observes.
    fn observe(&self, _: &Ask, _: &Context) -> Option<Box<dyn RequestObserver>> {
        None
    }

    /// Returns whether `ask` itself ends when [`Context::timeout`] has passed. If
    /// it does not, the caller has to set a timer for every request.
    fn enforces_timeout(&self) -> bool {
        false
    }
}

/// Observes one request. Dropped without an answer, the request was cancelled.
pub trait RequestObserver: Send {
    fn answered(self: Box<Self>, reply: &Reply);
}

/// Something that a provider reports without being asked.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A list of [`Provider::listing`] has changed; the new one is in place already.
    Changed(Kind),
    /// A subscribed resource changed; the notification as it came.
    Updated { uri: String, notification: Notification },
    /// Any other notification that belongs to no call: logs, extensions.
    Notification(Notification),
    /// The provider does not answer any more. The reason is one line.
    Gone { reason: String },
}

/// The four lists of a [`Listing`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Tools,
    Resources,
    Templates,
    Prompts,
}

impl Kind {
    pub const ALL: [Kind; 4] = [Kind::Tools, Kind::Resources, Kind::Templates, Kind::Prompts];
}

/// Decides which provider a client gets to see.
///
/// It is called once per session, or once per request where there are no
/// sessions, so it must be cheap: look something up, start nothing.
pub trait ProviderSource: Send + Sync {
    fn provider_for(&self, client: &Arc<Client>, caller: &Arc<Identity>) -> Arc<dyn Provider>;
}

/// Gives the same provider to every client.
#[derive(Clone)]
pub struct FixedProvider(pub Arc<dyn Provider>);

impl ProviderSource for FixedProvider {
    fn provider_for(&self, _: &Arc<Client>, _: &Arc<Identity>) -> Arc<dyn Provider> {
        Arc::clone(&self.0)
    }
}
