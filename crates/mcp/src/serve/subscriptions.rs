//! Resource subscriptions at a provider, and their limits.

use std::sync::Arc;

use tool::{Context, Json, Object, Provider, Reply, RpcError};

use super::adapt;
use crate::revision::{code, method};

/// The maximum number of resources per session, or per `subscriptions/listen`.
pub(crate) const PER_SESSION: usize = 1000;

/// The maximum number of resources per caller, in all sessions.
pub(crate) const PER_CALLER: usize = 2000;

/// The longest URI, in bytes.
const URI_BYTES: usize = 8 << 10;

/// Subscribes the session of `context` to a resource.
pub(crate) async fn subscribe(
    provider: &Arc<dyn Provider>,
    params: Object,
    context: &Context,
) -> Reply {
    adapt::ask_other(provider, method::SUBSCRIBE, params, context).await
}

/// Unsubscribes the session of `context` from a resource.
pub(crate) async fn unsubscribe(
    provider: &Arc<dyn Provider>,
    uri: &str,
    context: &Context,
) -> Reply {
    let params = Object::from_iter([("uri".to_owned(), Json::encode(uri))]);
    adapt::ask_other(provider, method::UNSUBSCRIBE, params, context).await
}

/// Returns the URI in the params of a request.
pub(crate) fn uri(params: &Object) -> Option<String> {
    params.get("uri")?.parse_as().ok()
}

pub(crate) fn missing_uri() -> Reply {
    Reply::Error(RpcError::new(code::INVALID_PARAMS, "params need `uri` as a string"))
}

/// Refuses a URI that is too long.
pub(crate) fn check(uri: &str) -> Result<(), RpcError> {
    if uri.len() <= URI_BYTES {
        return Ok(());
    }
    let message = format!("a `uri` to subscribe to has at most {URI_BYTES} bytes");
    Err(RpcError::new(code::INVALID_PARAMS, message))
}

/// Returns the error for too many subscriptions.
pub(crate) fn too_many() -> RpcError {
    let message = format!("no more than {PER_SESSION} resources can be watched at once here");
    RpcError::new(code::SERVER, message)
}
