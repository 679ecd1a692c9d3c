//! Builds the HTTP site: the configured surface at `/mcp` and every surface at
//! `/mcp/NAME`, the manifest, console, metrics and admin API, and who may connect.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ::console::Console;
use mcp::serve::http::{Endpoint, Hosts, Options};
use parking_lot::Mutex;
use web::card::Card;
use web::identity::key::{Key, KeyRing, NewKey};
use web::identity::token::{self, Issuer, Keys};
use web::identity::{Anonymous, Policy};
use web::site::admin::SCOPE;
use web::site::pages::Pages;
use web::site::{Components, Site};

use super::admin::AdminApi;
use super::console::{self, ConsolePages};
use super::issuer_keys;
use super::metrics::Metrics;
use super::serving::Serving;
use crate::config_loader;
use crate::key_file;
use crate::paths::Paths;
use crate::polled_file::PolledFile;
use crate::secret;
use crate::time::unix_seconds;
use crate::wire;
use crate::wire::cluster::Cluster;
use config::{Config, KeySource};

/// Builds everything that is served over HTTP.
pub(super) fn site(
    serving: &Serving<'_>,
    operator: Key,
    issuers: Issuers,
    console: &OnceLock<Arc<Console>>,
) -> Site {
    let Serving { state, wiring, gateway, .. } = serving;
    let config = serving.config();
    let limits = &config.serve.limits;
    let options = Options {
        hosts: hosts(config),
        body: limits.body_bytes,
        body_time: limits.body_time,
        answer: limits.answer_bytes,
        memory: wire::memory::for_long_answers(),
        request_memory: wire::memory::for_long_requests(),
        tracing: wiring.observers().transport_tracing(),
        ..Options::default()
    };
    let endpoint = |path: &str, surface| {
        let replicas = wiring.cluster().map(|shared| shared.replicas(path));
        let served = wiring.observers().traced_surface(gateway, surface, "tcp");
        Endpoint::new(served, Options { replicas, ..options.clone() })
    };
    let main = endpoint("/mcp", config.serve.surface);
    let mut endpoints = BTreeMap::from([("/mcp".to_owned(), main.clone())]);
    for surface in gateway::Surface::ALL {
        let path = format!("/mcp/{}", surface.name());
        let endpoint = endpoint(&path, surface);
        endpoints.insert(path, endpoint);
    }
    let pages = config.console.enabled.then(|| {
        let console = console.get_or_init(|| console::console(serving, console_hosts(config)));
        wiring.set_console_address(&console_address(config));
        Box::new(ConsolePages(Arc::clone(console))) as Box<dyn Pages>
    });
    let servers = config.auth.issuers.iter().filter_map(|issuer| issuer.issuer.clone());
    let desk = AdminApi { wiring: wiring.clone(), gateway: gateway.clone() };
    let shared = wiring.cluster().cloned();
    let load = Arc::new(OnceLock::new());
    let metrics = config.metrics.on_gate.then(|| Metrics::new(wiring, gateway, Arc::clone(&load)));
    let site = Site::new(Components {
        endpoints,
        legacy_sse: Some(("/sse".to_owned(), "/messages".to_owned(), main)),
        policy: policy(config, key_file::file(state), operator, issuers),
        admin: Some(Box::new(desk)),
        pages,
        metrics: metrics.map(|page| Box::new(page) as _),
        manifest: Box::new(wiring.published_manifest()),
        now: Box::new(unix_seconds),
        readiness: Box::new(move || {
            let shared = shared.clone();
            Box::pin(async move { is_ready(shared.as_ref()).await })
        }),
        config: web::site::Config {
            origins: config.auth.origins.clone(),
            concurrency: limits.requests,
            public_url: config.auth.public_url.clone(),
            authorization_servers: servers.collect(),
            card: config.serve.card.then(|| Card {
                base: config.auth.public_url.clone().unwrap_or_else(|| config.serve.url()),
                title: config.manifest.publisher.clone(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
            }),
        },
    });
    // The metrics are part of the site and read its load: a weak pointer avoids a cycle.
    load.set(site.downgrade()).ok();
    site
}

/// The URL of the console, for operators.
fn console_address(config: &Config) -> String {
    let own = || {
        let listen = config.serve.listen;
        let here = match listen.ip().is_unspecified() {
            true => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), listen.port()),
            false => listen,
        };
        format!("{}://{here}", config.serve.scheme())
    };
    let base = config.auth.public_url.clone().filter(|_| config.serve.tls.is_some());
    format!("{}{}", base.unwrap_or_else(own), ::console::PATH)
}

/// The host names, beside those of this machine, under which the console may be opened.
fn console_hosts(config: &Config) -> Vec<String> {
    let own = config.auth.public_url.iter().map(|url| host(url).to_owned());
    let named =
        config.serve.hosts.iter().filter(|name| *name != "*").map(|name| host(name).to_owned());
    own.chain(named).collect()
}

/// Checks that requests can be answered in full: the shared store of a cluster can be used.
async fn is_ready(cluster: Option<&Cluster>) -> Result<(), String> {
    match cluster {
        Some(cluster) => cluster.check().await.map_err(|error| error.to_string()),
        None => Ok(()),
    }
}

/// Makes a key for the operator on this machine, which is good while gatelet runs.
pub(super) fn operator_key(config: &Config) -> NewKey {
    let mut fresh = KeyRing::default()
        .create("operator", secret::random(), unix_seconds())
        .expect("the name is legal and nobody else has it");
    fresh.key.scopes.insert(SCOPE.to_owned());
    fresh.key.scopes.extend(config.auth.scope.clone());
    fresh
}

