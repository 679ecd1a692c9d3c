//! Subscriptions to resources, and how many there may be.

use std::sync::Arc;

use tool::{Context, Json, Object, Provider, Reply, RpcError};

use super::adapt;
use crate::revision::{code, method};

/// How many resources one session, or one listening request, may watch.
pub(crate) const PER_SESSION: usize = 1000;

/// How many resources one caller may watch in all of its sessions.
pub(crate) const PER_CALLER: usize = 2000;

/// The longest URI that is kept, in bytes.
const URI_BYTES: usize = 8 << 10;

/// Subscribes to a resource, in the name of the session in `context`.
pub(crate) async fn subscribe(
    provider: &Arc<dyn Provider>,
    params: Object,
    context: &Context,
) -> Reply {
    adapt::ask_other(provider, method::SUBSCRIBE, params, context).await
}

/// Takes a subscription back.
pub(crate) async fn unsubscribe(
    provider: &Arc<dyn Provider>,
    uri: &str,
    context: &Context,
) -> Reply {
    let params = Object::from_iter([("uri".to_owned(), Json::encode(uri))]);
    adapt::ask_other(provider, method::UNSUBSCRIBE, params, context).await
}

/// The resource that params name.
pub(crate) fn uri(params: &Object) -> Option<String> {
    params.get("uri")?.parse_as().ok()
}

pub(crate) fn missing_uri() -> Reply {
    Reply::Error(RpcError::new(code::INVALID_PARAMS, "params need `uri` as a string"))
}

/// Refuses a URI that is too long to be kept.
pub(crate) fn check(uri: &str) -> Result<(), RpcError> {
    if uri.len() <= URI_BYTES {
        return Ok(());
    }
    let message = format!("a `uri` to subscribe to has at most {URI_BYTES} bytes");
    Err(RpcError::new(code::INVALID_PARAMS, message))
}

/// The error for one subscription too many.
pub(crate) fn too_many() -> RpcError {
    let message = format!("no more than {PER_SESSION} resources can be watched at once here");
    RpcError::new(code::SERVER, message)
}
