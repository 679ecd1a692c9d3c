//! Connects to an upstream that only one replica runs at a time (`single = true`).
//!
//! The replica that holds its lease runs it; the others reach it through tunnels to that
//! replica. A holder that cannot renew its lease in time stops the upstream before
//! another replica may start it. When the holder is gone the tunnels end, all replicas
//! connect anew, and the first that gets the lease runs the upstream.

use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use mcp::connect::Pipes;
use nested::{OpenSession, OpenedSession};
use parking_lot::RwLock;
use roster::Connector;
use store::state::{Expiring, Lease, Leases, StateError};
use tokio::sync::watch;
use tokio::time::Instant;
use tool::{Ask, Client, Context, CredentialHealth, Event, Failure, Listing, Provider, Reply};

use super::cluster::Cluster;
use super::connector::RemoteConnector;

/// How long a lease holds after it was last renewed.
const LEASE_TIME: Duration = Duration::from_secs(6);
/// How often a lease is renewed.
const RENEW_EVERY: Duration = Duration::from_secs(2);
/// How long before its end a lease that could not be renewed counts as lost.
const MARGIN: Duration = Duration::from_millis(1500);
/// How long one operation of the store may take.
const STORE_TIMEOUT: Duration = Duration::from_secs(1);
/// The pause between two checks: who holds the lease, or whether sessions are left.
const PAUSE: Duration = Duration::from_millis(250);

/// Opens sessions with an upstream that only one replica runs at a time.
pub(super) struct SingleInstance {
    remote: RemoteConnector,
    cluster: Cluster,
    /// The name of the lease, and of the upstream among replicas.
    name: String,
    /// The upstream as this replica runs it; its sessions here share it.
    running: tokio::sync::Mutex<Weak<LeasedUpstream>>,
}

impl SingleInstance {
    pub(super) fn new(remote: RemoteConnector, cluster: Cluster) -> SingleInstance {
        let name = format!("single {}", remote.fingerprint());
        SingleInstance { remote, cluster, name, running: tokio::sync::Mutex::default() }
    }

