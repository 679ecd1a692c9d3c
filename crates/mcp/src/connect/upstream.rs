//! The provider that [`connect`](super::connect) makes.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use tokio::time::sleep;
use tool::{Ask, Context, Event, Failure, Json, Listing, Object, Provider, Reply};

use super::connection::Connection;
use super::listen;
use super::subscriptions::Change;
use crate::revision::{Revision, method};

/// How long a client that said that its roots changed is the one that is asked
/// for them.
const ROOTS_ASKED: Duration = Duration::from_secs(10);

/// A server somewhere else. Dropped, its session is closed and its process
/// ended.
pub struct Upstream {
    connection: Arc<Connection>,
}

impl Upstream {
    pub(super) fn new(connection: Arc<Connection>) -> Upstream {
        Upstream { connection }
    }

    /// The revision that was agreed. Worth remembering: it spares the probe.
    pub fn revision(&self) -> Revision {
        self.connection.session.revision
    }

    /// Returns how many lines were no messages, and how many answers to nothing.
    pub fn n_invalid(&self) -> u64 {
        self.connection.relay.n_invalid()
    }

    /// Returns why it is gone, if it is.
    pub fn gone(&self) -> Option<String> {
        self.connection.relay.why_gone()
    }

    /// Ends it and waits until it has ended.
    pub async fn close(&self) {
        self.connection.relay.expect_end();
        self.connection.transport.close("no longer needed");
        self.connection.relay.stale.end();
        let mut events = self.connection.relay.events();
        while let Some(event) = futures::StreamExt::next(&mut events).await {
            if matches!(event, Event::Gone { .. }) {
                return;
            }
        }
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.connection.relay.expect_end();
        self.connection.transport.close("no longer needed");
    }
}

#[async_trait]
impl Provider for Upstream {
    fn listing(&self) -> Arc<Listing> {
        self.connection.listing.load_full()
    }

    fn events(&self) -> BoxStream<'static, Event> {
        self.connection.relay.events()
    }

    async fn ask(&self, ask: Ask, context: &Context) -> Result<Reply, Failure> {
        if let Ask::Other { method, params } = &ask {
            match method.as_str() {
                method::SUBSCRIBE => {
                    return Box::pin(self.subscribe(params, &ask, context)).await;
                }
                method::UNSUBSCRIBE => {
                    return Box::pin(self.unsubscribe(params, &ask, context)).await;
                }
                // A modern server has no such methods: it is stateless, and
                // every question carries its own log level.
                method::PING | method::SET_LEVEL if self.revision().is_modern() => {
                    return Ok(nothing());
                }
                method::DISCOVER => return Box::pin(self.connection.rediscover()).await,
                method::SET_LEVEL => {
                    return Box::pin(self.connection.set_level(params, &ask, context)).await;
                }
                // News of the client, such as that its roots changed.
                news if news.starts_with("notifications/") => {
                    Box::pin(self.tell(news, params, context)).await;
                    return Ok(nothing());
                }
                _ => {}
            }
        }
        self.connection.ask(ask, context).await
    }

    fn enforces_timeout(&self) -> bool {
        true
    }
}

impl Upstream {
    /// Tells the server news of a client. A modern one has no session in which
    /// it could matter.
    async fn tell(&self, news: &str, params: &Object, context: &Context) {
        if self.revision().is_modern() {
            return;
        }
        let is_about_roots = news == method::ROOTS_CHANGED;
        let _place = is_about_roots.then(|| {
            self.connection
                .relay
                .calls
                .enter_for_roots(self.connection.transport.next_request_id(), context)
        });
        let params = Some(params.to_json()).filter(|_| !params.is_empty());
        self.connection.transport.notify(news, params.as_ref());
        if is_about_roots {
            // Nothing in the question will say whose roots are meant.
            sleep(ROOTS_ASKED).await;
        }
    }

    async fn subscribe(
        &self,
        params: &Object,
        ask: &Ask,
        context: &Context,
    ) -> Result<Reply, Failure> {
        let uri = params.get("uri").and_then(Json::string_value);
        if !self.revision().is_modern() {
            let reply = self.connection.ask(ask.clone(), context).await?;
            if let (Reply::Result(_), Some(uri)) = (&reply, uri) {
                self.connection.subscriptions.add(&uri, &context.session);
            }
            return Ok(reply);
        }
        let Some(uri) = uri else { return Ok(no_uri()) };
        if self.connection.subscriptions.add(&uri, &context.session) == Change::Set {
            listen::renew(&self.connection).await;
        }
        Ok(nothing())
    }

    async fn unsubscribe(
        &self,
        params: &Object,
        ask: &Ask,
        context: &Context,
    ) -> Result<Reply, Failure> {
        let uri = params.get("uri").and_then(Json::string_value);
        let is_modern = self.revision().is_modern();
        let Some(uri) = uri else {
            return if is_modern {
                Ok(no_uri())
            } else {
                self.connection.ask(ask.clone(), context).await
            };
        };
        match (self.connection.subscriptions.remove(&uri, &context.session), is_modern) {
            (Change::Watchers, _) => Ok(nothing()),
            (Change::Set, false) => self.connection.ask(ask.clone(), context).await,
            (Change::Set, true) => {
                listen::renew(&self.connection).await;
                Ok(nothing())
            }
        }
    }
}

fn nothing() -> Reply {
    Reply::Result(Json::empty_object())
}

fn no_uri() -> Reply {
    let code = crate::revision::code::INVALID_PARAMS;
    Reply::Error(tool::RpcError::new(code, "params need `uri` as a string"))
}
