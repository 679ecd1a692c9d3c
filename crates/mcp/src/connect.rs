//! A server somewhere else, as a provider.
//!
//! [`connect`] starts or reaches a server, finds out which revision of the
//! protocol it speaks, opens a session with the given client's capabilities and
//! reads everything it lists. What it gives back is an [`Upstream`]: a
//! [`tool::Provider`] that keeps the listing fresh and carries questions there
//! and answers back, byte for byte. When the server is gone, so is the
//! upstream: starting another is the caller's business.

mod upstream;

mod connection;

mod opening;
mod stderr;
mod steps;

mod listen;
mod lists;
mod refresh;
mod stale;
mod subscriptions;

pub mod address;
pub mod certificates;

mod calls;
mod question;
mod relay;

pub mod credential;
mod headers;
mod params;

mod delivery;
mod http;
mod legacy;
mod request;
mod sse;
mod transport;

mod child;
pub mod environment;
pub mod launcher;
mod pipe;
mod platform;
mod reaper;
pub mod shutdown;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tool::{Client, ClientHandle, Failure, NoClient, RpcError};

use crate::memory::MemoryBudget;
use crate::peer::{Limits, Timeouts};
use crate::revision::Revision;
use steps::Steps;

pub use certificates::Certificates;
pub use credential::{Credential, Refusal};
pub use environment::Inherit;
pub use launcher::Launcher;
pub use shutdown::Shutdown;
pub use upstream::Upstream;

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A program that speaks on its standard input and output.
    Stdio(Program),
    /// Streamable HTTP.
    Http(Endpoint),
    /// HTTP with server-sent events, as in revision 2024-11-05.
    Sse(Endpoint),
}

/// A program to start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    pub command: PathBuf,
    pub args: Vec<String>,
    /// How much of our own environment it inherits.
    pub inherit: Inherit,
    /// Set on top of that.
    pub env: BTreeMap<String, String>,
    pub cwd: Option<PathBuf>,
}

/// An address to reach.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Endpoint {
    pub url: String,
    /// Sent with every request.
    pub headers: BTreeMap<String, String>,
    pub certificates: Certificates,
    /// Where the connection may lead.
    pub addresses: address::Addresses,
}

/// How to treat a server.
#[derive(Clone)]
pub struct Options {
    /// What logs call it.
    pub label: String,
    pub revision: KnownRevision,
    /// For answers once the session is open.
    pub timeouts: Timeouts,
    /// For starting, opening the session and reading the lists, all together.
    pub opening: Duration,
    /// How long a server may leave `server/discover` unanswered before it is
    /// taken for an older one.
    pub probe: Duration,
    /// How long a program may take to end when it is asked to, at each step.
    pub grace: Duration,
    pub limits: Limits,
    /// For long messages of this server and of others, together.
    pub memory: MemoryBudget,
    pub lists: ListLimits,
    /// Ties started programs to our own life.
    pub launcher: Option<Launcher>,
    /// What is shown to a server at an address, beside its fixed headers.
    pub credential: Option<Arc<dyn Credential>>,
    /// Ends it together with others.
    pub shutdown: Shutdown,
    /// What a client is told of who asks, when the server asks something.
    pub attribution: Attribution,
    /// Who is asked when the server asks outside of any call.
    pub home: Arc<dyn ClientHandle>,
}

/// What is known of the revision before anything was said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KnownRevision {
    /// Nothing: find out.
    #[default]
    Unknown,
    /// What it was the last time. Saves the probe, binds nobody.
    Remembered(Revision),
    /// What the operator says. Anything else is an error.
    Pinned(Revision),
}

/// Whether a client that a server asks something is told which server asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Attribution {
    /// The question passes as it came.
    #[default]
    AsAsked,
    /// The question names the server by its label.
    Labelled,
}

/// How much a server may list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListLimits {
    pub pages: usize,
    /// Of each kind.
    pub items: usize,
    /// Of each kind, all pages together.
    pub bytes: usize,
}

/// Why there is no upstream. One variant per remedy.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("{reason}")]
    BadTarget { reason: String },
    #[error("cannot start `{program}`: {source}")]
    Start { program: String, source: std::io::Error },
    /// It went away before the session was open.
    #[error("it ended before the session was open: {reason}")]
    Ended { reason: String },
    #[error("cannot be reached: {reason}")]
    Unreachable {
        reason: String,
        /// What it answered, where it did over HTTP.
        status: Option<u16>,
    },
    #[error("no answer to `{step}` within {after:?}{}", last_words(.stderr))]
    Silent {
        step: String,
        after: Duration,
        /// The last lines that a program wrote to its standard error.
        stderr: Vec<String>,
    },
    #[error("`{step}` was refused: {} ({})", error.message, error.code)]
    Refused { step: String, error: RpcError },
    #[error("the answer to `{step}` cannot be used: {reason}")]
    Unusable { step: String, reason: String },
    #[error("it speaks {theirs}, which is no revision spoken here")]
    NoCommonRevision { theirs: String },
    #[error("not authorised: {reason}")]
    Unauthorized { reason: String },
    #[error("not allowed: {reason}")]
    Forbidden { reason: String },
    #[error("rate limited")]
    RateLimited { retry_after: Option<Duration> },
}

