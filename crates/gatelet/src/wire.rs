//! Where things are connected: the only place that starts programs, opens
//! connections and knows every crate.

mod artifact_store;
pub(crate) mod bound_ledger;
mod callers;
pub(crate) mod chain;
mod connector;
mod credential;
pub(crate) mod identity;
mod listing_store;
pub(crate) mod memory;
mod mirror;
mod observers;
mod own_manifest;
mod probe;
mod sandboxed;
mod scripting;
mod seal;
pub(crate) mod shared;
mod shutdown;
mod single;
pub(crate) mod skills;
mod stages;
mod stoppable_input;
mod traced;
mod trust;
mod watch;
pub(crate) mod webhook;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ::skills::Library;
use artifacts::gate;
use bound_ledger::BoundLedger;
use catalog::Catalog;
use console::calls::CallLog;
use futures::StreamExt;
use gateway::gateway::{AnswerParts, Controls, PolicyParts, RosterParts};
use gateway::unmatched::Written;
use gateway::{Gateway, Parts, Surface};
use mcp::connect::{Certificates, Shutdown};
use mcp::serve::trace::Tracing;
use parking_lot::Mutex;
use policy::approval::Approvals;
use policy::approval::queued::Page;
use policy::trust::{Digest, LedgerStore, TrustLevel};
use roster::{self, Indexing, Start};
use store::clock::System;
use telemetry::figures::Overview;
use telemetry::metrics::Readings;
use telemetry::traces::{self, Peer};
use tool::clock::Clock;
use tool::{Event, Finding, ProviderSource, Tool};
use web::manifest::Manifest;

pub(crate) use credential::{entry, kept, vault};
pub(crate) use probe::{Probed, probe, smallest};
pub(crate) use sandboxed::{confined, is_refusal};
pub(crate) use shutdown::{HangUp, asked_to_end, children_have_ended};
pub(crate) use stoppable_input::StoppableInput;
pub(crate) use watch::{Watched, watch};

use crate::approval_queue;
use crate::ledger_file::LedgerFile;
use crate::mounts::{self, MountedServer, Mounts};
use crate::time::unix_millis;
use crate::usage_file;
use config::{Config, Learning, Loaded, Mount, Reach, Upstream};
use connector::{Remote, Site};
use identity::Identities;
use listing_store::ListingDirectory;
use mirror::{KeyFile, LedgerEntries, LocalCopy, Mirror};
use nested::{CashConnector, Nesting, OpenSession};
use observers::{Life, Observers};
use own_manifest::{Contents, OwnManifest};
use shared::Shared;
use single::Single;

/// When upstreams are started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StartPolicy {
    /// As the configuration says.
    Configured,
    /// Only when something is asked of them, for a command that is over soon.
    OnDemand,
    /// All of them, at once.
    AllAtOnce,
}

/// The page of a request for approval, once there is a console.
fn page(console: &Arc<OnceLock<String>>) -> Page {
    let console = Arc::clone(console);
    Arc::new(move |number| Some(format!("{}/approvals/{number}", console.get()?)))
}

/// How long a page waits for figures that are still counted.
const GLANCE: Duration = Duration::from_millis(100);

/// What a gateway is wired from, kept to wire it anew when the configuration
/// changes.
#[derive(Clone)]
pub(crate) struct Wiring {
    state: PathBuf,
    listings: Arc<ListingDirectory>,
    start_policy: StartPolicy,
    clock: Arc<dyn Clock>,
    observers: Arc<Observers>,
    usage: Arc<usage_file::UsageFile>,
    pub(crate) mounts: Arc<Mounts>,
    controls: Arc<stages::Current>,
    own_manifest: Arc<OwnManifest>,
    /// What each label stands for.
    identities: Identities,
    /// How often each upstream was restarted by hand.
    restarts: Arc<Mutex<HashMap<String, u64>>>,
    /// Tells this gatelet from every other.
    gatelet_id: Arc<str>,
    /// The configurations that are served on the way to a program.
    chain: Arc<str>,
    current: Arc<Mutex<AppliedConfig>>,
    approvals: Arc<Approvals>,
    /// Where the console is, once it is served.
    console: Arc<OnceLock<String>>,
    /// Ends all upstreams together.
    shutdown: Shutdown,
    /// What is shared with other replicas, if there are any.
    shared: Option<Shared>,
}

