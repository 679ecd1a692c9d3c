//! A connected server as a provider.

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

/// How long after its roots changed a client gets the server's request for roots.
const ROOTS_REQUEST_WINDOW: Duration = Duration::from_secs(10);

/// A connected MCP server. Dropping it closes the session and ends the process.
pub struct Upstream {
    connection: Arc<Connection>,
}

impl Upstream {
    pub(super) fn new(connection: Arc<Connection>) -> Upstream {
        Upstream { connection }
    }

    /// Returns the negotiated revision. Remembering it saves the probe next time.
    pub fn revision(&self) -> Revision {
        self.connection.session.revision
    }

    /// Returns the number of invalid messages and unexpected responses.
    pub fn n_invalid(&self) -> u64 {
        self.connection.relay.n_invalid()
    }

    /// Returns why the server is gone, if it is.
    pub fn gone(&self) -> Option<String> {
        self.connection.relay.why_gone()
    }

    /// Closes the connection and waits until the server has ended.
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
                    return Ok(empty_result());
                }
                method::DISCOVER => return Box::pin(self.connection.rediscover()).await,
                method::SET_LEVEL => {
                    return Box::pin(self.connection.set_level(params, &ask, context)).await;
                }
                // A notification of the client, such as that its roots changed.
                notification if notification.starts_with("notifications/") => {
                    Box::pin(self.forward_notification(notification, params, context)).await;
                    return Ok(empty_result());
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
    /// Forwards a notification of a client to a legacy server. Modern servers have no session
    /// that it could apply to.
    async fn forward_notification(&self, notification: &str, params: &Object, context: &Context) {
        if self.revision().is_modern() {
            return;
        }
        let is_about_roots = notification == method::ROOTS_CHANGED;
        let _call_guard = is_about_roots.then(|| {
            self.connection
                .relay
                .calls
                .enter_for_roots(self.connection.transport.next_request_id(), context)
        });
        let params = Some(params.to_json()).filter(|_| !params.is_empty());
        self.connection.transport.notify(notification, params.as_ref());
        if is_about_roots {
            // The request for roots does not tell whose roots are meant.
            sleep(ROOTS_REQUEST_WINDOW).await;
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
        let Some(uri) = uri else { return Ok(missing_uri_error()) };
        if self.connection.subscriptions.add(&uri, &context.session) == Change::ResourceSet {
            listen::renew(&self.connection).await;
        }
        Ok(empty_result())
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
                Ok(missing_uri_error())
            } else {
                self.connection.ask(ask.clone(), context).await
            };
        };
        match (self.connection.subscriptions.remove(&uri, &context.session), is_modern) {
            (Change::WatchersOnly, _) => Ok(empty_result()),
            (Change::ResourceSet, false) => self.connection.ask(ask.clone(), context).await,
            (Change::ResourceSet, true) => {
                listen::renew(&self.connection).await;
                Ok(empty_result())
            }
        }
    }
}

fn empty_result() -> Reply {
    Reply::Result(Json::empty_object())
}

fn missing_uri_error() -> Reply {
    let code = crate::revision::code::INVALID_PARAMS;
    Reply::Error(tool::RpcError::new(code, "params need `uri` as a string"))
}
