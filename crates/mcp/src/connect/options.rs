//! Where a server is, and the options of a connection to it: timeouts, limits and more.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::DuplexStream;
use tool::{ClientHandle, NoClient};

use super::address::AllowedAddresses;
use super::certificates::Certificates;
use super::credential::Credential;
use super::environment::Inherit;
use super::launcher::Launcher;
use super::shutdown::Shutdown;
use crate::memory::MemoryBudget;
use crate::peer::{Limits, Timeouts};
use crate::revision::Revision;

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A program that speaks on its standard input and output.
    Stdio(Program),
    /// Streamable HTTP.
    Http(Endpoint),
    /// HTTP with server-sent events, as in revision 2024-11-05.
    Sse(Endpoint),
    /// In-memory pipes to a server that other code runs.
    Pipes(Pipes),
}

/// Opens a new in-memory pipe to a server for every connection.
#[derive(Clone)]
pub struct Pipes(Arc<dyn Fn() -> DuplexStream + Send + Sync>);

impl Pipes {
    pub fn new(open: impl Fn() -> DuplexStream + Send + Sync + 'static) -> Pipes {
        Pipes(Arc::new(open))
    }

    pub(super) fn open(&self) -> DuplexStream {
        (self.0)()
    }
}

/// Equal if both use the same function.
impl PartialEq for Pipes {
    fn eq(&self, other: &Pipes) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Pipes {}

impl fmt::Debug for Pipes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pipes")
    }
}

/// A program to start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    pub command: PathBuf,
    pub args: Vec<String>,
    /// How much of our own environment the program inherits.
    pub inherit: Inherit,
    /// Variables that are set in addition.
    pub env: BTreeMap<String, String>,
    pub cwd: Option<PathBuf>,
}

/// An HTTP endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Endpoint {
    pub url: String,
    /// Sent with every request.
    pub headers: BTreeMap<String, String>,
    pub certificates: Certificates,
    /// Which IP addresses the connection may use.
    pub addresses: AllowedAddresses,
}

/// The options of a connection.
#[derive(Clone)]
pub struct Options {
    /// The operator's label of the server, for logs.
    pub label: String,
    pub revision: KnownRevision,
    /// The timeouts of requests once the session is open.
    pub timeouts: Timeouts,
    /// The limit for starting, opening the session and fetching the lists, in total.
    pub opening_timeout: Duration,
    /// How long a server may leave `server/discover` unanswered before it is taken for a
    /// legacy server.
    pub probe_timeout: Duration,
    /// How long a program may take to exit: after its input is closed, and again after
    /// SIGTERM.
    pub grace: Duration,
    pub limits: Limits,
    /// The memory budget for long messages, shared with other connections.
    pub memory: MemoryBudget,
    pub list_limits: ListLimits,
    /// Starts programs so that they die with this process.
    pub launcher: Option<Launcher>,
    /// The credential for HTTP requests, besides the configured headers.
    pub credential: Option<Arc<dyn Credential>>,
    /// Closes the connection together with others.
    pub shutdown: Shutdown,
    /// Whether the server's questions name the server.
    pub attribution: Attribution,
    /// Answers questions that the server asks outside of any call.
    pub fallback_client: Arc<dyn ClientHandle>,
}

/// What is known about the server's revision before connecting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KnownRevision {
    /// Nothing: it has to be probed.
    #[default]
    Unknown,
    /// The revision of the last connection. Saves the probe, but may have changed.
    Remembered(Revision),
    /// The revision that the operator configured. Any other is an error.
    Pinned(Revision),
}

/// Whether a question of the server to a client says which server asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Attribution {
    /// The question is passed on unchanged.
    #[default]
    AsAsked,
    /// The question names the server by its label.
    Labelled,
}

/// The limits of each list of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListLimits {
    pub pages: usize,
    /// The maximum number of items per list.
    pub items: usize,
    /// The maximum size of a list, all pages together.
    pub bytes: usize,
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
            opening_timeout: Duration::from_secs(60),
            probe_timeout: Duration::from_millis(1500),
            grace: Duration::from_secs(2),
            limits: Limits {
                requests: 64,
                answers: 16 << 20,
                linger: Duration::ZERO,
                ..Limits::default()
            },
            memory: MemoryBudget::default(),
            list_limits: ListLimits { pages: 1000, items: 100_000, bytes: 128 << 20 },
            launcher: None,
            credential: None,
            shutdown: Shutdown::default(),
            attribution: Attribution::AsAsked,
            fallback_client: Arc::new(NoClient),
        }
    }
}

impl KnownRevision {
    /// Returns whether `server/discover` is sent first.
    pub(super) fn probes(self) -> bool {
        match self {
            KnownRevision::Unknown => true,
            KnownRevision::Remembered(revision) => revision.is_modern(),
            KnownRevision::Pinned(_) => false,
        }
    }

    /// Returns the revision that the operator chose, if any.
    pub(super) fn pinned(self) -> Option<Revision> {
        match self {
            KnownRevision::Pinned(revision) => Some(revision),
            KnownRevision::Unknown | KnownRevision::Remembered(_) => None,
        }
    }
}
