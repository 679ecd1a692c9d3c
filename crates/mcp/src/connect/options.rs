//! The options of a connection: where the server is, and its timeouts and limits.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::DuplexStream;
use tool::{ClientHandle, NoClient};

use super::address::Addresses;
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
    /// Pipes to a server that somebody else runs.
    Pipes(Pipes),
}

/// Opens a pair of pipes.
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

/// Two that open the same way are the same.
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
    pub addresses: Addresses,
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
    /// Returns whether `server/discover` is what is asked first.
    pub(super) fn probes(self) -> bool {
        match self {
            KnownRevision::Unknown => true,
            KnownRevision::Remembered(revision) => revision.is_modern(),
            KnownRevision::Pinned(_) => false,
        }
    }

    pub(super) fn pinned(self) -> Option<Revision> {
        match self {
            KnownRevision::Pinned(revision) => Some(revision),
            KnownRevision::Unknown | KnownRevision::Remembered(_) => None,
        }
    }
}
