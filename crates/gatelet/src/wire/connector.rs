//! Opens sessions with upstreams: in this process, with a CMS site, or with an MCP
//! server that is started as a program or reached at an address.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use mcp::connect::address::AllowedAddresses;
use mcp::connect::{
    Attribution, ConnectError, Credential, Endpoint, KnownRevision, Launcher, Options, Pipes,
    Program, Shutdown, Target, connect,
};
use mcp::peer::Timeouts;
use mcp::revision::Revision;
use nested::{OpenSession, OpenedSession};
use roster::{Connector, ListingStore};
use sha2::{Digest, Sha256};
use tokio::time::Instant;
use tool::{Client, CredentialHealth, Failure, Provider, hex};

use super::listing_store::ListingDirectory;
use super::{chain, memory, sandboxed};
use config::{HttpTransport, Reach, Sandbox, Upstream};

/// "Connects" to a provider in this process.
pub(super) struct InProcess(pub(super) Arc<dyn Provider>);

#[async_trait]
impl Connector for InProcess {
    async fn connect(&self, _: &Client) -> Result<Arc<dyn Provider>, Failure> {
        Ok(Arc::clone(&self.0))
    }
}

/// Opens the database of a CMS site, once for all clients.
pub(super) struct ContentSite {
    config: content::Config,
    opened: tokio::sync::OnceCell<Arc<dyn Provider>>,
}

impl ContentSite {
    pub(super) fn new(config: content::Config) -> ContentSite {
        ContentSite { config, opened: tokio::sync::OnceCell::new() }
    }
}

#[async_trait]
impl Connector for ContentSite {
    async fn connect(&self, _: &Client) -> Result<Arc<dyn Provider>, Failure> {
        let open = async || {
            content::open(&self.config).await.map_err(|error| unavailable(&error.to_string()))
        };
        self.opened.get_or_try_init(open).await.cloned()
    }
}

/// Connects to an MCP server in another process: a program to start or an address.
pub(super) struct RemoteConnector {
    /// The targets to try, in this order; or why there is none.
    targets: Result<Vec<Target>, String>,
    /// What its program may do.
    sandbox: Option<Sandbox>,
    options: Options,
    /// The configured `start_timeout`.
    start_timeout: Duration,
    fingerprint: String,
    credential: Option<Arc<dyn Credential>>,
    /// Also remembers the server's protocol revision, which saves a round trip.
    listings: Arc<ListingDirectory>,
}

impl RemoteConnector {
    /// `credential` is for an address; a program finds its own in its environment.
    pub(super) fn new(
        upstream: &Upstream,
        listings: Arc<ListingDirectory>,
        credential: Option<Arc<dyn Credential>>,
        shutdown: &Shutdown,
    ) -> RemoteConnector {
        let pinned = upstream.revision.map(KnownRevision::Pinned);
        let defaults = Options::default();
        let options = Options {
            label: upstream.label.clone(),
            revision: pinned.unwrap_or_default(),
            // A call that may take five minutes may also be silent for so long.
            timeouts: Timeouts::same(upstream.call_timeout),
            // A little less than the roster allows, so that the error comes from the
            // connection, which knows the step that hung.
            opening_timeout: upstream.start_timeout.mul_f32(0.95),
            // Started through our own executable, programs die when we die.
            launcher: Some(Launcher::Ourselves),
            credential: credential.clone(),
            shutdown: shutdown.clone(),
            // Requests of upstreams to the client say which upstream asks.
            attribution: Attribution::Labelled,
            memory: memory::for_long_messages(),
            ..defaults
        };
        let sandbox = upstream.sandbox.clone();
        let fingerprint = fingerprint(&upstream.reach, sandbox.as_ref());
        RemoteConnector {
            targets: targets(&upstream.reach, sandbox.as_ref()),
            sandbox,
            options,
            start_timeout: upstream.start_timeout,
            fingerprint,
            credential,
            listings,
        }
    }

    /// Connects through pipes to the same server, which another replica runs.
    pub(super) async fn connect_through(
        &self,
        pipes: Pipes,
        client: &Client,
    ) -> Result<Arc<dyn Provider>, Failure> {
        // That replica speaks the newest revision, whatever the server speaks.
        let options = Options { revision: KnownRevision::default(), ..self.options.clone() };
        let connected = connect(&Target::Pipes(pipes), &options, client).await;
        connected.map(|upstream| upstream as Arc<dyn Provider>).map_err(to_failure)
    }

