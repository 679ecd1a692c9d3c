//! An upstream that runs at one replica at a time (`single = true`).
//!
//! Whoever holds its lease runs it; the others reach it through a pipe to that
//! replica. A holder that cannot renew its lease in time stops the upstream before
//! another may start it. When the holder is gone the pipes end, the upstream is
//! connected anew, and whoever gets the lease first runs it.

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

use super::connector::Remote;
use super::shared::Shared;

/// How long a lease holds after it was last renewed, and how often it is.
const LIFE: Duration = Duration::from_secs(6);
const RENEW: Duration = Duration::from_secs(2);
/// How long before its end a lease that could not be renewed counts as lost.
const MARGIN: Duration = Duration::from_millis(1500);
const WITHIN: Duration = Duration::from_secs(1);
/// How long to wait before looking again who has it.
const PAUSE: Duration = Duration::from_millis(250);

/// Opens sessions with an upstream that runs once.
pub(super) struct Single {
    remote: Remote,
    shared: Shared,
    name: String,
    /// What runs here, which all sessions of this replica share.
    held: tokio::sync::Mutex<Weak<Held>>,
}

impl Single {
    pub(super) fn new(remote: Remote, shared: Shared) -> Single {
        let name = format!("single {}", remote.fingerprint());
        Single { remote, shared, name, held: tokio::sync::Mutex::default() }
    }

    async fn open_somewhere(&self, client: &Client) -> Result<Arc<dyn Provider>, Failure> {
        let mut held = self.held.lock().await;
        if let Some(running) = held.upgrade().filter(|running| !running.is_over()) {
            return Ok(running);
        }
        loop {
            match self.shared.store().acquire(&self.name, LIFE, WITHIN).await {
                Ok(lease) => {
                    let running = self.run_here(lease, client).await?;
                    *held = Arc::downgrade(&running);
                    return Ok(running);
                }
                Err(StateError::Conflict) => {}
                Err(error) => {
                    let reason = format!("nobody can tell which replica runs it: {error}");
                    return Err(Failure::Unavailable { reason });
                }
            }
            if let Some(owner) = self.owner().await
                && let Ok(there) = self.reach(owner, client).await
            {
                return Ok(there);
            }
            // It starts there, or it has just ended there. The roster bounds this.
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn run_here(&self, lease: Lease, client: &Client) -> Result<Arc<Held>, Failure> {
        let keeping = Keeping::new(self.shared.clone(), self.name.clone(), lease);
        let started = tokio::select! {
            started = self.remote.connect(client) => started,
            () = keeping.clone().renew_until_lost() => {
                let reason = "another replica has taken it over while it started".to_owned();
                Err(Failure::Unavailable { reason })
            }
        };
        let inner = match started {
            Ok(inner) => inner,
            Err(failure) => {
                keeping.release().await;
                return Err(failure);
            }
        };
        let events = inner.events();
        let held = Arc::new(Held {
            listing: RwLock::new(inner.listing()),
            inner: RwLock::new(Some(inner)),
            over: watch::Sender::new(None),
        });
        self.shared.offer(&self.name, keeping.fence(), Arc::downgrade(&held) as _);
        keeping.say_owner().await;
        tokio::spawn(keeping.keep(Arc::downgrade(&held), events));
        Ok(held)
    }

    /// The replica that runs it, and the number of its lease.
    async fn owner(&self) -> Option<(u32, u64)> {
        let note = Expiring::get(self.shared.store(), &owner_key(&self.name), WITHIN).await;
        let note = String::from_utf8(note.ok()??.into()).ok()?;
        let (replica, fence) = note.split_once(' ')?;
        let owner = (replica.parse().ok()?, fence.parse().ok()?);
        self.shared.is_there(owner.0).await.then_some(owner)
    }

    async fn reach(
        &self,
        (replica, fence): (u32, u64),
        client: &Client,
    ) -> Result<Arc<dyn Provider>, Failure> {
        let (shared, name) = (self.shared.clone(), self.name.clone());
        let open = move || shared.open_tunnel(replica, &name, fence);
        self.remote.connect_through(Pipes::new(open), client).await
    }
}

#[async_trait]
impl Connector for Single {
    async fn connect(&self, client: &Client) -> Result<Arc<dyn Provider>, Failure> {
        self.open_somewhere(client).await
    }

    fn credential_health(&self) -> Option<CredentialHealth> {
        Connector::credential_health(&self.remote)
    }
}

#[async_trait]
impl OpenSession for Single {
    async fn open(&self, client: &Client) -> Result<OpenedSession, Failure> {
        let upstream = self.open_somewhere(client).await?;
        Ok(OpenedSession { listing_session: Arc::clone(&upstream), upstream })
    }

    fn credential_health(&self) -> Option<CredentialHealth> {
        Connector::credential_health(self)
    }
}

fn owner_key(name: &str) -> String {
    format!("{name} owner")
}

/// The upstream as it runs here. It ends with its lease.
struct Held {
    inner: RwLock<Option<Arc<dyn Provider>>>,
    /// What it listed last, for who asks after its end.
    listing: RwLock<Arc<Listing>>,
    /// Why it is over, once it is.
    over: watch::Sender<Option<String>>,
}

impl Held {
    fn is_over(&self) -> bool {
        self.over.borrow().is_some()
    }

    /// Stops it: whoever talks to it loses the connection.
    fn end(&self, reason: &str) {
        drop(self.inner.write().take());
        self.over.send_replace(Some(reason.to_owned()));
    }
}

#[async_trait]
impl Provider for Held {
    fn listing(&self) -> Arc<Listing> {
        if let Some(inner) = &*self.inner.read() {
            *self.listing.write() = inner.listing();
        }
        Arc::clone(&self.listing.read())
    }

    fn events(&self) -> BoxStream<'static, Event> {
        let (mut over, why) = (self.over.subscribe(), self.over.subscribe());
        let told = self.inner.read().as_ref().map(|inner| inner.events());
        let told = told.unwrap_or_else(|| futures::stream::empty().boxed());
        // Its own end is told by who keeps it.
        let goes_on = |event: &Event| std::future::ready(!matches!(event, Event::Gone { .. }));
        let is_over = async move { drop(over.wait_for(Option::is_some).await) };
        let gone = async move { Event::Gone { reason: why.borrow().clone().unwrap_or_default() } };
        told.filter(goes_on)
            .chain(futures::stream::pending())
            .take_until(Box::pin(is_over))
            .chain(futures::stream::once(gone))
            .boxed()
    }

    async fn ask(&self, ask: Ask, context: &Context) -> Result<Reply, Failure> {
        let inner = self.inner.read().clone();
        let mut over = self.over.subscribe();
        let Some(inner) = inner else {
            let reason = over.borrow().clone().unwrap_or_default();
            return Err(Failure::Unavailable { reason });
        };
        tokio::select! {
            answer = inner.ask(ask, context) => answer,
            reason = over.wait_for(Option::is_some) => {
                let reason = reason.ok().and_then(|reason| reason.clone()).unwrap_or_default();
                Err(Failure::Lost { reason, sent: tool::Sent::Perhaps })
            }
        }
    }

    fn enforces_timeout(&self) -> bool {
        self.inner.read().as_ref().is_some_and(|inner| inner.enforces_timeout())
    }
}

/// Keeps a lease. Clones are the same.
#[derive(Clone)]
struct Keeping(Arc<Kept>);

struct Kept {
    shared: Shared,
    name: String,
    lease: Lease,
}

impl Keeping {
    fn new(shared: Shared, name: String, lease: Lease) -> Keeping {
        Keeping(Arc::new(Kept { shared, name, lease }))
    }

