//! What is at which path, and who may come in: every surface under its name,
//! the chosen one at `/mcp`, the manifest where it is looked for.

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
use web::site::{Parts, Site};

use super::admin::AdminApi;
use super::console::{self, ConsolePages};
use super::issuer_keys;
use super::metrics::Page;
use super::serving::Serving;
use crate::changed_file::ChangedFile;
use crate::config_loader;
use crate::key_file;
use crate::paths::Paths;
use crate::secret;
use crate::time::unix_seconds;
use crate::wire::shared::Shared;
use config::{Config, KeySource};

/// Everything that is answered over HTTP.
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
        tracing: wiring.tracing(),
        ..Options::default()
    };
    let endpoint = |path: &str, surface| {
        let replicas = wiring.shared().map(|shared| shared.replicas(path));
        let served = wiring.served(gateway, surface, "tcp");
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
        wiring.serve_console_at(&console_address(config));
        Box::new(ConsolePages(Arc::clone(console))) as Box<dyn Pages>
    });
    let servers = config.auth.issuers.iter().filter_map(|issuer| issuer.issuer.clone());
    let desk = AdminApi { wiring: wiring.clone(), gateway: gateway.clone() };
    let shared = wiring.shared().cloned();
    let load = Arc::new(OnceLock::new());
    let metrics = config.metrics.on_gate.then(|| Page::new(wiring, gateway, Arc::clone(&load)));
    let site = Site::new(Parts {
        endpoints,
        old: Some(("/sse".to_owned(), "/messages".to_owned(), main)),
        policy: policy(config, key_file::file(state), operator, issuers),
        admin: Some(Box::new(desk)),
        pages,
        metrics: metrics.map(|page| Box::new(page) as _),
        manifest: Box::new(wiring.presented()),
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
    // The page is part of the site and tells of it: a weak pointer, or neither
    // would ever be gone.
    load.set(site.downgrade()).ok();
    site
}

/// Where the console is, as an operator writes it.
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

/// The names beside this machine's own by which the console may be asked.
fn console_hosts(config: &Config) -> Vec<String> {
    let own = config.auth.public_url.iter().map(|url| host(url).to_owned());
    let named =
        config.serve.hosts.iter().filter(|name| *name != "*").map(|name| host(name).to_owned());
    own.chain(named).collect()
}

/// Whether requests can be answered in full: the store that replicas share, if
/// there is one, can be used.
async fn is_ready(shared: Option<&Shared>) -> Result<(), String> {
    match shared {
        Some(shared) => shared.check().await.map_err(|error| error.to_string()),
        None => Ok(()),
    }
}

/// A key for this machine's operator, good for as long as gatelet runs.
pub(super) fn operator(config: &Config) -> NewKey {
    let mut fresh = KeyRing::default()
        .create("operator", secret::random(), unix_seconds())
        .expect("the name is legal and nobody else has it");
    fresh.key.scopes.insert(SCOPE.to_owned());
    fresh.key.scopes.extend(config.auth.scope.clone());
    fresh
}

/// Whose tokens are accepted. Clones are the same.
#[derive(Clone)]
pub(super) struct Issuers(Arc<Mutex<IssuerState>>);

struct IssuerState {
    /// As the configuration has them.
    written: Vec<Issuer>,
    /// Keys that were fetched, by the number of their issuer.
    fetched: BTreeMap<usize, Keys>,
    /// Both together.
    now: Arc<Vec<Issuer>>,
}

impl IssuerState {
    fn join(&mut self) {
        let joined = self.written.iter().enumerate().map(|(at, issuer)| {
            let keys = self.fetched.get(&at).unwrap_or(&issuer.keys).clone();
            Issuer { keys, ..issuer.clone() }
        });
        self.now = Arc::new(joined.collect());
    }
}

/// How often the public keys of issuers are looked at.
const LOOK: Duration = Duration::from_secs(5);

impl Issuers {
    pub(super) fn new(config: &Config) -> Issuers {
        let written = config.auth.issuers.clone();
        let now = Arc::new(written.clone());
        Issuers(Arc::new(Mutex::new(IssuerState { written, fetched: BTreeMap::new(), now })))
    }

    fn now(&self) -> Arc<Vec<Issuer>> {
        Arc::clone(&self.0.lock().now)
    }

    /// Fetches the keys that issuers publish, again and again, until dropped.
    pub(super) async fn fetch(self, sources: Vec<(usize, KeySource)>) {
        let follow = |(at, source): (usize, KeySource)| {
            let issuers = self.clone();
            issuer_keys::follow(source, move |keys| {
                let mut state = issuers.0.lock();
                state.fetched.insert(at, keys);
                state.join();
            })
        };
        futures::future::join_all(sources.into_iter().map(follow)).await;
    }

    /// Takes up public keys that have changed, until dropped. The configuration
    /// knows where they are, so it is read; nothing else of it is taken up.
    pub(super) async fn keep(self, paths: Paths) {
        let is_public = |issuer: &Issuer| matches!(issuer.keys, Keys::Public(_));
        if !self.now().iter().any(is_public) {
            return;
        }
        loop {
            tokio::time::sleep(LOOK).await;
            let paths = paths.clone();
            let read = tokio::task::spawn_blocking(move || config_loader::load(&paths)).await;
            // What is wrong with a file is told by who watches it, and what is
            // half written is whole the next time.
            let Ok(Ok(loaded)) = read else { continue };
            let mut state = self.0.lock();
            if let Some(issuers) = token::renewed(&state.written, &loaded.config.auth.issuers) {
                state.written = issuers;
                state.join();
                tracing::info!("the keys of an issuer have changed");
            }
        }
    }
}

/// Who is let in. The keys are read again when their file has changed, so a
/// key that was just made or revoked counts for the next human.
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
    let tokens = issuers.now();
    let nobody = make(&KeyRing::default(), &tokens);
    let known = AccessState {
        file_state: ChangedFile::at(file),
        keys: KeyRing::default(),
        tokens,
        policy: nobody,
    };
    let known = Mutex::new(known);
    Box::new(move || {
        let mut known = known.lock();
        let tokens = issuers.now();
        let mut is_new = !Arc::ptr_eq(&tokens, &known.tokens);
        if known.file_state.is_due() {
            match key_file::load(known.file_state.file()) {
                Ok(keys) => (known.keys, is_new) = (keys, true),
                Err(error) => {
                    tracing::error!("the keys stay as they were: {error:#}");
                    known.file_state.mark_changed();
                }
            }
        }
        if is_new {
            known.policy = make(&known.keys, &tokens);
            known.tokens = tokens;
        }
        Arc::clone(&known.policy)
    })
}

/// What the policy was last made of.
struct AccessState {
    file_state: ChangedFile,
    keys: KeyRing,
    tokens: Arc<Vec<Issuer>>,
    policy: Arc<Policy>,
}

fn hosts(config: &Config) -> Hosts {
    let serve = &config.serve;
    if serve.hosts.iter().any(|host| host == "*") {
        return Hosts::Any;
    }
    // A page of a listed origin is let in by the endpoint, too, and whoever
    // asks for our own address means us.
    let own = config.auth.public_url.iter().map(|url| host(url).to_owned());
    let pages = config.auth.origins.iter().map(|origin| authority(origin).to_owned());
    let named = serve.hosts.iter().map(|name| authority(name).to_owned());
    let named: Vec<String> = named.chain(pages).chain(own).collect();
    if named.is_empty() { Hosts::Loopback } else { Hosts::Named(named) }
}

/// Host and port of an address, or what is no address as it is.
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
