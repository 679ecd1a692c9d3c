//! Puts a gatelet together: the only place that knows every crate.
//!
//! [`Wiring`] makes a [`Gateway`] from a configuration, and changes it in place when
//! the configuration, the mounts or the catalog change. Each file below makes one
//! part: upstreams and the ways to connect to them, the policies before a call, the
//! stores, the observers of calls, and what replicas share. What a call does on its
//! way is decided in the crate `gateway`, and how clients reach it in `commands/serve`.

// Upstreams and how they are reached.
mod chain;
mod connector;
mod credential;
pub(crate) mod identity;
mod per_caller;
mod probe;
mod sandboxed;
mod single;
mod traced;
mod upstreams;

// What decides about a call, and what its answer is kept in.
mod artifact_store;
pub(crate) mod bound_ledger;
mod listing_store;
mod scripting;
pub(crate) mod skills;
mod stages;
mod trust;
pub(crate) mod webhook;

// What is told about calls and about this gatelet.
mod observers;
mod own_manifest;

// Replicas that serve together.
pub(crate) mod cluster;
mod mirror;
mod shared_replies;
mod signer;

// The process.
pub(crate) mod memory;
mod shutdown;
mod stoppable_input;
mod watch;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ::skills::Library;
use artifacts::gate;
use bound_ledger::BoundLedger;
use catalog::Catalog;
use futures::StreamExt;
use gateway::gateway::{AnswerParts, Controls, PolicyParts, RosterParts};
use gateway::unmatched::ConfiguredPatterns;
use gateway::{Gateway, GatewayParts};
use mcp::connect::Shutdown;
use parking_lot::Mutex;
use policy::approval::Approvals;
use policy::approval::queued::PageUrl;
use roster::{self, Indexing};
use store::clock::System;
use tool::clock::Clock;
use tool::{Event, Finding};
use web::manifest::Manifest;

pub(crate) use chain::refuse_cycle;
pub(crate) use credential::{load_grant, vault, vault_entry};
pub(crate) use probe::{Probed, cheapest_ask, probe};
pub(crate) use sandboxed::{confine_program, looks_like_refusal};
pub(crate) use shutdown::{HangUp, asked_to_end, children_have_ended};
pub(crate) use stoppable_input::StoppableInput;
pub(crate) use upstreams::StartPolicy;
pub(crate) use watch::{WatchedConfig, watch};

use crate::approval_queue;
use crate::ledger_file::LedgerFile;
use crate::mounts::{self, Mounts};
use crate::usage_file::UsageFile;
use cluster::Cluster;
use config::{Config, Learning, Loaded};
use identity::Identities;
use listing_store::ListingDirectory;
use mirror::Mirror;
use observers::{Lifetime, Observers};
use own_manifest::{ManifestInputs, OwnManifest};
use upstreams::UpstreamFactory;

/// What a gateway is made from, kept to change it while it runs. Clones share
/// everything.
#[derive(Clone)]
pub(crate) struct Wiring {
    /// The state directory.
    state: PathBuf,
    clock: Arc<dyn Clock>,
    current: Arc<Mutex<AppliedConfig>>,
    upstreams: UpstreamFactory,
    pub(crate) mounts: Arc<Mounts>,
    stages: Arc<stages::CurrentStages>,
    approvals: Arc<Approvals>,
    usage: Arc<UsageFile>,
    observers: Arc<Observers>,
    own_manifest: Arc<OwnManifest>,
    /// The address of the console, once it is served.
    console: Arc<OnceLock<String>>,
    /// The other replicas, if there are any.
    cluster: Option<Cluster>,
}

/// The configuration that is in force, with its skills.
struct AppliedConfig {
    config: Config,
    skills: Library,
    /// Of the files of skills and recipes.
    files_digest: [u8; 32],
}

impl AppliedConfig {
    fn new(config: &Config, skills: Library) -> AppliedConfig {
        AppliedConfig { config: config.clone(), skills, files_digest: skills::digest(config) }
    }
}

