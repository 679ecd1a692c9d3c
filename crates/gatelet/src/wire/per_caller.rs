//! Connects to an upstream for which callers have credentials of their own: one session
//! that callers share, and one more for each caller with a credential.

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

use super::connector::RemoteConnector;
use super::credential;
use super::listing_store::ListingDirectory;
use config::{Reach, Upstream};

/// How many callers have a connector at once; then all are dropped and made anew.
const MAX_CALLERS: usize = 1_024;

/// Opens the shared session, and the callers' own sessions behind it.
pub(super) struct PerCallerSessions {
    shared: RemoteConnector,
    connections: Arc<CallerConnections>,
}

/// Connects as single callers, each with their own credential.
struct CallerConnections {
    upstream: Upstream,
    listings: Arc<ListingDirectory>,
    vault: Vault,
    /// By subject. They outlive sessions, so that a token that was refused is not tried
    /// again with the next session.
    remotes: Mutex<HashMap<String, Arc<RemoteConnector>>>,
    shutdown: Shutdown,
}

impl PerCallerSessions {
    pub(super) fn new(
        shared: RemoteConnector,
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

    /// The session that tools are listed from: the shared one, or where that is refused
    /// because every caller needs a credential, the one of a configured caller.
    async fn listing_session(&self, client: &Client) -> Result<Arc<dyn Provider>, Failure> {
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
        let listing_session = self.listing_session(client).await?;
        let connections = Arc::clone(&self.connections) as Arc<dyn CallerConnector>;
        let upstream = &self.connections.upstream;
        let idle = upstream.idle_stop.unwrap_or(Limits::default().idle);
        let limits = Limits { idle, start_timeout: upstream.start_timeout, ..Limits::default() };
        let shared = Arc::clone(&listing_session);
        let callers = per_caller::PerCallerSessions::new(
            &upstream.label,
            shared,
            connections,
            client,
            limits,
        );
        Ok(OpenedSession { upstream: Arc::new(callers), listing_session })
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
            None if self.vault.has(&credential::vault_entry(label, Some(subject))) => Access::Own,
            None if access.per_caller => {
                Access::Denied(credential::login_hint(label, Some(subject)))
            }
            None => Access::Shared,
        }
    }

    async fn open(&self, subject: &str, client: &Client) -> Result<Arc<dyn Provider>, Failure> {
        self.remote(subject).connect(client).await
    }
}

impl CallerConnections {
    fn remote(&self, subject: &str) -> Arc<RemoteConnector> {
        let mut remotes = self.remotes.lock();
        if let Some(remote) = remotes.get(subject) {
            return Arc::clone(remote);
        }
        if MAX_CALLERS <= remotes.len() {
            remotes.clear();
        }
        let upstream = with_caller_credentials(&self.upstream, subject);
        let credential = credential::for_upstream(&upstream, Some(subject), &self.vault);
        let listings = Arc::clone(&self.listings);
        let remote =
            Arc::new(RemoteConnector::new(&upstream, listings, credential, &self.shutdown));
        remotes.insert(subject.to_owned(), Arc::clone(&remote));
        remote
    }
}

/// The upstream with a caller's credentials in place of its own.
fn with_caller_credentials(upstream: &Upstream, subject: &str) -> Upstream {
    let mut upstream = upstream.clone();
    let own = match upstream.access.callers.get(subject) {
        Some(Ok(own)) => own.clone(),
        Some(Err(_)) | None => Default::default(),
    };
    match &mut upstream.reach {
        Reach::Address { headers, .. } => {
            // No caller may use the operator's token.
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