/// The configuration that was taken up last, with its skills.
struct AppliedConfig {
    config: Config,
    skills: Library,
    /// Of the files of the skills.
    digest: [u8; 32],
}

impl AppliedConfig {
    fn new(config: &Config, skills: Library) -> AppliedConfig {
        AppliedConfig { config: config.clone(), skills, digest: skills::digest(config) }
    }
}

impl Wiring {
    pub(crate) fn new(
        state: &Path,
        start_policy: StartPolicy,
        loaded: &Loaded,
    ) -> anyhow::Result<Wiring> {
        let config = &loaded.config;
        let shared = config.state.as_ref().map(Shared::new);
        let listings = Arc::new(ListingDirectory::new(&state.join("listings"), shared.clone()));
        let clock: Arc<dyn Clock> = Arc::new(System::start());
        let gatelet_id: Arc<str> = format!("{:032x}", rand::random::<u128>()).into();
        let life = match start_policy {
            StartPolicy::Configured => Life::Stays,
            StartPolicy::OnDemand | StartPolicy::AllAtOnce => Life::Command,
        };
        let observers = Arc::new(Observers::new(config, life, &clock, &gatelet_id)?);
        let console: Arc<OnceLock<String>> = Arc::default();
        let approvals = approval_queue::open(state, loaded.file.as_deref(), &config.approvals);
        let approvals = match &config.approvals.webhook {
            Some(hook) => {
                approvals.announced_to(Arc::new(webhook::Webhook::new(hook, page(&console))?))
            }
            None => approvals,
        };
        let approvals = Arc::new(approvals);
        Ok(Wiring {
            state: state.to_owned(),
            listings,
            start_policy,
            observers,
            clock,
            usage: Arc::new(usage_file::UsageFile::at(state)),
            mounts: Arc::new(Mounts::open(state, &config.mounts)),
            controls: Arc::new(stages::Current::new(Arc::clone(&approvals), page(&console))),
            approvals,
            console,
            own_manifest: Arc::new(OwnManifest::new(config)),
            identities: Identities::default(),
            restarts: Arc::default(),
            chain: chain::with(loaded.file.as_deref()).into(),
            gatelet_id,
            current: Arc::new(Mutex::new(AppliedConfig::new(config, Library::default()))),
            shutdown: Shutdown::default(),
            shared,
        })
    }

    /// What is shared with other replicas, if there are any.
    pub(crate) fn shared(&self) -> Option<&Shared> {
        self.shared.as_ref()
    }

    /// Takes over what other replicas know, as far as the store answers.
    pub(crate) async fn learn(&self) {
        let mirrors: Vec<Mirror> = self.mirrors().collect();
        let aligned = futures::future::join_all(mirrors.iter().map(Mirror::begin));
        futures::join!(aligned, self.listings.learn());
    }

    /// Keeps what replicas have in common in line, until dropped.
    pub(crate) async fn keep_in_line(self) {
        futures::future::join_all(self.mirrors().map(Mirror::keep)).await;
    }

    fn mirrors(&self) -> impl Iterator<Item = Mirror> {
        let copies = |shared: &Shared| -> Vec<Mirror> {
            let keys = Arc::new(KeyFile(self.state.clone())) as _;
            let ledger = Arc::new(LedgerEntries::at(&self.state)) as _;
            let mirror = |copy: Arc<dyn LocalCopy>| {
                let documents = Arc::new(shared.store().clone());
                Mirror::new(copy, documents, shared.seal().clone(), &self.state)
            };
            [keys, ledger].into_iter().map(mirror).collect()
        };
        self.shared.as_ref().map(copies).into_iter().flatten()
    }

