//! What is at which path: every surface under its name, the chosen one at
//! `/mcp`.

use std::sync::Arc;

use futures::future::BoxFuture;
use gateway::Gateway;
use http::{Request, Response};
use hyper::body::Incoming;
use mcp::serve::http::{Body, Endpoint, Hosts, Options};

use crate::config::{Serve, Surface};

/// The surface that the configuration means.
pub(super) fn surface(surface: Surface) -> gateway::Surface {
    match surface {
        Surface::Cash => gateway::Surface::Cash,
        Surface::Gateway => gateway::Surface::Gateway,
        Surface::Proxy => gateway::Surface::Proxy,
        Surface::Direct => gateway::Surface::Direct,
        Surface::Auto => gateway::Surface::Auto,
    }
}

/// Answers every request by its path.
pub(super) fn site(
    gateway: &Gateway,
    chosen: Surface,
    serve: &Serve,
) -> impl Fn(Request<Incoming>) -> BoxFuture<'static, Response<Body>> + Clone + Send + 'static {
    let options = Options { hosts: hosts(serve), ..Options::default() };
    let endpoint = |surface| Endpoint::new(gateway.door(surface), options.clone());
    let mut places = vec![("/mcp".to_owned(), endpoint(surface(chosen)))];
    for surface in gateway::Surface::ALL {
        places.push((format!("/mcp/{}", surface.name()), endpoint(surface)));
    }
    let places = Arc::new(places);
    move |request: Request<Incoming>| {
        let places = Arc::clone(&places);
        Box::pin(async move {
            let path = request.uri().path().trim_end_matches('/');
            match places.iter().find(|(place, _)| place == path) {
                Some((_, endpoint)) => endpoint.respond(request).await,
                None => nothing(&places),
            }
        })
    }
}

fn hosts(serve: &Serve) -> Hosts {
    if serve.hosts.iter().any(|host| host == "*") {
        Hosts::Any
    } else if serve.hosts.is_empty() {
        Hosts::Loopback
    } else {
        Hosts::Named(serve.hosts.clone())
    }
}

fn nothing(places: &[(String, Endpoint)]) -> Response<Body> {
    let known: Vec<&str> = places.iter().map(|(place, _)| place.as_str()).collect();
    let text = format!("nothing is here; the gate is at {}\n", known.join(", "));
    let mut response = Response::new(Body::whole(text));
    *response.status_mut() = http::StatusCode::NOT_FOUND;
    response
}
