//! What is at which path, and who may come in: every surface under its name,
//! the chosen one at `/mcp`, the manifest where it is looked for.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use gateway::Gateway;
use mcp::serve::http::{Endpoint, Hosts, Options};
use web::identity::key::{Fresh, Key, Ring};
use web::identity::{Anonymous, Policy};
use web::site::admin::SCOPE;
use web::site::{Parts, Site};

use super::admin::Desk;
use crate::commands::key;
use crate::config::{Auth, Config, Surface};
use crate::secret;
use crate::stamp::Glance;

/// Everything that is answered over HTTP.
pub(super) fn site(
    gateway: &Gateway,
    chosen: Surface,
    config: &Config,
    state: &Path,
    operator: Key,
    desk: Desk,
) -> Site {
    let limits = &config.serve.limits;
    let (body, answer) = (limits.body_bytes, limits.answer_bytes);
    let options = Options { hosts: hosts(config), body, answer, ..Options::default() };
    let endpoint = |surface| Endpoint::new(desk.wiring.door(gateway, surface), options.clone());
    let main = endpoint(chosen.meant());
    let mut endpoints = BTreeMap::from([("/mcp".to_owned(), main.clone())]);
    for surface in gateway::Surface::ALL {
        endpoints.insert(format!("/mcp/{}", surface.name()), endpoint(surface));
    }
    let issuers = config.auth.issuers.iter().filter_map(|issuer| issuer.issuer.clone());
    let card = Arc::clone(&desk.wiring.card);
    Site::new(Parts {
        endpoints,
        old: Some(("/sse".to_owned(), "/messages".to_owned(), main)),
        policy: policy(config, key::file(state), operator),
        admin: Some(Box::new(desk)),
        manifest: Box::new(move || card.shown()),
        now: Box::new(key::now),
        config: web::site::Config {
            origins: config.auth.origins.clone(),
            concurrency: limits.requests,
            body_time: limits.body_time,
            public_url: config.auth.public_url.clone(),
            authorization_servers: issuers.collect(),
        },
    })
}

/// A key for this machine's operator, good for as long as the gate runs.
pub(super) fn operator(config: &Config) -> Fresh {
    let mut fresh = Ring::default()
        .create("operator", secret::random(), key::now())
        .expect("the name is legal and nobody else has it");
    fresh.key.scopes.insert(SCOPE.to_owned());
    fresh.key.scopes.extend(config.auth.scope.clone());
    fresh
}

/// Who is let in. The keys are read again when their file has changed, so a
/// key that was just made or revoked counts for the next human.
fn policy(
    config: &Config,
    file: PathBuf,
    operator: Key,
) -> Box<dyn Fn() -> Arc<Policy> + Send + Sync> {
    let make = move |mut keys: Ring, auth: &Auth| {
        keys.keys.push(operator.clone());
        let anonymous = if auth.required { Anonymous::Refused } else { Anonymous::Allowed };
        let (tokens, scope) = (auth.issuers.clone(), auth.scope.clone());
        Arc::new(Policy { anonymous, keys, tokens, scope })
    };
    let auth = config.auth.clone();
    let nobody = make(Ring::default(), &auth);
    let known = Mutex::new((Glance::at(file), nobody));
    Box::new(move || {
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        let (glance, policy) = &mut *known;
        if glance.is_due() {
            match key::load(glance.file()) {
                Ok(keys) => *policy = make(keys, &auth),
                Err(error) => {
                    tracing::error!("the keys stay as they were: {error:#}");
                    glance.again();
                }
            }
        }
        Arc::clone(policy)
    })
}

fn hosts(config: &Config) -> Hosts {
    let serve = &config.serve;
    // A page of a listed origin is let in by the endpoint, too.
    let named = serve.hosts.iter().chain(&config.auth.origins).cloned();
    if serve.hosts.iter().any(|host| host == "*") {
        Hosts::Any
    } else {
        let named = named.map(|name| bare(&name).to_owned()).collect::<Vec<_>>();
        if named.is_empty() { Hosts::Loopback } else { Hosts::Named(named) }
    }
}

/// The host of an origin.
fn bare(origin: &str) -> &str {
    origin.split_once("://").map_or(origin, |(_, host)| host)
}