    /// The gateway of a configuration. Starts nothing yet.
    pub(crate) fn gateway(&self, loaded: &Loaded) -> Gateway {
        let config = &loaded.config;
        let clock = Arc::clone(&self.clock);
        let skills = skills::library(config);
        self.apply(config, &skills);
        let upstreams = self.upstreams(config);
        let mut parts = Parts::new(upstreams, Arc::clone(&clock));
        parts.skills = skills;
        parts.server.surface = config.serve.surface;
        parts.server.manifest = Some(self.manifest());
        parts.server.meta = meta(config);
        parts.server.listed = config.listed.clone();
        parts.roster = RosterParts {
            config: self.roster_config(config),
            inspection: config.controls.inspection.clone(),
            listing_store: Arc::clone(&self.listings) as _,
        };
        parts.policies = PolicyParts {
            stages: self.controls.first(
                config,
                &self.state,
                self.shared.as_ref(),
                &self.identities,
                &clock,
            ),
            visibility: config.visibility.clone().into(),
            approvals: Arc::clone(&self.approvals),
        };
        parts.answers = AnswerParts {
            gate: gate(config),
            shapes: config.shapes.clone(),
            artifacts: artifact_store::store(
                &config.artifacts,
                &self.state,
                self.shared.as_ref(),
                &clock,
            ),
            raw: config.artifacts.raw,
            scripting: scripting::scripting(&config.scripts),
            recipes: scripting::recipes(&config.scripts),
            recipe_store: scripting::recipe_store(&config.scripts),
        };
        parts.observers.records = self.observers.sink();
        if config.learning == Learning::On {
            parts.observers.usage = Arc::clone(&self.usage) as _;
        }
        Gateway::new(parts)
    }

    /// What clients see by a surface, traced if somebody traces.
    pub(crate) fn served(
        &self,
        gateway: &Gateway,
        surface: Surface,
        transport: &'static str,
    ) -> Arc<dyn ProviderSource> {
        let source = gateway.surface(surface);
        let peer = || Peer { transport, ..Peer::default() };
        match self.observers.tracer() {
            Some(tracer) => traces::serving(tracer, source, peer()),
            None => source,
        }
    }

    /// Whether transports say what they know for traces.
    pub(crate) fn tracing(&self) -> Tracing {
        if self.observers.tracer().is_some() { Tracing::On } else { Tracing::Off }
    }

    /// Begins to send traces, if somebody traces.
    pub(crate) fn start_sending(&self) {
        self.observers.start();
    }

    /// Everything for Prometheus; `None` where there are no metrics.
    pub(crate) fn metrics(&self, readings: Readings) -> Option<String> {
        self.observers.metrics(readings)
    }

    /// How the gate fares over the last hour.
    ///
    /// The definitions of thousands of tools take a while to count, so that is
    /// done where nobody's call waits for it.
    pub(crate) async fn overview(&self, gateway: &Gateway) -> Overview {
        let (wiring, gateway) = (self.clone(), gateway.clone());
        let counted =
            tokio::task::spawn_blocking(move || wiring.observers.overview(&gateway)).await;
        counted.unwrap_or_else(|_| self.observers.glance())
    }

    /// The same for a page, which would rather not wait: what is not counted in time
    /// is there when it is renewed.
    pub(crate) async fn glance(&self, gateway: &Gateway) -> Overview {
        let counted = tokio::time::timeout(GLANCE, self.overview(gateway)).await;
        counted.unwrap_or_else(|_| self.observers.glance())
    }

    /// The last calls, for whoever looks at them.
    pub(crate) fn call_log(&self) -> Arc<CallLog> {
        self.observers.call_log()
    }

    /// Whether somebody vouched for a tool (`upstream/tool`) exactly as it is now.
    pub(crate) fn vouches_for(&self, path: &str, tool: &Tool) -> bool {
        let ledger = BoundLedger::new(LedgerFile::at(&self.state), self.identities.clone());
        let Ok(ledger) = ledger.read() else { return false };
        let known = ledger.get(path).filter(|entry| entry.state != TrustLevel::Untrusted);
        known.is_some_and(|entry| entry.digest == Digest::of(tool))
    }

    /// Vouches for a tool (`upstream/tool`) as it is now, as much as for what it
    /// was before.
    pub(crate) fn vouch_for(&self, path: &str, tool: &Tool) -> anyhow::Result<()> {
        let ledger = BoundLedger::new(LedgerFile::at(&self.state), self.identities.clone());
        let known = ledger.read()?.get(path).map(|entry| entry.state);
        let level = known.filter(|level| *level != TrustLevel::Untrusted);
        let (level, now) = (level.unwrap_or(TrustLevel::Verified), unix_millis());
        ledger.change(&mut |ledger| ledger.set(path, tool, level, now))?;
        Ok(())
    }

    /// Where the console is, if it is served.
    pub(crate) fn console_address(&self) -> Option<String> {
        self.console.get().cloned()
    }

    /// Says where the console is, once.
    pub(crate) fn serve_console_at(&self, address: &str) {
        let _ = self.console.set(address.to_owned());
    }