/// Making a gateway.
impl Wiring {
    /// Opens what lies in the state directory. Connects to nothing yet.
    pub(crate) fn new(
        state: &Path,
        start_policy: StartPolicy,
        loaded: &Loaded,
    ) -> anyhow::Result<Wiring> {
        let config = &loaded.config;
        let cluster = config.state.as_ref().map(Cluster::new);
        let clock: Arc<dyn Clock> = Arc::new(System::start());
        let gatelet_id: Arc<str> = format!("{:032x}", rand::random::<u128>()).into();
        let lifetime = match start_policy {
            StartPolicy::Configured => Lifetime::Server,
            StartPolicy::OnDemand | StartPolicy::AllAtOnce => Lifetime::Command,
        };
        let observers = Arc::new(Observers::new(config, lifetime, &clock, &gatelet_id)?);
        let console: Arc<OnceLock<String>> = Arc::default();
        let file = loaded.file.as_deref();
        let shared = cluster.as_ref().map(Cluster::approval_store);
        let approvals = approval_queue::open(state, file, &config.approvals, shared);
        let approvals = match &config.approvals.webhook {
            Some(hook) => {
                let webhook = webhook::Webhook::new(hook, approval_page(&console))?;
                approvals.announced_to(Arc::new(webhook))
            }
            None => approvals,
        };
        let approvals = Arc::new(approvals);
        let stages = stages::CurrentStages::new(Arc::clone(&approvals), approval_page(&console));
        let mounts = Arc::new(Mounts::open(state, &config.mounts));
        let upstreams = UpstreamFactory {
            state: state.to_owned(),
            start_policy,
            listings: Arc::new(ListingDirectory::new(&state.join("listings"), cluster.clone())),
            mounts: Arc::clone(&mounts),
            observers: Arc::clone(&observers),
            identities: Identities::default(),
            restarts: Arc::default(),
            gatelet_id,
            chain: chain::with_own(loaded.file.as_deref()).into(),
            shutdown: Shutdown::default(),
            cluster: cluster.clone(),
        };
        Ok(Wiring {
            state: state.to_owned(),
            clock,
            current: Arc::new(Mutex::new(AppliedConfig::new(config, Library::default()))),
            upstreams,
            mounts,
            stages: Arc::new(stages),
            approvals,
            usage: Arc::new(UsageFile::at(state)),
            observers,
            own_manifest: Arc::new(OwnManifest::new(config)),
            console,
            cluster,
        })
    }

