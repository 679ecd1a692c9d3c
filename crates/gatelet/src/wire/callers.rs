//! An upstream that callers enter with credentials of their own.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use mcp::connect::Shutdown;
use nested::{OpenSession, OpenedSession};
use parking_lot::Mutex;
use roster::Connector;
use roster::per_caller::{self, Access, CallerConnector, Limits};
use store::vault::Vault;
use tool::{Client, CredentialHealth, Failure, Identity, Provider};

use super::connector::Remote;
use super::credential;
use super::listing_store::ListingDirectory;
use config::{Reach, Upstream};

/// How many callers' tokens are watched over at once.
const WATCHED: usize = 1_024;

/// Opens one session for all and more for single callers.
pub(super) struct PerCallerSessions {
    shared: Remote,
    connections: Arc<CallerConnections>,
}

/// Knows every caller's way in.
struct CallerConnections {
    upstream: Upstream,
    listings: Arc<ListingDirectory>,
    vault: Vault,
    /// Kept while the process lives, so that what is known of a dead token is
    /// not forgotten with a session.
    remotes: Mutex<HashMap<String, Arc<Remote>>>,
    shutdown: Shutdown,
}

impl PerCallerSessions {
    pub(super) fn new(
        shared: Remote,
        upstream: &Upstream,
        listings: Arc<ListingDirectory>,
        vault: Vault,
    ) -> PerCallerSessions {
        let upstream = upstream.clone();
        let connections = CallerConnections {
            upstream,
            listings,
            vault,
            shutdown: shared.shutdown().clone(),
            remotes: Mutex::default(),
        };
        PerCallerSessions { shared, connections: Arc::new(connections) }
    }

    /// The session that is listed from: the shared one, or where everybody has
    /// their own and there is nothing to share, that of a configured caller.
    async fn first(&self, client: &Client) -> Result<Arc<dyn Provider>, Failure> {
        let refused = match self.shared.connect(client).await {
            Err(refused @ (Failure::Unauthorized { .. } | Failure::Forbidden { .. })) => refused,
            other => return other,
        };
        let access = &self.connections.upstream.access;
        let callers = access.callers.iter().filter(|(_, own)| own.is_ok() && access.per_caller);
        for (subject, _) in callers.take(3) {
            if let Ok(session) = self.connections.open(subject, client).await {
                return Ok(session);
            }
        }
        Err(refused)
    }
}

#[async_trait]
impl OpenSession for PerCallerSessions {
    async fn open(&self, client: &Client) -> Result<OpenedSession, Failure> {
        let first = self.first(client).await?;
        let connections = Arc::clone(&self.connections) as Arc<dyn CallerConnector>;
        let upstream = &self.connections.upstream;
        let idle = upstream.idle_stop.unwrap_or(Limits::default().idle);
        let limits = Limits { idle, start_timeout: upstream.start_timeout, ..Limits::default() };
        let shared = Arc::clone(&first);
        let callers = per_caller::PerCallerSessions::new(
            &upstream.label,
            shared,
            connections,
            client,
            limits,
        );
        Ok(OpenedSession { upstream: Arc::new(callers), listing_session: first })
    }

    fn credential_health(&self) -> Option<CredentialHealth> {
        Connector::credential_health(&self.shared)
    }
}

#[async_trait]
impl CallerConnector for CallerConnections {
    fn access(&self, caller: &Identity) -> Access {
        let Upstream { label, access, .. } = &self.upstream;
        let subject = &caller.subject;
        if caller.is_anonymous() {
            return if access.per_caller {
                Access::Denied("only callers with a name can use it".to_owned())
            } else {
                Access::Shared
            };
        }
        match access.callers.get(subject) {
            Some(Ok(_)) => Access::Own,
            Some(Err(reason)) => Access::Denied(reason.clone()),
            None if self.vault.has(&credential::entry(label, Some(subject))) => Access::Own,
            None if access.per_caller => Access::Denied(credential::login(label, Some(subject))),
            None => Access::Shared,
        }
    }

    async fn open(&self, subject: &str, client: &Client) -> Result<Arc<dyn Provider>, Failure> {
        self.remote(subject).connect(client).await
    }
}

impl CallerConnections {
    fn remote(&self, subject: &str) -> Arc<Remote> {
        let mut remotes = self.remotes.lock();
        if let Some(remote) = remotes.get(subject) {
            return Arc::clone(remote);
        }
        if WATCHED <= remotes.len() {
            remotes.clear();
        }
        let upstream = as_caller(&self.upstream, subject);
        let shown = credential::for_upstream(&upstream, Some(subject), &self.vault);
        let remote =
            Arc::new(Remote::new(&upstream, Arc::clone(&self.listings), shown, &self.shutdown));
        remotes.insert(subject.to_owned(), Arc::clone(&remote));
        remote
    }
}

/// The upstream with a caller's credentials in place of its own.
fn as_caller(upstream: &Upstream, subject: &str) -> Upstream {
    let mut upstream = upstream.clone();
    let own = match upstream.access.callers.get(subject) {
        Some(Ok(own)) => own.clone(),
        Some(Err(_)) | None => Default::default(),
    };
    match &mut upstream.reach {
        Reach::Address { headers, .. } => {
            // Nobody goes in with the operator's token.
            headers.retain(|name, _| !name.eq_ignore_ascii_case("authorization"));
            let replaced = |name: &String| own.headers.keys().any(|k| k.eq_ignore_ascii_case(name));
            headers.retain(|name, _| !replaced(name));
            headers.extend(own.headers.clone());
        }
        Reach::Program { env, .. } => env.extend(own.env.clone()),
        Reach::Content { .. } | Reach::Nowhere { .. } => {}
    }
    upstream
}