    /// What the configuration names and nothing is called by, as far as is known
    /// without starting anything.
    pub(crate) fn unmatched(&self, gateway: &Gateway) -> Vec<Finding> {
        let Config { controls, shapes, trust, visibility, .. } = self.current.lock().config.clone();
        gateway.unmatched(&Written {
            rules: &controls.rules,
            rates: &controls.rates,
            cache: &controls.cache,
            shapes: &shapes,
            retry: &controls.calls.retry,
            trust: &trust,
            visibility: &visibility,
        })
    }

    /// Logs it.
    pub(crate) fn log_unmatched(&self, gateway: &Gateway) {
        for finding in self.unmatched(gateway) {
            tracing::warn!("{}: {}", finding.subject, finding.message);
        }
    }

    fn roster_config(&self, config: &Config) -> roster::Config {
        roster::Config {
            meaning: config.meaning,
            // A command asks once; a gatelet that stays should not keep its
            // clients waiting while it reads thousands of tools.
            indexing: match self.start_policy {
                StartPolicy::Configured => Indexing::Ahead,
                StartPolicy::OnDemand | StartPolicy::AllAtOnce => Indexing::WhenNeeded,
            },
            gatelet_id: Arc::clone(&self.gatelet_id),
            ..roster::Config::default()
        }
    }

    /// Asks every upstream to end, whoever still holds it, and waits until they
    /// have: sessions are deleted, and programs get the time to end by themselves.
    pub(crate) async fn end_upstreams(&self, limit: Duration) {
        self.shutdown.end_all(limit).await;
    }

    /// Waits until every record, trace and habit is written, at the end of the
    /// process.
    pub(crate) async fn close(&self) {
        self.usage.flush();
        self.observers.close().await;
    }

    /// Whether this configuration, and the skills as they are now, are what was
    /// taken up last. Where gatelet listens counts until it ends.
    pub(crate) fn has_applied(&self, config: &Config) -> bool {
        let current = self.current.lock();
        let serve = current.config.serve.clone();
        current.config == Config { serve, ..config.clone() }
            && current.digest == skills::digest(config)
    }

    /// Takes up a changed configuration without dropping a session.
    pub(crate) fn reload(&self, gateway: &Gateway, config: &Config) {
        let skills = skills::library(config);
        self.apply(config, &skills);
        self.mounts.reconfigure(&config.mounts);
        // Before the upstreams, which are looked at by what is expected of them.
        gateway.control(Controls {
            stages: self.controls.next(config, &self.state, &self.identities),
            gate: gate(config),
            shapes: config.shapes.clone(),
            meta: meta(config),
            listed: config.listed.clone(),
            inspection: config.controls.inspection.clone(),
        });
        gateway.set_recipes(scripting::recipes(&config.scripts));
        gateway.reload(self.upstreams(config), skills);
        gateway.set_visibility(config.visibility.clone());
        self.present(gateway);
    }

    /// Stops an upstream and starts it again; what it is called, if there is
    /// one that is meant.
    pub(crate) fn restart(&self, gateway: &Gateway, label: &str) -> Option<String> {
        let snapshot = gateway.roster().default_pool().snapshot();
        let upstreams = snapshot.upstreams().iter();
        let mut labels = upstreams.map(|upstream| upstream.label().to_owned());
        let label = labels.find(|known| catalog::name::same(known, label))?;
        *self.restarts.lock().entry(label.clone()).or_default() += 1;
        self.remount(gateway);
        Some(label)
    }

    /// What makes an upstream another for the roster, once it was restarted.
    fn restarted(&self, fingerprint: String, label: &str) -> String {
        match self.restarts.lock().get(label) {
            Some(times) => format!("{fingerprint} {times}"),
            None => fingerprint,
        }
    }

    /// Takes up what is mounted now.
    pub(crate) fn remount(&self, gateway: &Gateway) {
        let config = self.current.lock().config.clone();
        let skills = skills::library(&config);
        self.apply(&config, &skills);
        gateway.reload(self.upstreams(&config), skills);
        self.present(gateway);
    }

    /// Looks after what is kept elsewhere, until dropped.
    pub(crate) async fn look_after_artifacts(self) {
        let config = self.current.lock().config.artifacts.clone();
        artifact_store::look_after(&config, &self.state, self.shared.as_ref(), &self.clock).await;
    }

