//! Makes the upstreams that the roster supervises out of the configuration and the
//! mounts.
//!
//! Each gets a connector that fits how it is reached and who may use it, and a
//! fingerprint: when that changes, the roster connects anew. Nothing is started here.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use mcp::connect::{Certificates, Shutdown};
use nested::{CashConnector, Nesting, OpenSession};
use parking_lot::Mutex;
use roster::{self, Connector, Start};

use super::cluster::Cluster;
use super::connector::{ContentSite, InProcess, RemoteConnector};
use super::identity::Identities;
use super::listing_store::ListingDirectory;
use super::observers::Observers;
use super::per_caller::PerCallerSessions;
use super::single::SingleInstance;
use super::{chain, credential, traced};
use crate::mounts::{self, MountedServer, Mounts};
use config::{Config, Mount, Reach, Upstream};

/// When upstreams are started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StartPolicy {
    /// As the configuration says: for a gatelet that serves clients.
    Configured,
    /// Each at its first request: for a command that ends soon.
    OnDemand,
    /// All of them immediately.
    AllAtOnce,
}

/// Everything beside the configuration that upstreams are made from.
#[derive(Clone)]
pub(super) struct UpstreamFactory {
    pub(super) state: PathBuf,
    pub(super) start_policy: StartPolicy,
    pub(super) listings: Arc<ListingDirectory>,
    pub(super) mounts: Arc<Mounts>,
    pub(super) observers: Arc<Observers>,
    /// Which server each label stands for, filled while upstreams are made.
    pub(super) identities: Identities,
    /// How often each upstream was restarted by hand, by label.
    pub(super) restarts: Arc<Mutex<HashMap<String, u64>>>,
    /// Random; by it a gatelet notices that it connects to itself.
    pub(super) gatelet_id: Arc<str>,
    /// The configuration files of the gatelets that started each other, this one last.
    pub(super) chain: Arc<str>,
    /// Ends the connections to all upstreams together.
    pub(super) shutdown: Shutdown,
    /// The other replicas, if there are any.
    pub(super) cluster: Option<Cluster>,
}

impl UpstreamFactory {
    /// Every upstream: built-in tools, then configured ones, then mounted ones.
    pub(super) fn all(&self, config: &Config) -> Vec<roster::Upstream> {
        let mut all = self.builtin(config);
        all.extend(config.upstreams.iter().map(|upstream| self.configured(config, upstream)));
        let mounted = self.mounts.with_labels(mounts::reserved_labels(config));
        all.extend(mounted.iter().map(|server| self.mounted(config, server)));
        all
    }

    /// Makes the upstream of this label another one for the roster, which stops the
    /// old one and starts it again.
    pub(super) fn count_restart(&self, label: &str) {
        *self.restarts.lock().entry(label.to_owned()).or_default() += 1;
    }

    fn builtin(&self, config: &Config) -> Vec<roster::Upstream> {
        let groups = if config.builtin { builtin::groups(&self.state) } else { Vec::new() };
        let labels = config.builtin_labels().into_iter().map(|(label, _)| label);
        let upstreams = groups.into_iter().zip(labels).map(|(group, label)| roster::Upstream {
            fingerprint: env!("CARGO_PKG_VERSION").to_owned(),
            fixed_listing: Some(group.provider.listing()),
            ..roster::Upstream::new(&label, Arc::new(InProcess(group.provider)))
        });
        upstreams.collect()
    }

