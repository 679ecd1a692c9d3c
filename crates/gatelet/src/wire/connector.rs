//! How sessions with upstreams are opened.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use mcp::connect::address::Addresses;
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
use config::{Reach, Sandbox, Upstream, Wire};

/// A provider in this process.
pub(super) struct Local(pub(super) Arc<dyn Provider>);

#[async_trait]
impl Connector for Local {
    async fn connect(&self, _: &Client) -> Result<Arc<dyn Provider>, Failure> {
        Ok(Arc::clone(&self.0))
    }
}

/// A CMS site, opened once for everybody.
pub(super) struct Site {
    config: content::Config,
    open: tokio::sync::OnceCell<Arc<dyn Provider>>,
}

impl Site {
    pub(super) fn new(config: content::Config) -> Site {
        Site { config, open: tokio::sync::OnceCell::new() }
    }
}

#[async_trait]
impl Connector for Site {
    async fn connect(&self, _: &Client) -> Result<Arc<dyn Provider>, Failure> {
        let open = async || {
            content::open(&self.config).await.map_err(|error| unavailable(&error.to_string()))
        };
        self.open.get_or_try_init(open).await.cloned()
    }
}

/// A server somewhere else: a program to start or an address to reach.
pub(super) struct Remote {
    /// Where to try, in this order; or why there is nowhere.
    targets: Result<Vec<Target>, String>,
    /// What its program may do.
    sandbox: Option<Sandbox>,
    options: Options,
    /// How long it may take to start by its configuration.
    limit: Duration,
    fingerprint: String,
    credential: Option<Arc<dyn Credential>>,
    /// Where the protocol revision is remembered, which spares the probe.
    listings: Arc<ListingDirectory>,
}

impl Remote {
    /// `credential` is for an address; programs have theirs in their
    /// environment.
    pub(super) fn new(
        upstream: &Upstream,
        listings: Arc<ListingDirectory>,
        credential: Option<Arc<dyn Credential>>,
        shutdown: &Shutdown,
    ) -> Remote {
        let pinned = upstream.revision.map(KnownRevision::Pinned);
        let defaults = Options::default();
        let options = Options {
            label: upstream.label.clone(),
            revision: pinned.unwrap_or_default(),
            // Whoever allows a call five minutes means a silent one, too.
            timeouts: Timeouts::same(upstream.call_timeout),
            // A little less than the roster allows: only the connection knows
            // the step that hung.
            opening: upstream.start_timeout.mul_f32(0.95),
            // Programs die when we die, because they are started through us.
            launcher: Some(Launcher::Ourselves),
            credential: credential.clone(),
            shutdown: shutdown.clone(),
            // A client sees one gatelet, whoever asks behind it.
            attribution: Attribution::Labelled,
            memory: memory::for_long_messages(),
            ..defaults
        };
        let sandbox = upstream.sandbox.clone();
        let fingerprint = fingerprint(&upstream.reach, sandbox.as_ref());
        let limit = upstream.start_timeout;
        Remote {
            targets: targets(&upstream.reach, sandbox.as_ref()),
            sandbox,
            options,
            limit,
            fingerprint,
            credential,
            listings,
        }
    }

    /// Connects through pipes that lead to the same server at another replica.
    pub(super) async fn connect_through(
        &self,
        pipes: Pipes,
        client: &Client,
    ) -> Result<Arc<dyn Provider>, Failure> {
        // That replica speaks the newest revision, whatever the server speaks.
        let options = Options { revision: KnownRevision::default(), ..self.options.clone() };
        let connected = connect(&Target::Pipes(pipes), &options, client).await;
        connected.map(|upstream| upstream as Arc<dyn Provider>).map_err(failure)
    }

    pub(super) fn shutdown(&self) -> &Shutdown {
        &self.options.shutdown
    }

    /// Connects to what everybody can reach, and to nothing else.
    pub(super) fn public_only(mut self) -> Remote {
        for target in self.targets.iter_mut().flatten() {
            match target {
                Target::Http(endpoint) | Target::Sse(endpoint) => {
                    endpoint.addresses = Addresses::Public;
                }
                Target::Stdio(_) | Target::Pipes(_) => {}
            }
        }
        self
    }

