//! One upstream as the operator configured it, and the trait that connects to it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tool::{Client, CredentialHealth, Failure, Listing, Provider};

/// Opens sessions with one upstream.
#[async_trait]
pub trait Connector: Send + Sync {
    /// Opens a session as this client. The roster bounds the time; dropping
    /// the future must leave nothing behind.
    async fn connect(&self, client: &Client) -> Result<Arc<dyn Provider>, Failure>;

    /// Returns the state of the credentials for this upstream; `None` if it needs none.
    fn credential_health(&self) -> Option<CredentialHealth> {
        None
    }
}

/// One upstream, as the operator configured it.
pub struct Upstream {
    pub label: String,
    /// One line for people; the server's own description when `None`.
    pub description: Option<String>,
    pub connector: Arc<dyn Connector>,
    pub start: Start,
    /// Stops it after this long without a call.
    pub idle_stop: Option<Duration>,
    pub start_timeout: Duration,
    pub call_timeout: Duration,
    /// Changes whenever the upstream becomes another one (another command,
    /// another address), so that its old listing is not used and a reload
    /// knows what to restart.
    pub fingerprint: String,
    /// Its listing, if that is known beforehand because it is part of this process.
    pub fixed_listing: Option<Arc<Listing>>,
}

/// When an upstream is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// As soon as its pool has a client.
    Eager,
    /// When it is first needed, which includes never having been listed.
    OnDemand,
}

impl Upstream {
    /// Makes an upstream that is started with gatelet and never stopped.
    pub fn new(label: &str, connector: Arc<dyn Connector>) -> Upstream {
        Upstream {
            label: label.to_owned(),
            description: None,
            connector,
            start: Start::Eager,
            idle_stop: None,
            start_timeout: Duration::from_secs(30),
            call_timeout: Duration::from_secs(120),
            fingerprint: String::new(),
            fixed_listing: None,
        }
    }
}