    /// Runs the upstream here if its lease is free, else reaches it at its owner.
    async fn open_anywhere(&self, client: &Client) -> Result<Arc<dyn Provider>, Failure> {
        let mut running = self.running.lock().await;
        if let Some(upstream) = running.upgrade().filter(|upstream| !upstream.has_ended()) {
            return Ok(upstream);
        }
        loop {
            match self.cluster.store().acquire(&self.name, LEASE_TIME, STORE_TIMEOUT).await {
                Ok(lease) => {
                    let upstream = self.run_here(lease, client).await?;
                    *running = Arc::downgrade(&upstream);
                    return Ok(upstream);
                }
                Err(StateError::Conflict) => {}
                Err(error) => {
                    let reason = format!("nobody can tell which replica runs it: {error}");
                    return Err(Failure::Unavailable { reason });
                }
            }
            if let Some(owner) = self.owner().await
                && let Ok(session) = self.connect_to_owner(owner, client).await
            {
                return Ok(session);
            }
            // It is just starting or ending there. The roster limits how long this takes.
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn run_here(
        &self,
        lease: Lease,
        client: &Client,
    ) -> Result<Arc<LeasedUpstream>, Failure> {
        let keeper = LeaseKeeper::new(self.cluster.clone(), self.name.clone(), lease);
        let started = tokio::select! {
            started = self.remote.connect(client) => started,
            () = keeper.clone().renew_until_lost() => {
                let reason = "another replica has taken it over while it started".to_owned();
                Err(Failure::Unavailable { reason })
            }
        };
        let inner = match started {
            Ok(inner) => inner,
            Err(failure) => {
                keeper.release().await;
                return Err(failure);
            }
        };
        let events = inner.events();
        let upstream = Arc::new(LeasedUpstream {
            listing: RwLock::new(inner.listing()),
            inner: RwLock::new(Some(inner)),
            ended: watch::Sender::new(None),
        });
        self.cluster.offer(&self.name, keeper.fence(), Arc::downgrade(&upstream) as _);
        keeper.announce_owner().await;
        tokio::spawn(keeper.run(Arc::downgrade(&upstream), events));
        Ok(upstream)
    }

    /// The replica that runs the upstream, if it is alive.
    async fn owner(&self) -> Option<Owner> {
        let key = owner_key(&self.name);
        let note = Expiring::get(self.cluster.store(), &key, STORE_TIMEOUT).await;
        let note = String::from_utf8(note.ok()??.into()).ok()?;
        let (replica, fence) = note.split_once(' ')?;
        let owner = Owner { replica: replica.parse().ok()?, fence: fence.parse().ok()? };
        self.cluster.is_alive(owner.replica).await.then_some(owner)
    }

    async fn connect_to_owner(
        &self,
        Owner { replica, fence }: Owner,
        client: &Client,
    ) -> Result<Arc<dyn Provider>, Failure> {
        let (cluster, name) = (self.cluster.clone(), self.name.clone());
        let open = move || cluster.open_tunnel(replica, &name, fence);
        self.remote.connect_through(Pipes::new(open), client).await
    }
}

#[async_trait]
impl Connector for SingleInstance {
    async fn connect(&self, client: &Client) -> Result<Arc<dyn Provider>, Failure> {
        self.open_anywhere(client).await
    }

    fn credential_health(&self) -> Option<CredentialHealth> {
        Connector::credential_health(&self.remote)
    }
}

#[async_trait]
impl OpenSession for SingleInstance {
    async fn open(&self, client: &Client) -> Result<OpenedSession, Failure> {
        let upstream = self.open_anywhere(client).await?;
        Ok(OpenedSession { listing_session: Arc::clone(&upstream), upstream })
    }

    fn credential_health(&self) -> Option<CredentialHealth> {
        Connector::credential_health(self)
    }
}

/// The key in the store under which the owner of an upstream is noted.
fn owner_key(name: &str) -> String {
    format!("{name} owner")
}

/// The replica that runs an upstream, with the fencing number of its lease.
struct Owner {
    replica: u32,
    fence: u64,
}

/// The upstream while this replica holds its lease and runs it.
struct LeasedUpstream {
    /// `None` once it has ended.
    inner: RwLock<Option<Arc<dyn Provider>>>,
    /// Its last listing, also after its end.
    listing: RwLock<Arc<Listing>>,
    /// Why it has ended, once it has.
    ended: watch::Sender<Option<String>>,
}

impl LeasedUpstream {
    fn has_ended(&self) -> bool {
        self.ended.borrow().is_some()
    }

    /// Stops the upstream; requests that are under way fail.
    fn end(&self, reason: &str) {
        drop(self.inner.write().take());
        self.ended.send_replace(Some(reason.to_owned()));
    }
}

#[async_trait]
impl Provider for LeasedUpstream {
    fn listing(&self) -> Arc<Listing> {
        if let Some(inner) = &*self.inner.read() {
            *self.listing.write() = inner.listing();
        }
        Arc::clone(&self.listing.read())
    }

    fn events(&self) -> BoxStream<'static, Event> {
        let (mut ended, why) = (self.ended.subscribe(), self.ended.subscribe());
        let events = self.inner.read().as_ref().map(|inner| inner.events());
        let events = events.unwrap_or_else(|| futures::stream::empty().boxed());
        // Its end is reported once, when the lease keeper has noticed it.
        let goes_on = |event: &Event| std::future::ready(!matches!(event, Event::Gone { .. }));
        let has_ended = async move { drop(ended.wait_for(Option::is_some).await) };
        let gone = async move { Event::Gone { reason: why.borrow().clone().unwrap_or_default() } };
        events
            .filter(goes_on)
            .chain(futures::stream::pending())
            .take_until(Box::pin(has_ended))
            .chain(futures::stream::once(gone))
            .boxed()
    }

    async fn ask(&self, ask: Ask, context: &Context) -> Result<Reply, Failure> {
        let inner = self.inner.read().clone();
        let mut ended = self.ended.subscribe();
        let Some(inner) = inner else {
            let reason = ended.borrow().clone().unwrap_or_default();
            return Err(Failure::Unavailable { reason });
        };
        tokio::select! {
            answer = inner.ask(ask, context) => answer,
            reason = ended.wait_for(Option::is_some) => {
                let reason = reason.ok().and_then(|reason| reason.clone()).unwrap_or_default();
                Err(Failure::Lost { reason, sent: tool::Sent::Perhaps })
            }
        }
    }

    fn enforces_timeout(&self) -> bool {
        self.inner.read().as_ref().is_some_and(|inner| inner.enforces_timeout())
    }
}

/// Renews the lease of an upstream and gives it back. Clones keep the same lease.
#[derive(Clone)]
struct LeaseKeeper(Arc<KeptLease>);

struct KeptLease {
    cluster: Cluster,
    /// The name of the upstream among replicas.
    name: String,
    lease: Lease,
}

impl LeaseKeeper {
    fn new(cluster: Cluster, name: String, lease: Lease) -> LeaseKeeper {
        LeaseKeeper(Arc::new(KeptLease { cluster, name, lease }))
    }