    /// Changes whenever the upstream is not the same any more.
    pub(super) fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    fn memory(&self) -> String {
        format!("revision-{}", self.fingerprint)
    }

    /// The options with what is remembered of the last time.
    fn options(&self) -> Options {
        let remembered = || {
            let text = String::from_utf8(self.listings.load(&self.memory())?).ok()?;
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

    /// A session whose refusals by a sandbox say so.
    fn explaining(&self, inner: Arc<dyn Provider>) -> Arc<dyn Provider> {
        match &self.sandbox {
            Some(sandbox) => Arc::new(sandboxed::Explained { inner, sandbox: sandbox.clone() }),
            None => inner,
        }
    }

    fn remember(&self, revision: Revision) {
        if self.options.revision == KnownRevision::Unknown {
            self.listings.save(&self.memory(), revision.as_str().as_bytes());
        }
    }
}

#[async_trait]
impl Connector for Remote {
    async fn connect(&self, client: &Client) -> Result<Arc<dyn Provider>, Failure> {
        let targets = self.targets.as_ref().map_err(|reason| unavailable(reason))?;
        let mut options = self.options();
        let end = Instant::now() + options.opening;
        let mut first = None;
        for target in targets {
            options.opening = end - Instant::now();
            let connected = connect(target, &options, client).await;
            match connected.map_err(|error| late(error, options.opening, self.limit)) {
                Ok(upstream) => {
                    self.remember(upstream.revision());
                    return Ok(self.explaining(upstream));
                }
                // Another way would be refused as well.
                Err(
                    error @ (ConnectError::Unauthorized { .. } | ConnectError::Forbidden { .. }),
                ) => {
                    return Err(failure(error));
                }
                // What the first way says is what the operator can act on.
                Err(error) => drop(first.get_or_insert(error)),
            }
        }
        let failure = first.map_or_else(|| unavailable("there is nowhere to connect to"), failure);
        Err(sandboxed::explained(failure, self.sandbox.as_ref()))
    }

    fn credential_health(&self) -> Option<CredentialHealth> {
        self.credential.as_ref().map(|credential| credential.credential_health())
    }
}

#[async_trait]
impl OpenSession for Remote {
    async fn open(&self, client: &Client) -> Result<OpenedSession, Failure> {
        let upstream = self.connect(client).await?;
        Ok(OpenedSession { listing_session: Arc::clone(&upstream), upstream })
    }

    fn credential_health(&self) -> Option<CredentialHealth> {
        Connector::credential_health(self)
    }
}

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
            Ok(vec![Target::Stdio(sandboxed::confined(program, sandbox)?)])
        }
        Reach::Address { url, headers, wire, certificates } => {
            let (headers, certificates) = (headers.clone(), certificates.clone());
            let addresses = Addresses::Any;
            let endpoint = Endpoint { url: url.clone(), headers, certificates, addresses };
            Ok(match wire {
                Some(Wire::Http) => vec![Target::Http(endpoint)],
                Some(Wire::Sse) => vec![Target::Sse(endpoint)],
                None => vec![Target::Http(endpoint.clone()), Target::Sse(endpoint)],
            })
        }
        Reach::Content { .. } => Err("a site is read in this process".to_owned()),
        Reach::Nowhere { reason } => Err(reason.clone()),
    }
}

/// A digest of all that makes an upstream what it is. Secrets go into it, and
/// do not come out.
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
            // Where this gatelet has its file does not make a program another one, and
            // differs from replica to replica.
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

pub(super) fn unavailable(reason: &str) -> Failure {
    Failure::Unavailable { reason: reason.to_owned() }
}

/// Who is too late for all that was left of its time is told the time that it
/// has by the configuration: what was left is another in every run.
fn late(mut error: ConnectError, left: Duration, limit: Duration) -> ConnectError {
    if let ConnectError::Silent { after, .. } = &mut error
        && *after == left
    {
        *after = limit;
    }
    error
}

fn failure(error: ConnectError) -> Failure {
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
        let told = late(silent(left), left, limit).to_string();
        assert_eq!(told, "no answer to `initialize` within 3s");
        let own = late(silent(Duration::from_secs(1)), left, limit).to_string();
        assert_eq!(own, "no answer to `initialize` within 1s");
    }
}
