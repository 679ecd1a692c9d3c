//! The one trait on both sides.

use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;
use serde::{Deserialize, Serialize};

use crate::{Ask, Client, Context, Failure, Identity, Listing, Notification, Reply, Resource};

/// Anything that offers tools and answers calls.
#[async_trait]
pub trait Provider: Send + Sync {
    /// Returns what there is, from memory. Cheap, and never waits.
    fn listing(&self) -> Arc<Listing>;

    /// Returns what happens from now on. The stream ends, after [`Event::Gone`],
    /// when the provider is gone for good.
    fn events(&self) -> BoxStream<'static, Event>;

    /// Answers one question. Dropping the future cancels it, at the other
    /// side too where there is one.
    async fn ask(&self, ask: Ask, context: &Context) -> Result<Reply, Failure>;

    /// Resources that are there for this caller alone, such as what is kept of
    /// earlier answers. They are listed before those of [`Provider::listing`].
    async fn resources_for(&self, _: &Context) -> Vec<Resource> {
        Vec::new()
    }

    /// Returns whether `ask` itself ends when [`Context::timeout`] does. Where it
    /// does not, whoever asks has to set a clock for every question.
    fn enforces_timeout(&self) -> bool {
        false
    }
}

/// Something a provider tells without being asked.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// [`Provider::listing`] has changed already when this is seen.
    Changed(Kind),
    /// A subscribed resource changed; the notification as it came.
    Updated { uri: String, notification: Notification },
    /// Any other notification that belongs to no call: logs, extensions.
    Notification(Notification),
    /// The provider answers nothing any more, and why, in one line.
    Gone { reason: String },
}

/// The four kinds of things that are listed.
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
/// Asked once per session, or once per request where there are no sessions,
/// so it must be cheap: look something up, start nothing.
pub trait ProviderSource: Send + Sync {
    fn provider_for(&self, client: &Arc<Client>, caller: &Arc<Identity>) -> Arc<dyn Provider>;
}

/// The same provider for everybody.
#[derive(Clone)]
pub struct FixedProvider(pub Arc<dyn Provider>);

impl ProviderSource for FixedProvider {
    fn provider_for(&self, _: &Arc<Client>, _: &Arc<Identity>) -> Arc<dyn Provider> {
        Arc::clone(&self.0)
    }
}