    fn fence(&self) -> u64 {
        self.0.lease.fence
    }

    /// Tells the other replicas which one runs the upstream.
    async fn announce_owner(&self) {
        let KeptLease { cluster, name, lease } = &*self.0;
        let (key, note) = (owner_key(name), format!("{} {}", cluster.tag(), lease.fence));
        let put = Expiring::put(cluster.store(), &key, note.into(), LEASE_TIME, STORE_TIMEOUT);
        let _ = put.await;
    }

    /// Renews the lease until it is lost, or could run out before the upstream is stopped.
    async fn renew_until_lost(self) {
        let KeptLease { cluster, lease, .. } = &*self.0;
        let mut end = Instant::now() + LEASE_TIME - MARGIN;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            tokio::time::sleep(RENEW_EVERY.min(left)).await;
            let asked = Instant::now();
            match cluster.store().renew(lease, LEASE_TIME, STORE_TIMEOUT).await {
                Ok(()) => {
                    end = asked + LEASE_TIME - MARGIN;
                    self.announce_owner().await;
                }
                Err(StateError::Gone | StateError::Conflict) => return,
                Err(_) if end <= Instant::now() => return,
                Err(_) => {}
            }
        }
    }

    /// Waits until the upstream ends, no session uses it, or the lease is lost; then
    /// stops the upstream and gives the lease back. `events` are those of the upstream.
    async fn run(self, upstream: Weak<LeasedUpstream>, mut events: BoxStream<'static, Event>) {
        let ended = async {
            loop {
                match events.next().await {
                    Some(Event::Gone { reason }) => return reason,
                    None => return "it ended".to_owned(),
                    Some(_) => {}
                }
            }
        };
        let unused = async {
            while upstream.strong_count() != 0 {
                tokio::time::sleep(PAUSE).await;
            }
        };
        let reason = tokio::select! {
            reason = ended => reason,
            () = unused => "nobody uses it".to_owned(),
            () = self.clone().renew_until_lost() => {
                "this replica lost the lease of the upstream".to_owned()
            }
        };
        if let Some(upstream) = upstream.upgrade() {
            upstream.end(&reason);
        }
        self.0.cluster.withdraw(&self.0.name, self.fence());
        self.release().await;
    }

    async fn release(self) {
        let KeptLease { cluster, name, lease } = &*self.0;
        let _ = Expiring::remove(cluster.store(), &owner_key(name), STORE_TIMEOUT).await;
        let lease = Lease { name: lease.name.clone(), fence: lease.fence };
        // A lease that cannot be released runs out.
        let _ = cluster.store().release(lease, STORE_TIMEOUT).await;
    }
}
