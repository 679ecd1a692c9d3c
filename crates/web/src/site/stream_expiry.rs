//! Ends streams whose credentials have expired.
//!
//! A call is let finish: it was allowed when it began. A stream on which a
//! client only listens would go on for ever, so it ends when its credentials
//! are no longer good.

use std::time::Duration;

use futures::StreamExt;
use http::{Method, Request, Response, header};
use http_body_util::BodyExt;
use mcp::revision::header::METHOD;
use mcp::revision::method::{COMPLETE, PROMPTS_GET, RESOURCES_READ, TOOLS_CALL};
use mcp::serve::http::Body;

use super::caller::API_KEY;

/// How often credentials are looked at again.
const LOOK: Duration = Duration::from_secs(1);

/// What is let finish.
const CALLS: [&str; 4] = [TOOLS_CALL, PROMPTS_GET, RESOURCES_READ, COMPLETE];

/// Returns what a client that only listens has shown; `None` when it does something
/// else, or has shown nothing.
pub(super) fn credentials<B>(request: &Request<B>) -> Option<Request<()>> {
    let headers = request.headers();
    // A header has several spellings. What is not plainly a call is watched.
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

/// The response, which ends with the credentials if it is a stream.
pub(super) fn watched(
    response: Response<Body>,
    credentials: Option<Request<()>>,
    is_good: impl Fn(&Request<()>) -> bool + Send + Sync + 'static,
) -> Response<Body> {
    let Some(head) = credentials else { return response };
    if http_body::Body::size_hint(response.body()).exact().is_some() {
        return response;
    }
    response.map(|body| {
        let events = body.into_data_stream().filter_map(async |event| event.ok());
        Body::events(events.take_until(refused(is_good, head)).boxed())
    })
}

/// Ready when these credentials are no longer good.
async fn refused(is_good: impl Fn(&Request<()>) -> bool, head: Request<()>) {
    while is_good(&head) {
        tokio::time::sleep(LOOK).await;
    }
}
