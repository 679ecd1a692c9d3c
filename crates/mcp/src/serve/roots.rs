//! Notifies the provider when a client's roots changed.

use std::sync::Arc;

use futures::FutureExt;
use tool::{Ask, Json, Object, Reply};

use super::channel::{ClientChannel, Route};
use super::exchange::Exchange;
use super::session::Session;
use crate::message::Notification;
use crate::revision::method;

/// Notifies the provider that the client's roots changed, if the notification says so.
///
/// The provider may ask for the new roots: its question goes to the pipe, or is among the
/// messages of the returned exchange.
pub(crate) fn notify_provider(
    session: &Arc<Session>,
    notification: &Notification,
) -> Option<Exchange> {
    if notification.method != method::ROOTS_CHANGED || !session.client.has_capability("roots") {
        return None;
    }
    let channel = ClientChannel::new(Route::Session(Arc::clone(session)), None, None);
    let params = notification.params.as_ref().and_then(|params| Object::parse(params).ok());
    let params = params.unwrap_or_default();
    let ask = Ask::Other { method: method::ROOTS_CHANGED.to_owned(), params };
    let (provider, context) = (Arc::clone(&session.provider), session.context(channel.clone()));
    let reply = async move {
        // A notification has no reply.
        drop(provider.ask(ask, &context).await);
        Reply::Result(Json::empty_object())
    };
    Some(Exchange::new(reply.boxed(), channel, None))
}