/// The issuers whose tokens are accepted, with their current keys. Clones share them.
#[derive(Clone)]
pub(super) struct Issuers(Arc<Mutex<IssuerState>>);

struct IssuerState {
    /// The issuers of the configuration.
    configured: Vec<Issuer>,
    /// Keys that were fetched, by the index of their issuer.
    fetched: BTreeMap<usize, Keys>,
    /// The configured issuers with the fetched keys.
    current: Arc<Vec<Issuer>>,
}

impl IssuerState {
    fn update_current(&mut self) {
        let joined = self.configured.iter().enumerate().map(|(at, issuer)| {
            let keys = self.fetched.get(&at).unwrap_or(&issuer.keys).clone();
            Issuer { keys, ..issuer.clone() }
        });
        self.current = Arc::new(joined.collect());
    }
}

/// How often the configuration is read for changed public keys of issuers.
const KEY_POLL: Duration = Duration::from_secs(5);

impl Issuers {
    pub(super) fn new(config: &Config) -> Issuers {
        let configured = config.auth.issuers.clone();
        let current = Arc::new(configured.clone());
        let state = IssuerState { configured, fetched: BTreeMap::new(), current };
        Issuers(Arc::new(Mutex::new(state)))
    }

    fn current(&self) -> Arc<Vec<Issuer>> {
        Arc::clone(&self.0.lock().current)
    }

    /// Fetches the keys that issuers publish again and again, until dropped. Each source has
    /// the index of its issuer.
    pub(super) async fn keep_fetching(self, sources: Vec<(usize, KeySource)>) {
        let follow = |(at, source): (usize, KeySource)| {
            let issuers = self.clone();
            issuer_keys::follow(source, move |keys| {
                let mut state = issuers.0.lock();
                state.fetched.insert(at, keys);
                state.update_current();
            })
        };
        futures::future::join_all(sources.into_iter().map(follow)).await;
    }

    /// Reloads public keys whose files have changed, until dropped. The whole configuration
    /// is read for that, but nothing else of it is applied.
    pub(super) async fn keep_reloading(self, paths: Paths) {
        let is_public = |issuer: &Issuer| matches!(issuer.keys, Keys::Public(_));
        if !self.current().iter().any(is_public) {
            return;
        }
        loop {
            tokio::time::sleep(KEY_POLL).await;
            let paths = paths.clone();
            let read = tokio::task::spawn_blocking(move || config_loader::load(&paths)).await;
            // Errors are logged by the watch of the configuration, and a file that is half
            // written is whole the next time.
            let Ok(Ok(loaded)) = read else { continue };
            let mut state = self.0.lock();
            if let Some(issuers) =
                token::with_new_keys(&state.configured, &loaded.config.auth.issuers)
            {
                state.configured = issuers;
                state.update_current();
                tracing::info!("the keys of an issuer have changed");
            }
        }
    }
}

/// A function that returns the access policy. API keys are read again when their file has
/// changed, so a new or revoked key counts 20 ms later.
fn policy(
    config: &Config,
    file: PathBuf,
    operator: Key,
    issuers: Issuers,
) -> Box<dyn Fn() -> Arc<Policy> + Send + Sync> {
    let auth = config.auth.clone();
    let make = move |keys: &KeyRing, tokens: &[Issuer]| {
        let mut keys = keys.clone();
        keys.keys.push(operator.clone());
        let anonymous = if auth.required { Anonymous::Refused } else { Anonymous::Allowed };
        Arc::new(Policy { anonymous, keys, tokens: tokens.to_vec(), scope: auth.scope.clone() })
    };
    let tokens = issuers.current();
    let without_keys = make(&KeyRing::default(), &tokens);
    let state = AccessState {
        key_file: PolledFile::at(file),
        keys: KeyRing::default(),
        tokens,
        policy: without_keys,
    };
    let state = Mutex::new(state);
    Box::new(move || {
        let mut state = state.lock();
        let tokens = issuers.current();
        let mut is_new = !Arc::ptr_eq(&tokens, &state.tokens);
        if state.key_file.has_changed() {
            match key_file::load(state.key_file.file()) {
                Ok(keys) => (state.keys, is_new) = (keys, true),
                Err(error) => {
                    tracing::error!("the keys stay as they were: {error:#}");
                    state.key_file.mark_changed();
                }
            }
        }
        if is_new {
            state.policy = make(&state.keys, &tokens);
            state.tokens = tokens;
        }
        Arc::clone(&state.policy)
    })
}

/// The last access policy, and what it was made from.
struct AccessState {
    key_file: PolledFile,
    keys: KeyRing,
    tokens: Arc<Vec<Issuer>>,
    policy: Arc<Policy>,
}

fn hosts(config: &Config) -> Hosts {
    let serve = &config.serve;
    if serve.hosts.iter().any(|host| host == "*") {
        return Hosts::Any;
    }
    // Beside the configured hosts, pages of a listed origin and our public URL are allowed.
    let own = config.auth.public_url.iter().map(|url| host(url).to_owned());
    let pages = config.auth.origins.iter().map(|origin| authority(origin).to_owned());
    let named = serve.hosts.iter().map(|name| authority(name).to_owned());
    let named: Vec<String> = named.chain(pages).chain(own).collect();
    if named.is_empty() { Hosts::Loopback } else { Hosts::Named(named) }
}

/// Host and port of a URL; other text as it is.
fn authority(address: &str) -> &str {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    rest.split('/').next().unwrap_or(rest)
}

/// The host of an address.
fn host(address: &str) -> &str {
    let authority = authority(address);
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        Some(_) | None => authority,
    }
}