/// Connects to a server, for a client.
///
/// The session is opened with that client's capabilities, so the server offers
/// what this client can serve. Whoever shares an upstream between clients
/// shares it between clients that can do the same.
pub async fn connect(
    target: &Target,
    options: &Options,
    client: &Client,
) -> Result<Arc<Upstream>, ConnectError> {
    let client = Arc::new(client.clone());
    let steps = Steps::default();
    // Pinned here, so that what it waits for is still known when it is late.
    let mut opened = std::pin::pin!(open(target, options, &client, &steps));
    match tokio::time::timeout(options.opening, &mut opened).await {
        Ok(Err(ConnectError::Silent { step, after, .. })) => {
            Err(ConnectError::Silent { step, after, stderr: steps.stderr.end() })
        }
        Ok(opened) => opened,
        Err(_) => {
            let (step, after, stderr) = (steps.open(), options.opening, steps.stderr.end());
            Err(ConnectError::Silent { step, after, stderr })
        }
    }
}

/// What a program said before it fell silent, if anything.
fn last_words(stderr: &[String]) -> String {
    if stderr.is_empty() {
        return String::new();
    }
    format!("; it said: {}", stderr.join(" | "))
}

/// Opens the target, and once more in an older way where the first way is what
/// an older server may stumble over.
async fn open(
    target: &Target,
    options: &Options,
    client: &Arc<Client>,
    steps: &Steps,
) -> Result<Arc<Upstream>, ConnectError> {
    let error = match opening::open(target, options, client, steps).await {
        Ok(upstream) => return Ok(upstream),
        Err(error) => error,
    };
    match (target, &error) {
        // The probe may have killed it.
        (Target::Stdio(_), ConnectError::Ended { .. }) if options.revision.probes() => {
            let revision = KnownRevision::Remembered(Revision::LATEST_LEGACY);
            opening::open(target, &Options { revision, ..options.clone() }, client, steps).await
        }
        // The address may be that of an event stream.
        (Target::Http(endpoint), ConnectError::Unreachable { status: Some(404 | 405), .. }) => {
            let older = Target::Sse(endpoint.clone());
            opening::open(&older, options, client, steps).await.map_err(|_| error)
        }
        _ => Err(error),
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            label: "upstream".to_owned(),
            revision: KnownRevision::Unknown,
            timeouts: Timeouts {
                quiet: Duration::from_secs(60),
                whole: Duration::from_secs(15 * 60),
            },
            opening: Duration::from_secs(60),
            probe: Duration::from_millis(1500),
            grace: Duration::from_secs(2),
            limits: Limits {
                requests: 64,
                answers: 16 << 20,
                linger: Duration::ZERO,
                ..Limits::default()
            },
            memory: MemoryBudget::default(),
            lists: ListLimits { pages: 1000, items: 100_000, bytes: 128 << 20 },
            launcher: None,
            credential: None,
            shutdown: Shutdown::default(),
            attribution: Attribution::AsAsked,
            home: Arc::new(NoClient),
        }
    }
}

impl KnownRevision {
    /// Whether `server/discover` is what is asked first.
    fn probes(self) -> bool {
        match self {
            KnownRevision::Unknown => true,
            KnownRevision::Remembered(revision) => revision.is_modern(),
            KnownRevision::Pinned(_) => false,
        }
    }

    fn pinned(self) -> Option<Revision> {
        match self {
            KnownRevision::Pinned(revision) => Some(revision),
            KnownRevision::Unknown | KnownRevision::Remembered(_) => None,
        }
    }
}

impl ConnectError {
    fn at_step(step: &str, failure: Failure) -> ConnectError {
        let step = step.to_owned();
        match failure {
            Failure::Unavailable { reason } => ConnectError::Unreachable { reason, status: None },
            Failure::Timeout { after } => ConnectError::Silent { step, after, stderr: Vec::new() },
            Failure::Lost { reason, .. } => ConnectError::Ended { reason },
            Failure::Unauthorized { reason, .. } => ConnectError::Unauthorized { reason },
            Failure::Forbidden { reason, .. } => ConnectError::Forbidden { reason },
            Failure::RateLimited { retry_after, .. } => ConnectError::RateLimited { retry_after },
            Failure::Unusable { reason } => ConnectError::Unusable { step, reason },
            Failure::Unsupported { what } => ConnectError::Unusable { step, reason: what },
            Failure::Cancelled => ConnectError::Ended { reason: "cancelled".to_owned() },
        }
    }
}