    fn fence(&self) -> u64 {
        self.0.lease.fence
    }

    /// Tells the others where it runs.
    async fn say_owner(&self) {
        let Kept { shared, name, lease } = &*self.0;
        let note = format!("{} {}", shared.tag(), lease.fence);
        let _ = Expiring::put(shared.store(), &owner_key(name), note.into(), LIFE, WITHIN).await;
    }

    /// Renews the lease until it is lost, or may be by the time that anybody hears.
    async fn renew_until_lost(self) {
        let Kept { shared, lease, .. } = &*self.0;
        let mut end = Instant::now() + LIFE - MARGIN;
        loop {
            tokio::time::sleep(RENEW.min(end.saturating_duration_since(Instant::now()))).await;
            let asked = Instant::now();
            match shared.store().renew(lease, LIFE, WITHIN).await {
                Ok(()) => {
                    end = asked + LIFE - MARGIN;
                    self.say_owner().await;
                }
                Err(StateError::Gone | StateError::Conflict) => return,
                Err(_) if end <= Instant::now() => return,
                Err(_) => {}
            }
        }
    }

    /// Keeps an upstream running until it ends, nobody uses it, or the lease is lost.
    async fn keep(self, held: Weak<Held>, mut events: BoxStream<'static, Event>) {
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
            while held.strong_count() != 0 {
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
        if let Some(held) = held.upgrade() {
            held.end(&reason);
        }
        self.0.shared.withdraw(&self.0.name, self.fence());
        self.release().await;
    }

    async fn release(self) {
        let Kept { shared, name, lease } = &*self.0;
        let _ = Expiring::remove(shared.store(), &owner_key(name), WITHIN).await;
        let lease = Lease { name: lease.name.clone(), fence: lease.fence };
        // What cannot be released ends by itself.
        let _ = shared.store().release(lease, WITHIN).await;
    }
}
