//! Servers that are mounted by their manifests: which there are, what their
//! manifests said last, and when to look again.
//!
//! What the configuration lists comes first, then what was mounted while
//! serving, in that order; both keep their labels over restarts. A manifest
//! that cannot be fetched changes nothing but what is said about it; one that
//! must not be believed takes its server away.

mod memory;
mod mounted;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use store::document::JsonDocument;
use tokio::sync::Notify;
use web::aggregate::label;

use crate::fetch;
use crate::time::unix_seconds as now;
use config::{Config, Mount, Process, RawMount, meant};
use memory::{Memory, RememberedManifest};

pub(crate) use mounted::{MountedServer, Origin};

/// All mounts of a gatelet.
pub(crate) struct Mounts {
    /// Where the state directory is; what is mounted by command is relative to it.
    base: PathBuf,
    document: JsonDocument<Memory>,
    servers: Mutex<Vec<MountedServer>>,
    /// Labels of everything that is not mounted.
    taken: Mutex<Vec<String>>,
    /// Where this gatelet itself is reached, once it is known.
    own: Mutex<Option<String>>,
    wake: Notify,
}

/// Why something is not mounted or unmounted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MountError {
    #[error("`{key}`: {message}")]
    Request { key: &'static str, message: String },
    #[error("`{0}` is mounted already")]
    There(String),
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
    /// The HTTP status that says so.
    pub(crate) fn status(&self) -> u16 {
        match self {
            MountError::Request { .. } | MountError::Itself(_) => 400,
            MountError::Unknown(_) => 404,
            MountError::There(_) | MountError::Configured(_) => 409,
            MountError::Refused(_) => 422,
        }
    }
}

/// The labels that are not there for mounts: of our own tools and of upstreams.
pub(crate) fn taken(config: &Config) -> Vec<String> {
    let own = config.builtin_labels().into_iter().map(|(label, _)| label);
    let upstreams = config.upstreams.iter().map(|upstream| upstream.label.clone());
    own.chain(upstreams).chain([roster::BUILTIN.to_owned()]).collect()
}

/// How long the keeper sleeps at most, so that a clock that is set does not
/// make it oversleep.
const NAP: Duration = Duration::from_secs(60);

impl Mounts {
    /// The mounts of a configuration, and those that are remembered.
    pub(crate) fn open(state: &Path, configured: &[Mount]) -> Mounts {
        let document = memory::document(state);
        let memory = memory::load(&document);
        let mut servers: Vec<MountedServer> = Vec::new();
        for mount in configured {
            servers.push(MountedServer::new(mount.clone(), Origin::Configured, &memory));
        }
        for raw in &memory.mounts {
            match meant(raw, state, &Process) {
                Ok(mount) if !servers.iter().any(|server| server.is_at(&mount)) => {
                    servers.push(MountedServer::new(mount, Origin::Command, &memory));
                }
                Ok(_) => {}
                Err((key, message)) => tracing::warn!("a mount is left out: `{key}` {message}"),
            }
        }
        let (taken, own) = (Mutex::default(), Mutex::default());
        let (base, servers) = (state.to_owned(), Mutex::new(servers));
        Mounts { base, document, servers, taken, own, wake: Notify::new() }
    }

    /// Says where this gatelet itself is reached; nothing there is mounted.
    pub(crate) fn served_at(&self, endpoint: &str) {
        *self.own.lock().unwrap_or_else(PoisonError::into_inner) = Some(endpoint.to_owned());
    }

    fn is_own(&self, endpoint: &str) -> bool {
        self.own.lock().unwrap_or_else(PoisonError::into_inner).as_deref() == Some(endpoint)
    }