    fn configured(&self, config: &Config, upstream: &Upstream) -> roster::Upstream {
        self.identities.record(upstream);
        let upstream = &chain::pass_to_program(&upstream.served(), &self.chain);
        let start = match (self.start_policy, upstream.start) {
            (StartPolicy::Configured, config::Start::Eager) | (StartPolicy::AllAtOnce, _) => {
                Start::Eager
            }
            (StartPolicy::Configured, config::Start::OnDemand) | (StartPolicy::OnDemand, _) => {
                Start::OnDemand
            }
        };
        let remote = self.remote(upstream);
        let fingerprint = pinned_fingerprint(remote.fingerprint(), config, &upstream.label);
        let fingerprint = self.restarted_fingerprint(fingerprint, &upstream.label);
        // An operator who sets `kind` wants the upstream listed again.
        let fingerprint = match nesting(upstream) {
            Nesting::IfDeclared => fingerprint,
            kind @ (Nesting::Expected | Nesting::Never) => format!("{fingerprint} {kind:?}"),
        };
        let mut known = None;
        let connector: Arc<dyn Connector> = match &upstream.reach {
            Reach::Content { database, prefix, rules } => {
                let config = rules.config(database.as_deref(), prefix.as_deref());
                known = Some(Arc::new(content::listing(&config)));
                Arc::new(ContentSite::new(config))
            }
            Reach::Program { .. } | Reach::Address { .. } | Reach::Nowhere { .. } => {
                let access = &upstream.access;
                if access.per_caller || !access.callers.is_empty() {
                    let listings = Arc::clone(&self.listings);
                    let vault = credential::vault(&self.state);
                    let sessions = PerCallerSessions::new(remote, upstream, listings, vault);
                    self.nestable(sessions, upstream)
                } else if let Some(cluster) = self.cluster.clone().filter(|_| upstream.single) {
                    self.nestable(SingleInstance::new(remote, cluster), upstream)
                } else {
                    self.nestable(remote, upstream)
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
            fixed_listing: known,
        }
    }

    /// The upstream of a mounted server. Without a manifest that is believed it keeps
    /// its label and answers every request with the reason.
    fn mounted(&self, config: &Config, server: &MountedServer) -> roster::Upstream {
        let Mount { source, headers, authority } = &server.mount;
        let reach = match &server.manifest {
            Some((_, endpoint)) => Reach::Address {
                url: endpoint.to_string(),
                headers: headers.clone(),
                wire: endpoint.path().ends_with("/sse").then_some(config::HttpTransport::Sse),
                certificates: Certificates { authority: authority.clone(), identity: None },
            },
            None => {
                let problem = server.problem.as_deref();
                let reason = problem.unwrap_or("its manifest has not come yet").to_owned();
                Reach::Nowhere { reason }
            }
        };
        let upstream = Upstream::mounted(&server.label, server.description(), reach);
        let public = server.manifest.as_ref().is_some_and(|(_, url)| !source.reaches_private(url));
        let mut remote = self.remote(&upstream);
        if public {
            remote = remote.public_only();
        }
        roster::Upstream {
            fingerprint: pinned_fingerprint(remote.fingerprint(), config, &upstream.label),
            connector: self.traced(self.nestable(remote, &upstream), &upstream),
            ..self.configured(config, &upstream)
        }
    }

    /// Connects with the credential that all callers share.
    fn remote(&self, upstream: &Upstream) -> RemoteConnector {
        let vault = credential::vault(&self.state);
        let credential = credential::for_upstream(upstream, None, &vault);
        RemoteConnector::new(upstream, Arc::clone(&self.listings), credential, &self.shutdown)
    }

    /// A connector that unfolds the upstream into its own functions if it is a CaSH
    /// server, for example another gatelet.
    fn nestable<S: OpenSession + 'static>(
        &self,
        sessions: S,
        upstream: &Upstream,
    ) -> Arc<dyn Connector> {
        let (nesting, gatelet_id) = (nesting(upstream), Arc::clone(&self.gatelet_id));
        Arc::new(CashConnector { sessions, nesting, gatelet_id })
    }

    /// A connector whose sessions are traced, if tracing is on.
    fn traced(&self, connector: Arc<dyn Connector>, upstream: &Upstream) -> Arc<dyn Connector> {
        traced::trace_sessions(connector, self.observers.tracer(), &upstream.label, &upstream.reach)
    }

    fn restarted_fingerprint(&self, fingerprint: String, label: &str) -> String {
        match self.restarts.lock().get(label) {
            Some(n_restarts) => format!("{fingerprint} {n_restarts}"),
            None => fingerprint,
        }
    }
}

/// Whether an upstream is treated as a CaSH server.
fn nesting(upstream: &Upstream) -> Nesting {
    match upstream.kind {
        Some(config::Kind::Cash) => Nesting::Expected,
        Some(config::Kind::Mcp) => Nesting::Never,
        Some(config::Kind::Content) | None => Nesting::IfDeclared,
    }
}

/// The fingerprint with the pinned hash of the listing, if one is configured: an
/// operator who pins another listing wants the upstream inspected again.
fn pinned_fingerprint(fingerprint: &str, config: &Config, label: &str) -> String {
    match config.controls.inspection.pins.get(label) {
        Some(pin) => format!("{fingerprint} {} {:?}", pin.hash, pin.strictness),
        None => fingerprint.to_owned(),
    }
}