    /// Says what there is now whenever that changes, until dropped.
    pub(crate) async fn keep_presented(self, gateway: Gateway) {
        let mut events = gateway.roster().default_pool().events();
        self.present(&gateway);
        while let Some(event) = events.next().await {
            if let Event::Changed(_) = event {
                self.present(&gateway);
            }
        }
    }

    /// Has gatelet say of itself what is so now.
    fn present(&self, gateway: &Gateway) {
        let pool = gateway.roster().pools().into_iter().next();
        let snapshot = pool.map(|pool| pool.snapshot());
        self.draw(snapshot.as_ref().map(|snapshot| &*snapshot.catalog));
    }

    /// Tells what was last presented; nothing before it was first drawn.
    pub(crate) fn presented(&self) -> impl Fn() -> Option<Manifest> + Send + Sync + use<> {
        let card = Arc::clone(&self.own_manifest);
        move || card.shown()
    }

    /// What gatelet says of itself, now and whenever it is asked.
    fn manifest(&self) -> gateway::Manifest {
        let (first, card) = (self.draw(None), Arc::clone(&self.own_manifest));
        Arc::new(move || card.shown().as_ref().unwrap_or(&first).to_json())
    }

    fn draw(&self, catalog: Option<&Catalog>) -> Manifest {
        let AppliedConfig { config, skills, .. } = &*self.current.lock();
        let mounts = self.mounts.with_labels(mounts::taken(config));
        let manifest =
            self.own_manifest.draw(&Contents { config, mounts: &mounts, skills, catalog });
        self.mounts.served_at(&manifest.endpoint);
        manifest
    }

    fn apply(&self, config: &Config, skills: &Library) {
        tracing::debug!(upstreams = config.upstreams.len(), "taking up the configuration");
        *self.current.lock() = AppliedConfig::new(config, skills.clone());
    }

    fn upstreams(&self, config: &Config) -> Vec<roster::Upstream> {
        let mut all = self.configured(config);
        let places = self.mounts.with_labels(mounts::taken(config));
        all.extend(places.iter().map(|place| self.mounted(config, place)));
        all
    }

    fn configured(&self, config: &Config) -> Vec<roster::Upstream> {
        let own = if config.builtin { builtin::groups(&self.state) } else { Vec::new() };
        let labels = config.builtin_labels().into_iter().map(|(label, _)| label);
        let own = own.into_iter().zip(labels).map(|(group, label)| roster::Upstream {
            fingerprint: env!("CARGO_PKG_VERSION").to_owned(),
            known: Some(group.provider.listing()),
            ..roster::Upstream::new(&label, Arc::new(connector::Local(group.provider)))
        });
        own.chain(config.upstreams.iter().map(|upstream| self.upstream(config, upstream))).collect()
    }

    /// A connector whose sessions are traced, if somebody traces.
    fn traced(
        &self,
        connector: Arc<dyn roster::Connector>,
        upstream: &Upstream,
    ) -> Arc<dyn roster::Connector> {
        traced::traced(connector, self.observers.tracer(), &upstream.label, &upstream.reach)
    }

