//! An endpoint at one path. Taking connections is for whoever serves it: the
//! crate `web` has a listener.

use std::fmt::Display;

use bytes::Buf;
use http::{Request, Response, StatusCode};

use super::{Body, Endpoint, body};
use crate::revision::code;

/// A site that is the endpoint at one path, and nothing elsewhere.
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
