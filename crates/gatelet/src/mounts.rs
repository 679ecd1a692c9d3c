//! Servers that are mounted by their manifests: which there are, their last manifests,
//! and when to fetch those again.
//!
//! Configured mounts come first, then those that were mounted by command while serving.
//! Each keeps its label over restarts, as long as nothing before it claims that label. A
//! manifest that cannot be fetched leaves the server mounted; one that is refused, for
//! example for a bad signature, unmounts it.

mod mounted;
mod remembered;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use store::document::JsonDocument;
use tokio::sync::Notify;
use web::aggregate::label;

use crate::fetch;
use crate::time::unix_seconds as now;
use config::{Config, Mount, ProcessEnvironment, RawMount, parse_mount};
use remembered::{RememberedManifest, RememberedMounts};

pub(crate) use mounted::{MountedServer, Origin};

/// All mounts of a gatelet.
pub(crate) struct Mounts {
    /// The state directory; paths in mounts by command are relative to it.
    base: PathBuf,
    document: JsonDocument<RememberedMounts>,
    servers: Mutex<Vec<MountedServer>>,
    /// The labels that mounts cannot have.
    reserved: Mutex<Vec<String>>,
    /// The endpoint of this gatelet itself, once it is known.
    own_endpoint: Mutex<Option<String>>,
    /// Wakes [`Mounts::keep_refreshed`].
    wake: Notify,
}

/// Why a server cannot be mounted or unmounted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MountError {
    #[error("`{key}`: {message}")]
    Request { key: &'static str, message: String },
    #[error("`{0}` is mounted already")]
    AlreadyMounted(String),
    #[error("`{0}` is this gate itself: it cannot stand behind itself")]
    Itself(String),
    #[error("the manifest is not believed: {0}")]
    Refused(String),
    #[error("nothing is mounted as `{0}`")]
    Unknown(String),
    #[error("`{0}` stands in the configuration: take it out there")]
    Configured(String),
}

impl MountError {
    /// The HTTP status for this error.
    pub(crate) fn status(&self) -> u16 {
        match self {
            MountError::Request { .. } | MountError::Itself(_) => 400,
            MountError::Unknown(_) => 404,
            MountError::AlreadyMounted(_) | MountError::Configured(_) => 409,
            MountError::Refused(_) => 422,
        }
    }
}

/// The labels that mounts cannot have: those of built-in tools and of configured upstreams.
pub(crate) fn reserved_labels(config: &Config) -> Vec<String> {
    let own = config.builtin_labels().into_iter().map(|(label, _)| label);
    let upstreams = config.upstreams.iter().map(|upstream| upstream.label.clone());
    own.chain(upstreams).chain([roster::BUILTIN.to_owned()]).collect()
}

/// How long the refresh sleeps at most, in case the clock of the machine is set.
const MAX_SLEEP: Duration = Duration::from_secs(60);

impl Mounts {
    /// Opens the configured mounts, and those by command that are remembered.
    pub(crate) fn open(state: &Path, configured: &[Mount]) -> Mounts {
        let document = remembered::document(state);
        let memory = remembered::load(&document);
        let mut servers: Vec<MountedServer> = Vec::new();
        for mount in configured {
            servers.push(MountedServer::new(mount.clone(), Origin::Configured, &memory));
        }
        for raw in &memory.mounts {
            match parse_mount(raw, state, &ProcessEnvironment) {
                Ok(mount) if !servers.iter().any(|server| server.is_at(&mount)) => {
                    servers.push(MountedServer::new(mount, Origin::Command, &memory));
                }
                Ok(_) => {}
                Err((key, message)) => tracing::warn!("a mount is left out: `{key}` {message}"),
            }
        }
        let (reserved, own_endpoint) = (Mutex::default(), Mutex::default());
        let (base, servers) = (state.to_owned(), Mutex::new(servers));
        Mounts { base, document, servers, reserved, own_endpoint, wake: Notify::new() }
    }

