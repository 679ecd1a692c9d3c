//! Ends event streams when the caller's credentials expire.
//!
//! A call may finish, because it was allowed when it began. A stream on which a client
//! only listens would go on for ever, so it ends when its credentials are not valid any
//! more.

use std::time::Duration;

use futures::StreamExt;
use http::{Method, Request, Response, header};
use http_body_util::BodyExt;
use mcp::revision::header::METHOD;
use mcp::revision::method::{COMPLETE, PROMPTS_GET, RESOURCES_READ, TOOLS_CALL};
use mcp::serve::http::Body;

use super::caller::API_KEY;

/// How often credentials are checked again.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The methods whose streams may finish.
const CALLS: [&str; 4] = [TOOLS_CALL, PROMPTS_GET, RESOURCES_READ, COMPLETE];

/// Returns the head of a request that only listens and has credentials; `None` for every
/// other request.
pub(super) fn credentials<B>(request: &Request<B>) -> Option<Request<()>> {
    let headers = request.headers();
    // A header may be spelled in several ways, so everything counts as listening that is
    // not plainly a call.
    let listens = request.method() == Method::GET
        || headers.get(METHOD).is_some_and(|method| !CALLS.iter().any(|call| method == call));
    let shows = headers.contains_key(header::AUTHORIZATION) || headers.contains_key(API_KEY);
    if !listens || !shows {
        return None;
    }
    let mut head = Request::new(());
    *head.uri_mut() = request.uri().clone();
    *head.headers_mut() = headers.clone();
    Some(head)
}

/// Makes a response end when its credentials expire, if it is a stream. `is_valid` checks
/// the head of the request again.
pub(super) fn end_with_credentials(
    response: Response<Body>,
    credentials: Option<Request<()>>,
    is_valid: impl Fn(&Request<()>) -> bool + Send + Sync + 'static,
) -> Response<Body> {
    let Some(head) = credentials else { return response };
    if http_body::Body::size_hint(response.body()).exact().is_some() {
        return response;
    }
    response.map(|body| {
        let events = body.into_data_stream().filter_map(async |event| event.ok());
        Body::events(events.take_until(expired(is_valid, head)).boxed())
    })
}

/// Waits until the credentials are not valid any more.
async fn expired(is_valid: impl Fn(&Request<()>) -> bool, head: Request<()>) {
    while is_valid(&head) {
        tokio::time::sleep(CHECK_INTERVAL).await;
    }
}