    fn nesting<S: OpenSession + 'static>(
        &self,
        sessions: S,
        upstream: &Upstream,
    ) -> Arc<dyn roster::Connector> {
        let (nesting, gatelet_id) = (nesting(upstream), Arc::clone(&self.gatelet_id));
        Arc::new(CashConnector { sessions, nesting, gatelet_id })
    }

    fn upstream(&self, config: &Config, upstream: &Upstream) -> roster::Upstream {
        self.identities.note(upstream);
        let upstream = &chain::with_chain(&upstream.served(), &self.chain);
        let start = match (self.start_policy, upstream.start) {
            (StartPolicy::Configured, config::Start::Eager) | (StartPolicy::AllAtOnce, _) => {
                Start::Eager
            }
            (StartPolicy::Configured, config::Start::OnDemand) | (StartPolicy::OnDemand, _) => {
                Start::OnDemand
            }
        };
        let vault = credential::vault(&self.state);
        let shown = credential::for_upstream(upstream, None, &vault);
        let remote = Remote::new(upstream, Arc::clone(&self.listings), shown, &self.shutdown);
        let fingerprint = pinned(remote.fingerprint(), config, &upstream.label);
        let fingerprint = self.restarted(fingerprint, &upstream.label);
        // Whoever says what it is wants it listed again.
        let fingerprint = match nesting(upstream) {
            Nesting::IfDeclared => fingerprint,
            said @ (Nesting::Expected | Nesting::Never) => format!("{fingerprint} {said:?}"),
        };
        let mut known = None;
        let connector: Arc<dyn roster::Connector> = match &upstream.reach {
            Reach::Content { database, prefix, rules } => {
                let config = rules.config(database.as_deref(), prefix.as_deref());
                known = Some(Arc::new(content::listing(&config)));
                Arc::new(Site::new(config))
            }
            Reach::Program { .. } | Reach::Address { .. } | Reach::Nowhere { .. } => {
                let access = &upstream.access;
                if access.per_caller || !access.callers.is_empty() {
                    let listings = Arc::clone(&self.listings);
                    let sessions =
                        callers::PerCallerSessions::new(remote, upstream, listings, vault);
                    self.nesting(sessions, upstream)
                } else if let Some(shared) = self.shared.clone().filter(|_| upstream.single) {
                    self.nesting(Single::new(remote, shared), upstream)
                } else {
                    self.nesting(remote, upstream)
                }
            }
        };
        roster::Upstream {
            label: upstream.label.clone(),
            description: upstream.description.clone(),
            fingerprint,
            connector: self.traced(connector, upstream),
            start,
            idle_stop: upstream.idle_stop,
            start_timeout: upstream.start_timeout,
            call_timeout: upstream.call_timeout,
            known,
        }
    }
}

impl Wiring {
    /// A server that was found by its manifest. One whose manifest is not
    /// believed, or has not come yet, keeps its place and says why.
    fn mounted(&self, config: &Config, place: &MountedServer) -> roster::Upstream {
        let Mount { source, headers, authority } = &place.mount;
        let reach = match &place.manifest {
            Some((_, endpoint)) => Reach::Address {
                url: endpoint.to_string(),
                headers: headers.clone(),
                wire: endpoint.path().ends_with("/sse").then_some(config::Wire::Sse),
                certificates: Certificates { authority: authority.clone(), identity: None },
            },
            None => {
                let problem = place.problem.as_deref();
                let reason = problem.unwrap_or("its manifest has not come yet").to_owned();
                Reach::Nowhere { reason }
            }
        };
        let upstream = Upstream::mounted(&place.label, place.description(), reach);
        let public = place.manifest.as_ref().is_some_and(|(_, url)| !source.reaches_private(url));
        let shown = credential::for_upstream(&upstream, None, &credential::vault(&self.state));
        let mut remote = Remote::new(&upstream, Arc::clone(&self.listings), shown, &self.shutdown);
        if public {
            remote = remote.public_only();
        }
        roster::Upstream {
            fingerprint: pinned(remote.fingerprint(), config, &upstream.label),
            connector: self.traced(self.nesting(remote, &upstream), &upstream),
            ..self.upstream(config, &upstream)
        }
    }
}

/// When an upstream is taken for a CaSH server.
fn nesting(upstream: &Upstream) -> Nesting {
    match upstream.kind {
        Some(config::Kind::Cash) => Nesting::Expected,
        Some(config::Kind::Mcp) => Nesting::Never,
        Some(config::Kind::Content) | None => Nesting::IfDeclared,
    }
}

/// What tells an upstream from others. What is expected of it counts: whoever
/// pins another listing wants the upstream looked at again.
fn pinned(fingerprint: &str, config: &Config, label: &str) -> String {
    match config.controls.inspection.pins.get(label) {
        Some(pin) => format!("{fingerprint} {} {:?}", pin.hash, pin.strictness),
        None => fingerprint.to_owned(),
    }
}

/// How the gateway and proxy surfaces behave.
fn meta(config: &Config) -> gateway::surface::meta::Config {
    let run_tool = config.scripts.enabled && config.scripts.run_tool;
    gateway::surface::meta::Config { run_tool, ..config.controls.meta.clone() }
}

fn gate(config: &Config) -> gate::Config {
    gate::Config {
        limit: config.gate.limit,
        ceiling: config.gate.ceiling,
        gated_is_error: config.gate.gated_is_error,
        same_data: match config.gate.same_data {
            config::SameData::Text => gate::SameData::Text,
            config::SameData::Structured => gate::SameData::Structured,
            config::SameData::Both => gate::SameData::Both,
        },
    }
}
