//! What is at which path: every surface under its name, the chosen one at
//! `/mcp`.

use anyhow::Result;
use futures::future::BoxFuture;
use gateway::Gateway;
use http::{Request, Response};
use mcp::serve::http::{Body, Endpoint, Hosts, Options};

use crate::config::{Serve, Surface};
use crate::exit::Stop;

/// The surfaces there are, by the names they have in paths.
const SURFACES: &[(&str, gateway::Surface)] = &[("cash", gateway::Surface::Cash)];

/// The surface that the configuration means.
pub(super) fn surface(surface: Surface) -> Result<gateway::Surface> {
    match surface {
        Surface::Cash => Ok(gateway::Surface::Cash),
        Surface::Gateway | Surface::Proxy | Surface::Direct | Surface::Auto => {
            let message = "this surface is not there yet; `cash` is".to_owned();
            Err(Stop::Usage(message).into())
        }
    }
}

/// Answers every request by its path.
pub(super) fn site(
    gateway: &Gateway,
    chosen: Surface,
    serve: &Serve,
) -> Result<
    impl Fn(Request<hyper::body::Incoming>) -> BoxFuture<'static, Response<Body>>
    + Clone
    + Send
    + 'static,
> {
    let options = Options { hosts: hosts(serve), ..Options::default() };
    let endpoint = |surface| Endpoint::new(gateway.door(surface), options.clone());
    let mut places = vec![("/mcp".to_owned(), endpoint(surface(chosen)?))];
    for (name, surface) in SURFACES {
        places.push((format!("/mcp/{name}"), endpoint(*surface)));
    }
    let places = std::sync::Arc::new(places);
    Ok(move |request: Request<hyper::body::Incoming>| {
        let places = std::sync::Arc::clone(&places);
        Box::pin(async move {
            let path = request.uri().path().trim_end_matches('/');
            match places.iter().find(|(place, _)| place == path) {
                Some((_, endpoint)) => endpoint.respond(request).await,
                None => nothing(&places),
            }
        }) as BoxFuture<'static, Response<Body>>
    })
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