    pub(super) fn shutdown(&self) -> &Shutdown {
        &self.options.shutdown
    }

    /// The same connector, but it refuses addresses inside a private network.
    pub(super) fn public_only(mut self) -> RemoteConnector {
        for target in self.targets.iter_mut().flatten() {
            match target {
                Target::Http(endpoint) | Target::Sse(endpoint) => {
                    endpoint.addresses = AllowedAddresses::Public;
                }
                Target::Stdio(_) | Target::Pipes(_) => {}
            }
        }
        self
    }

    /// A digest of how the server is reached; another one means another server.
    pub(super) fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// The name under which the protocol revision is remembered.
    fn revision_name(&self) -> String {
        format!("revision-{}", self.fingerprint)
    }

    /// The options, with the protocol revision of the last connection.
    fn options(&self) -> Options {
        let remembered = || {
            let text = String::from_utf8(self.listings.load(&self.revision_name())?).ok()?;
            text.parse().ok()
        };
        let revision = match self.options.revision {
            KnownRevision::Unknown => {
                remembered().map_or(KnownRevision::Unknown, KnownRevision::Remembered)
            }
            known @ (KnownRevision::Remembered(_) | KnownRevision::Pinned(_)) => known,
        };
        Options { revision, ..self.options.clone() }
    }

    /// The session; with a sandbox, one whose errors mention it where it may be the cause.
    fn with_sandbox_notes(&self, inner: Arc<dyn Provider>) -> Arc<dyn Provider> {
        match &self.sandbox {
            Some(sandbox) => {
                Arc::new(sandboxed::SandboxedSession { inner, sandbox: sandbox.clone() })
            }
            None => inner,
        }
    }

    fn remember_revision(&self, revision: Revision) {
        if self.options.revision == KnownRevision::Unknown {
            self.listings.save(&self.revision_name(), revision.as_str().as_bytes());
        }
    }
}

#[async_trait]
impl Connector for RemoteConnector {
    async fn connect(&self, client: &Client) -> Result<Arc<dyn Provider>, Failure> {
        let targets = self.targets.as_ref().map_err(|reason| unavailable(reason))?;
        let mut options = self.options();
        let end = Instant::now() + options.opening_timeout;
        let mut first_error = None;
        for target in targets {
            options.opening_timeout = end - Instant::now();
            let connected = connect(target, &options, client).await;
            let connected = connected.map_err(|error| {
                report_configured_timeout(error, options.opening_timeout, self.start_timeout)
            });
            match connected {
                Ok(upstream) => {
                    self.remember_revision(upstream.revision());
                    return Ok(self.with_sandbox_notes(upstream));
                }
                // The next target would refuse us as well.
                Err(
                    error @ (ConnectError::Unauthorized { .. } | ConnectError::Forbidden { .. }),
                ) => {
                    return Err(to_failure(error));
                }
                // The operator can best act on the error of the first target.
                Err(error) => drop(first_error.get_or_insert(error)),
            }
        }
        let failure =
            first_error.map_or_else(|| unavailable("there is nowhere to connect to"), to_failure);
        Err(sandboxed::explain_failure(failure, self.sandbox.as_ref()))
    }

    fn credential_health(&self) -> Option<CredentialHealth> {
        self.credential.as_ref().map(|credential| credential.credential_health())
    }
}

#[async_trait]
impl OpenSession for RemoteConnector {
    async fn open(&self, client: &Client) -> Result<OpenedSession, Failure> {
        let upstream = self.connect(client).await?;
        Ok(OpenedSession { listing_session: Arc::clone(&upstream), upstream })
    }

    fn credential_health(&self) -> Option<CredentialHealth> {
        Connector::credential_health(self)
    }
}