    /// Takes up a changed configuration.
    pub(crate) fn reconfigure(&self, configured: &[Mount]) {
        let memory = memory::load(&self.document);
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

    /// Every mount with the label that it has beside those that are `taken`.
    pub(crate) fn with_labels(&self, taken: Vec<String>) -> Vec<MountedServer> {
        *self.taken.lock().unwrap_or_else(PoisonError::into_inner) = taken;
        let mut servers = self.servers();
        self.assign_labels(&mut servers);
        servers.clone()
    }

    fn assign_labels(&self, servers: &mut [MountedServer]) {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let descriptions: Vec<label::Server<'_>> =
            servers.iter().map(MountedServer::server).collect();
        let labels = label::assign(&taken, &descriptions);
        for (server, label) in servers.iter_mut().zip(labels) {
            // A label is kept once there is something to call by it.
            server.kept = server.manifest.as_ref().map(|_| label.clone()).or(server.kept.take());
            server.label = label;
        }
    }

    /// Looks at manifests when their time has come, for ever; says when
    /// something is different.
    pub(crate) async fn keep(self: Arc<Self>, changed: impl Fn() + Send + 'static) {
        loop {
            let due: Vec<Mount> = {
                let servers = self.servers();
                let now = now();
                let due = servers.iter().filter(|server| server.schedule.due() <= now);
                due.map(|server| server.mount.clone()).collect()
            };
            let schedule = due.iter().map(|mount| self.look(mount));
            let news = futures::future::join_all(schedule).await;
            if news.into_iter().any(|news| news) {
                self.save(|_| ()).await;
                changed();
            }
            let next = self.servers().iter().map(|server| server.schedule.due()).min();
            let pause = next.map_or(NAP, |next| Duration::from_secs(next.saturating_sub(now())));
            tokio::select! {
                () = tokio::time::sleep(pause.clamp(Duration::from_millis(200), NAP)) => {}
                () = self.wake.notified() => {}
            }
        }
    }

    /// Looks at one manifest; whether something is different now.
    async fn look(&self, mount: &Mount) -> bool {
        let fetched = fetch::manifest(&mount.source, mount.authority.as_deref()).await;
        let seen = fetched.and_then(|text| Ok(mount.source.accept(&text)?));
        let mut servers = self.servers();
        let Some(server) = servers.iter_mut().find(|server| server.mount == *mount) else {
            return false;
        };
        server.take(seen, now())
    }

    /// Mounts a server while serving. Its manifest is fetched at once: what is
    /// refused is not mounted, what cannot be reached is tried again.
    pub(crate) async fn mount(&self, raw: RawMount) -> Result<Value, MountError> {
        let mount = meant(&raw, &self.base, &Process)
            .map_err(|(key, message)| MountError::Request { key, message })?;
        if self.servers().iter().any(|server| server.is_at(&mount)) {
            return Err(MountError::There(mount.source.manifest.to_string()));
        }
        let fetched = fetch::manifest(&mount.source, mount.authority.as_deref()).await;
        let seen = fetched.and_then(|text| Ok(mount.source.accept(&text)?));
        if let Err(why) = &seen
            && why.is_final()
        {
            return Err(MountError::Refused(why.to_string()));
        }
        if let Ok((_, endpoint)) = &seen
            && self.is_own(endpoint.as_str())
        {
            return Err(MountError::Itself(endpoint.to_string()));
        }
        let manifest = mount.source.manifest.clone();
        let known = self.document.read().await.unwrap_or_default();
        let mut server = MountedServer::new(mount, Origin::Command, &known);
        server.take(seen, now());
        let json = self.add(server)?;
        self.save(|memory| memory.add(raw.clone(), &manifest)).await;
        Ok(json)
    }

    /// Takes a server in, unless somebody mounted the same while its manifest
    /// was on the way.
    fn add(&self, server: MountedServer) -> Result<Value, MountError> {
        let mut servers = self.servers();
        if servers.iter().any(|known| known.is_at(&server.mount)) {
            return Err(MountError::There(server.mount.source.manifest.to_string()));
        }
        servers.push(server);
        self.assign_labels(&mut servers);
        Ok(servers.last().map(MountedServer::to_json).unwrap_or_default())
    }

    /// Takes away what was mounted while serving, by its label or manifest.
    pub(crate) async fn unmount(&self, which: &str) -> Result<Value, MountError> {
        let gone = self.remove(which)?;
        let manifest = &gone.mount.source.manifest;
        self.save(|memory| {
            memory.remove(manifest);
            memory.known.remove(manifest.as_str());
        })
        .await;
        Ok(gone.to_json())
    }

    fn remove(&self, which: &str) -> Result<MountedServer, MountError> {
        let mut servers = self.servers();
        let is_it = |server: &MountedServer| {
            catalog::name::same(&server.label, which)
                || server.mount.source.manifest.as_str() == which
        };
        let at =
            servers.iter().position(is_it).ok_or_else(|| MountError::Unknown(which.to_owned()))?;
        match servers[at].origin {
            Origin::Configured => Err(MountError::Configured(which.to_owned())),
            Origin::Command => Ok(servers.remove(at)),
        }
    }

    /// Every mount and how it fares.
    pub(crate) fn to_json(&self) -> Value {
        self.servers().iter().map(MountedServer::to_json).collect()
    }

    /// Remembers every server as it is called now, and makes one more change.
    /// What another gatelet with the same state remembers is left as it is.
    async fn save(&self, mut change: impl FnMut(&mut Memory) + Send) {
        let known: Vec<(String, Option<RememberedManifest>)> = {
            let mut servers = self.servers();
            self.assign_labels(&mut servers);
            let url = |server: &MountedServer| server.mount.source.manifest.to_string();
            servers.iter().map(|server| (url(server), server.known())).collect()
        };
        let saved = self.document.change(|memory| {
            for (url, known) in &known {
                match known {
                    Some(known) => drop(memory.known.insert(url.clone(), known.clone())),
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
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
