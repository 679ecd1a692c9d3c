//! An endpoint at one path. Taking connections is for whoever serves it: the
//! crate `web` has a listener.

use http::{Request, Response, StatusCode};
use hyper::body::Incoming;

use super::{Body, Endpoint, body};
use crate::revision::code;

/// A site that is the endpoint at one path, and nothing elsewhere.
pub fn at(
    path: &'static str,
    endpoint: Endpoint,
) -> impl Fn(Request<Incoming>) -> futures::future::BoxFuture<'static, Response<Body>>
+ Clone
+ Send
+ Sync
+ 'static {
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