    /// Makes the gateway of a configuration. Starts no upstream yet.
    pub(crate) fn gateway(&self, loaded: &Loaded) -> Gateway {
        let config = &loaded.config;
        let clock = Arc::clone(&self.clock);
        let skills = skills::library(config);
        self.set_current(config, &skills);
        let mut parts = GatewayParts::new(self.upstreams.all(config), Arc::clone(&clock));
        parts.skills = skills;
        parts.server.surface = config.serve.surface;
        parts.server.manifest = Some(self.manifest_reader());
        parts.server.meta = meta_config(config);
        parts.server.listed = config.listed.clone();
        parts.roster = RosterParts {
            config: self.roster_config(config),
            inspection: config.controls.inspection.clone(),
            listing_store: Arc::clone(&self.upstreams.listings) as _,
        };
        parts.policies = PolicyParts {
            stages: self.stages.build(
                config,
                &self.state,
                self.cluster.as_ref(),
                &self.upstreams.identities,
                &clock,
            ),
            visibility: config.visibility.clone().into(),
            approvals: Arc::clone(&self.approvals),
        };
        parts.answers = AnswerParts {
            gate: gate_config(config),
            default_picks: config.shapes.clone(),
            artifacts: artifact_store::open(
                &config.artifacts,
                &self.state,
                self.cluster.as_ref(),
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

    fn roster_config(&self, config: &Config) -> roster::Config {
        roster::Config {
            meaning: config.meaning,
            // A command searches once; a gatelet that serves should not keep its
            // clients waiting while it indexes thousands of tools.
            indexing: match self.upstreams.start_policy {
                StartPolicy::Configured => Indexing::Ahead,
                StartPolicy::OnDemand | StartPolicy::AllAtOnce => Indexing::WhenNeeded,
            },
            gatelet_id: Arc::clone(&self.upstreams.gatelet_id),
            ..roster::Config::default()
        }
    }
}

/// Changing a gateway while it serves.
impl Wiring {
    /// Whether this configuration, with its skills and recipes as they are on disk, is
    /// in force. `[serve]` is not compared: it holds until the process ends.
    pub(crate) fn has_applied(&self, config: &Config) -> bool {
        let current = self.current.lock();
        let serve = current.config.serve.clone();
        current.config == Config { serve, ..config.clone() }
            && current.files_digest == skills::digest(config)
    }

    /// Applies a changed configuration without dropping a session.
    pub(crate) fn reload(&self, gateway: &Gateway, config: &Config) {
        let skills = skills::library(config);
        self.set_current(config, &skills);
        self.mounts.reconfigure(&config.mounts);
        // Before the upstreams, whose listings are inspected by these settings.
        gateway.control(Controls {
            stages: self.stages.rebuild(config, &self.state, &self.upstreams.identities),
            gate: gate_config(config),
            default_picks: config.shapes.clone(),
            meta: meta_config(config),
            listed: config.listed.clone(),
            inspection: config.controls.inspection.clone(),
        });
        gateway.set_recipes(scripting::recipes(&config.scripts));
        gateway.reload(self.upstreams.all(config), skills);
        gateway.set_visibility(config.visibility.clone());
        self.update_manifest(gateway);
    }

    /// Applies what is mounted now.
    pub(crate) fn remount(&self, gateway: &Gateway) {
        let config = self.current.lock().config.clone();
        let skills = skills::library(&config);
        self.set_current(&config, &skills);
        gateway.reload(self.upstreams.all(&config), skills);
        self.update_manifest(gateway);
    }

    /// Stops an upstream and starts it again. Returns its label as it is configured;
    /// `None` when no upstream is called that.
    pub(crate) fn restart(&self, gateway: &Gateway, label: &str) -> Option<String> {
        let snapshot = gateway.roster().default_pool().snapshot();
        let upstreams = snapshot.upstreams().iter();
        let mut labels = upstreams.map(|upstream| upstream.label().to_owned());
        let label = labels.find(|known| catalog::name::same(known, label))?;
        self.upstreams.count_restart(&label);
        self.remount(gateway);
        Some(label)
    }

    /// The configuration that was last taken up.
    pub(crate) fn applied_config(&self) -> Config {
        self.current.lock().config.clone()
    }

    fn set_current(&self, config: &Config, skills: &Library) {
        tracing::debug!(upstreams = config.upstreams.len(), "taking up the configuration");
        *self.current.lock() = AppliedConfig::new(config, skills.clone());
    }

    /// Names in the configuration (in rules, limits and the like) that match no tool,
    /// as far as that is known without starting anything.
    pub(crate) fn unmatched(&self, gateway: &Gateway) -> Vec<Finding> {
        let Config { controls, shapes, trust, visibility, .. } = self.current.lock().config.clone();
        gateway.unmatched(&ConfiguredPatterns {
            rules: &controls.rules,
            rates: &controls.rates,
            cache: &controls.cache,
            default_picks: &shapes,
            retry: &controls.calls.retry,
            trust: &trust,
            visibility: &visibility,
        })
    }

    /// Logs the [`unmatched`](Wiring::unmatched) names.
    pub(crate) fn log_unmatched(&self, gateway: &Gateway) {
        for finding in self.unmatched(gateway) {
            tracing::warn!("{}: {}", finding.subject, finding.message);
        }
    }
}

/// The manifest, in which this gatelet describes itself.
impl Wiring {
    /// Updates the manifest whenever the catalog changes, until dropped.
    pub(crate) async fn keep_manifest_current(self, gateway: Gateway) {
        let mut events = gateway.roster().default_pool().events();
        self.update_manifest(&gateway);
        while let Some(event) = events.next().await {
            if let Event::Changed(_) = event {
                self.update_manifest(&gateway);
            }
        }
    }

    /// Reads the manifest as it was last updated; `None` before that.
    pub(crate) fn published_manifest(&self) -> impl Fn() -> Option<Manifest> + Send + Sync + use<> {
        let own_manifest = Arc::clone(&self.own_manifest);
        move || own_manifest.published()
    }

    /// Reads the manifest as JSON; before the first update, as it is without a catalog.
    fn manifest_reader(&self) -> gateway::Manifest {
        let (first, own_manifest) = (self.build_manifest(None), Arc::clone(&self.own_manifest));
        Arc::new(move || own_manifest.published().as_ref().unwrap_or(&first).to_json())
    }

    fn update_manifest(&self, gateway: &Gateway) {
        let pool = gateway.roster().pools().into_iter().next();
        let snapshot = pool.map(|pool| pool.snapshot());
        self.build_manifest(snapshot.as_ref().map(|snapshot| &*snapshot.catalog));
    }

    fn build_manifest(&self, catalog: Option<&Catalog>) -> Manifest {
        let AppliedConfig { config, skills, .. } = &*self.current.lock();
        let mounts = self.mounts.with_labels(mounts::reserved_labels(config));
        let inputs = ManifestInputs { config, mounts: &mounts, skills, catalog };
        let manifest = self.own_manifest.update(&inputs);
        self.mounts.set_own_endpoint(&manifest.endpoint);
        manifest
    }
}

/// What lives beside the gateway until the process ends.
impl Wiring {
    /// Who is told about calls: records, metrics, traces, the console's call log.
    pub(crate) fn observers(&self) -> &Arc<Observers> {
        &self.observers
    }

    /// The trust ledger, with the names that this configuration has for upstreams.
    pub(crate) fn ledger(&self) -> BoundLedger<LedgerFile> {
        BoundLedger::new(LedgerFile::at(&self.state), self.upstreams.identities.clone())
    }

    /// The other replicas, if there are any.
    pub(crate) fn cluster(&self) -> Option<&Cluster> {
        self.cluster.as_ref()
    }

    /// Copies API keys, trust and listings from the other replicas into the state
    /// directory, as far as their shared store answers.
    pub(crate) async fn load_from_replicas(&self) {
        let mirrors: Vec<Mirror> = self.mirrors().collect();
        let aligned = futures::future::join_all(mirrors.iter().map(Mirror::align_once));
        futures::join!(aligned, self.upstreams.listings.load_from_replicas());
    }

    /// Keeps API keys and trust the same at all replicas, until dropped.
    pub(crate) async fn keep_replicas_aligned(self) {
        futures::future::join_all(self.mirrors().map(Mirror::keep_aligned)).await;
    }

    fn mirrors(&self) -> impl Iterator<Item = Mirror> {
        let mirrors = |cluster: &Cluster| {
            let documents: Arc<dyn store::state::Documents> = Arc::new(cluster.store().clone());
            mirror::all(&self.state, &documents, cluster.signer())
        };
        self.cluster.as_ref().map(mirrors).into_iter().flatten()
    }

    /// Checks and sweeps the object store of artifacts, if there is one, until dropped.
    pub(crate) async fn maintain_artifact_store(self) {
        let config = self.current.lock().config.artifacts.clone();
        artifact_store::maintain(&config, &self.state, self.cluster.as_ref(), &self.clock).await;
    }

    /// The address of the console, if it is served.
    pub(crate) fn console_address(&self) -> Option<String> {
        self.console.get().cloned()
    }

    /// Sets the address of the console. Only the first call counts.
    pub(crate) fn set_console_address(&self, address: &str) {
        let _ = self.console.set(address.to_owned());
    }

    /// Asks every upstream to end, also those that are still in use, and waits until
    /// they have: sessions are deleted, and programs get the time to end by themselves.
    pub(crate) async fn end_upstreams(&self, limit: Duration) {
        self.upstreams.shutdown.end_all(limit).await;
    }

    /// Waits until records, traces and usage are written, at the end of the process.
    pub(crate) async fn close(&self) {
        self.usage.flush();
        self.observers.close().await;
    }
}

/// Makes the URL of the console's page for a request for approval, by its number;
/// `None` until the console is served.
fn approval_page(console: &Arc<OnceLock<String>>) -> PageUrl {
    let console = Arc::clone(console);
    Arc::new(move |number| Some(format!("{}/approvals/{number}", console.get()?)))
}

/// The settings of the `gateway` and `proxy` surfaces.
fn meta_config(config: &Config) -> gateway::surface::meta::Config {
    let run_tool = config.scripts.enabled && config.scripts.run_tool;
    gateway::surface::meta::Config { run_tool, ..config.controls.meta.clone() }
}

fn gate_config(config: &Config) -> gate::Config {
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