    /// Sets the endpoint of this gatelet itself, which cannot be mounted.
    pub(crate) fn set_own_endpoint(&self, endpoint: &str) {
        let mut own = self.own_endpoint.lock();
        *own = Some(endpoint.to_owned());
    }

    fn is_own_endpoint(&self, endpoint: &str) -> bool {
        let own = self.own_endpoint.lock();
        own.as_deref() == Some(endpoint)
    }

    /// Applies a changed configuration.
    pub(crate) fn reconfigure(&self, configured: &[Mount]) {
        let memory = remembered::load(&self.document);
        let mut servers = self.servers();
        let before = std::mem::take(&mut *servers);
        let (commanded, mut known): (Vec<MountedServer>, Vec<MountedServer>) =
            before.into_iter().partition(|server| server.origin == Origin::Command);
        for mount in configured {
            let same = known.iter().position(|server| server.mount == *mount);
            servers.push(match same {
                Some(at) => known.remove(at),
                None => MountedServer::new(mount.clone(), Origin::Configured, &memory),
            });
        }
        servers.extend(commanded);
        drop(servers);
        self.wake.notify_one();
    }

    /// Every mounted server, with a label that is not `reserved`.
    pub(crate) fn with_labels(&self, reserved: Vec<String>) -> Vec<MountedServer> {
        *self.reserved.lock() = reserved;
        let mut servers = self.servers();
        self.assign_labels(&mut servers);
        servers.clone()
    }

    fn assign_labels(&self, servers: &mut [MountedServer]) {
        let reserved = self.reserved.lock().clone();
        let candidates: Vec<label::Server<'_>> =
            servers.iter().map(MountedServer::label_candidate).collect();
        let labels = label::assign(&reserved, &candidates);
        for (server, label) in servers.iter_mut().zip(labels) {
            // From its first manifest on a server asks for the label that it has, whatever
            // later manifests suggest. The configuration, or a server before it, may still
            // claim that label.
            let kept = server.manifest.as_ref().map(|_| label.clone());
            server.kept_label = kept.or(server.kept_label.take());
            server.label = label;
        }
    }

    /// Fetches manifests again when that is due, until dropped. Calls `changed` when
    /// something is different.
    pub(crate) async fn keep_refreshed(self: Arc<Self>, changed: impl Fn() + Send + 'static) {
        loop {
            let due: Vec<Mount> = {
                let servers = self.servers();
                let now = now();
                let due = servers.iter().filter(|server| server.schedule.due() <= now);
                due.map(|server| server.mount.clone()).collect()
            };
            let refreshed = futures::future::join_all(due.iter().map(|mount| self.refresh(mount)));
            if refreshed.await.into_iter().any(|has_changed| has_changed) {
                self.save(|_| ()).await;
                changed();
            }
            let next = self.servers().iter().map(|server| server.schedule.due()).min();
            let pause =
                next.map_or(MAX_SLEEP, |next| Duration::from_secs(next.saturating_sub(now())));
            tokio::select! {
                () = tokio::time::sleep(pause.clamp(Duration::from_millis(200), MAX_SLEEP)) => {}
                () = self.wake.notified() => {}
            }
        }
    }

    /// Fetches one manifest again. Returns whether something has changed.
    async fn refresh(&self, mount: &Mount) -> bool {
        let text = fetch::manifest(&mount.source, mount.authority.as_deref()).await;
        let fetched = text.and_then(|text| Ok(mount.source.accept(&text)?));
        let mut servers = self.servers();
        let Some(server) = servers.iter_mut().find(|server| server.mount == *mount) else {
            return false;
        };
        server.update(fetched, now())
    }