/// The targets to try in order, or why there is none.
fn targets(reach: &Reach, sandbox: Option<&Sandbox>) -> Result<Vec<Target>, String> {
    match reach {
        Reach::Program { command, args, env, inherit, cwd } => {
            let program = Program {
                command: PathBuf::from(command),
                args: args.clone(),
                inherit: *inherit,
                env: env.clone(),
                cwd: cwd.clone(),
            };
            Ok(vec![Target::Stdio(sandboxed::confine_program(program, sandbox)?)])
        }
        Reach::Address { url, headers, wire, certificates } => {
            let (headers, certificates) = (headers.clone(), certificates.clone());
            let addresses = AllowedAddresses::Any;
            let endpoint = Endpoint { url: url.clone(), headers, certificates, addresses };
            Ok(match wire {
                Some(HttpTransport::Http) => vec![Target::Http(endpoint)],
                Some(HttpTransport::Sse) => vec![Target::Sse(endpoint)],
                None => vec![Target::Http(endpoint.clone()), Target::Sse(endpoint)],
            })
        }
        Reach::Content { .. } => Err("a site is read in this process".to_owned()),
        Reach::Nowhere { reason } => Err(reason.clone()),
    }
}

/// A digest of how an upstream is reached, secrets included.
fn fingerprint(reach: &Reach, sandbox: Option<&Sandbox>) -> String {
    let mut digest = Sha256::new();
    let mut add = |text: &str| {
        digest.update(text.len().to_le_bytes());
        digest.update(text);
    };
    if let Some(sandbox) = sandbox {
        add(&format!("{sandbox:?}"));
    }
    match reach {
        Reach::Program { command, args, env, inherit, cwd } => {
            add("program");
            add(&format!("{inherit:?}"));
            add(command);
            args.iter().for_each(|arg| add(arg));
            add(&cwd.as_ref().map(|cwd| cwd.display().to_string()).unwrap_or_default());
            // The path of our own configuration does not make it another program, and
            // differs between replicas.
            let own = env.iter().filter(|(name, _)| *name != chain::VARIABLE);
            own.for_each(|(name, value)| [name, value].into_iter().for_each(|t| add(t)));
        }
        Reach::Address { url, headers, wire, certificates } => {
            add("address");
            add(url);
            add(&certificates.digest());
            add(&format!("{wire:?}"));
            headers.iter().for_each(|(name, value)| [name, value].into_iter().for_each(|t| add(t)));
        }
        Reach::Content { database, prefix, rules } => {
            add("content");
            add(&format!("{rules:?}"));
            add(env!("CARGO_PKG_VERSION"));
            add(database.as_deref().unwrap_or_default());
            add(prefix.as_deref().unwrap_or_default());
        }
        Reach::Nowhere { reason } => {
            add("nowhere");
            add(reason);
        }
    }
    hex::encode(&digest.finalize()[..12])
}

fn unavailable(reason: &str) -> Failure {
    Failure::Unavailable { reason: reason.to_owned() }
}

/// Replaces the time that was left of a timeout by the configured timeout, so that the
/// message is the same in every run.
fn report_configured_timeout(
    mut error: ConnectError,
    left: Duration,
    configured: Duration,
) -> ConnectError {
    if let ConnectError::Silent { after, .. } = &mut error
        && *after == left
    {
        *after = configured;
    }
    error
}

fn to_failure(error: ConnectError) -> Failure {
    match error {
        ConnectError::Unauthorized { reason } => {
            Failure::Unauthorized { reason, sent: tool::Sent::No }
        }
        ConnectError::Forbidden { reason } => Failure::Forbidden { reason, sent: tool::Sent::No },
        ConnectError::RateLimited { retry_after } => {
            Failure::RateLimited { retry_after, sent: tool::Sent::No }
        }
        ConnectError::BadTarget { .. }
        | ConnectError::Start { .. }
        | ConnectError::Ended { .. }
        | ConnectError::Unreachable { .. }
        | ConnectError::Silent { .. }
        | ConnectError::Refused { .. }
        | ConnectError::Unusable { .. }
        | ConnectError::NoCommonRevision { .. } => unavailable(&error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_late_is_told_the_time_that_the_configuration_gives() {
        let left = Duration::from_nanos(2_849_999_617);
        let silent = |after| ConnectError::Silent {
            step: "initialize".to_owned(),
            after,
            stderr: Vec::new(),
        };
        let limit = Duration::from_secs(3);
        let told = report_configured_timeout(silent(left), left, limit).to_string();
        assert_eq!(told, "no answer to `initialize` within 3s");
        let own =
            report_configured_timeout(silent(Duration::from_secs(1)), left, limit).to_string();
        assert_eq!(own, "no answer to `initialize` within 1s");
    }
}
