//! Routes one path to an endpoint. Accepting connections is up to the caller: the crate
//! `web` has a listener.

use std::fmt::Display;

use bytes::Buf;
use http::{Request, Response, StatusCode};

use super::{Body, Endpoint, body};
use crate::revision::code;

/// Returns a request handler that serves the endpoint at `path`, and 404 elsewhere.
pub fn at<B>(
    path: &'static str,
    endpoint: Endpoint,
) -> impl Fn(Request<B>) -> futures::future::BoxFuture<'static, Response<Body>>
+ Clone
+ Send
+ Sync
+ 'static
where
    B: http_body::Body<Data: Buf + Send, Error: Display + Send> + Send + 'static,
{
    move |request| {
        let endpoint = endpoint.clone();
        Box::pin(async move {
            if request.uri().path() == path {
                return endpoint.respond(request).await;
            }
            let message = format!("nothing is here; the endpoint is at `{path}`");
            body::refusal(StatusCode::NOT_FOUND, code::SERVER, message)
        })
    }
}