    /// Mounts a server while serving. Its manifest is fetched immediately: a server whose
    /// manifest is refused is not mounted, one that cannot be reached is tried again.
    /// Returns the server as JSON.
    pub(crate) async fn mount(&self, raw: RawMount) -> Result<Value, MountError> {
        let mount = parse_mount(&raw, &self.base, &ProcessEnvironment)
            .map_err(|(key, message)| MountError::Request { key, message })?;
        if self.servers().iter().any(|server| server.is_at(&mount)) {
            return Err(MountError::AlreadyMounted(mount.source.manifest.to_string()));
        }
        let text = fetch::manifest(&mount.source, mount.authority.as_deref()).await;
        let fetched = text.and_then(|text| Ok(mount.source.accept(&text)?));
        if let Err(why) = &fetched
            && why.is_final()
        {
            return Err(MountError::Refused(why.to_string()));
        }
        if let Ok((_, endpoint)) = &fetched
            && self.is_own_endpoint(endpoint.as_str())
        {
            return Err(MountError::Itself(endpoint.to_string()));
        }
        let manifest = mount.source.manifest.clone();
        let memory = self.document.read().await.unwrap_or_default();
        let mut server = MountedServer::new(mount, Origin::Command, &memory);
        server.update(fetched, now());
        let json = self.add(server)?;
        self.save(|memory| memory.add(raw.clone(), &manifest)).await;
        Ok(json)
    }

    /// Adds a server, unless the same was mounted while its manifest was fetched.
    fn add(&self, server: MountedServer) -> Result<Value, MountError> {
        let mut servers = self.servers();
        if servers.iter().any(|known| known.is_at(&server.mount)) {
            return Err(MountError::AlreadyMounted(server.mount.source.manifest.to_string()));
        }
        servers.push(server);
        self.assign_labels(&mut servers);
        Ok(servers.last().map(MountedServer::to_json).unwrap_or_default())
    }

    /// Unmounts a server that was mounted by command. `name` is its label or the URL of
    /// its manifest.
    pub(crate) async fn unmount(&self, name: &str) -> Result<Value, MountError> {
        let gone = self.remove(name)?;
        let manifest = &gone.mount.source.manifest;
        self.save(|memory| {
            memory.remove(manifest);
            memory.known.remove(manifest.as_str());
        })
        .await;
        Ok(gone.to_json())
    }

    fn remove(&self, name: &str) -> Result<MountedServer, MountError> {
        let mut servers = self.servers();
        let is_it = |server: &MountedServer| {
            catalog::name::same(&server.label, name)
                || server.mount.source.manifest.as_str() == name
        };
        let at =
            servers.iter().position(is_it).ok_or_else(|| MountError::Unknown(name.to_owned()))?;
        match servers[at].origin {
            Origin::Configured => Err(MountError::Configured(name.to_owned())),
            Origin::Command => Ok(servers.remove(at)),
        }
    }

    /// Every mounted server and its state, as JSON.
    pub(crate) fn to_json(&self) -> Value {
        self.servers().iter().map(MountedServer::to_json).collect()
    }

    /// Saves every server and its label, and applies one more change to what is saved.
    /// Entries of other gatelets with the same state directory stay as they are.
    async fn save(&self, mut change: impl FnMut(&mut RememberedMounts) + Send) {
        let manifests: Vec<(String, Option<RememberedManifest>)> = {
            let mut servers = self.servers();
            self.assign_labels(&mut servers);
            let url = |server: &MountedServer| server.mount.source.manifest.to_string();
            servers.iter().map(|server| (url(server), server.remembered())).collect()
        };
        let saved = self.document.change(|memory| {
            for (url, manifest) in &manifests {
                match manifest {
                    Some(manifest) => drop(memory.known.insert(url.clone(), manifest.clone())),
                    None => drop(memory.known.remove(url)),
                }
            }
            change(memory);
        });
        if let Err(error) = saved.await {
            tracing::error!("the mounts cannot be remembered: {error}");
        }
    }

    fn servers(&self) -> MutexGuard<'_, Vec<MountedServer>> {
        self.servers.lock()
    }
}

#[cfg(test)]
mod tests;
