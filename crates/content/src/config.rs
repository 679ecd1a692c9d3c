//! The options of the toolset, which the operator chooses.

use std::collections::BTreeMap;
use std::time::Duration;

/// How the toolset is opened. [`Config::new`] and [`Config::sample`] follow
/// the contract; every field may be changed.
#[derive(Clone, Debug)]
pub struct Config {
    pub source: Source,
    /// What stands before every table name; found out when `None`.
    pub prefix: Option<String>,
    pub limits: Limits,
    pub pool: Pool,
    pub tree: Tree,
    /// Down to where there are no more documents than this, trees are read
    /// from their roots; beyond, in the order of ids. A tenth of the site, and
    /// at most 5000, when `None`.
    pub few_documents: Option<i64>,
    pub errors: ErrorForm,
    pub ownership: Ownership,
    /// Callers by their name, and the CMS user that each acts for.
    pub owners: BTreeMap<String, i64>,
    /// Whether an owner needs the CMS's own permission for this toolset.
    pub need_permission: bool,
    /// The time since 1970, which owners may be blocked by. A parameter, so
    /// that tests need not wait.
    pub clock: fn() -> Duration,
    /// Tools that are neither listed nor answered; `*` stands for anything.
    pub deny_tools: Vec<String>,
}

/// Where the content is.
#[derive(Clone, PartialEq, Eq)]
pub enum Source {
    /// The small site that comes with gatelet.
    Sample,
    /// `sqlite:`, `mysql:`, `mariadb:` or `postgres:`.
    Url(String),
}

/// How much one call may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub max_result_items: i64,
    pub content_limit: i64,
    pub content_offset: i64,
    pub model_offset: i64,
    pub max_depth: i64,
    /// Bytes of a whole result.
    pub max_result_bytes: usize,
}

/// Limits of one server that replace the global ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    pub max_result_items: Option<i64>,
    pub max_result_bytes: Option<usize>,
    pub max_depth: Option<i64>,
    pub max_offset: Option<i64>,
}

/// How the database is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool {
    pub connections: u32,
    /// How long a call waits for a connection.
    pub acquire: Duration,
    /// How long one statement may run.
    pub statement: Duration,
}

/// How the document tree is walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tree {
    /// By the closure table when it is complete, by parents otherwise.
    Auto,
    Closure,
    Walk,
}

/// How bad arguments are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorForm {
    /// A JSON-RPC error, as the contract says.
    Rpc,
    /// A tool result with `isError`, which every model gets to read.
    Result,
}

/// As whom a call reads the site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// Everybody sees everything that is not deleted.
    Ignored,
    /// A caller with an owner sees what that user may see; others see
    /// everything, as the contract says.
    Honoured,
    /// As `Honoured`, but a caller without an owner sees what a visitor of
    /// the web site sees.
    Required,
}

impl Config {
    /// A site in a database.
    pub fn new(url: impl Into<String>) -> Config {
        Config { source: Source::Url(url.into()), ..Config::sample() }
    }

    /// The sample site, in memory.
    pub fn sample() -> Config {
        Config {
            source: Source::Sample,
            prefix: None,
            limits: Limits::contract(),
            pool: Pool {
                connections: 8,
                acquire: Duration::from_secs(5),
                statement: Duration::from_secs(10),
            },
            tree: Tree::Auto,
            few_documents: None,
            errors: ErrorForm::Rpc,
            ownership: Ownership::Honoured,
            owners: BTreeMap::new(),
            need_permission: false,
            clock: now,
            deny_tools: Vec::new(),
        }
    }
}

fn now() -> Duration {
    let now = jiff::Timestamp::now().as_millisecond();
    Duration::from_millis(u64::try_from(now).unwrap_or(0))
}

impl Limits {
    /// The contract's own figures.
    pub const fn contract() -> Limits {
        Limits {
            max_result_items: 100,
            content_limit: 100,
            content_offset: 5000,
            model_offset: 5000,
            max_depth: 6,
            max_result_bytes: 1_048_576,
        }
    }

    /// These limits, with what one server says differently.
    #[must_use]
    pub fn with(self, server: &Overrides) -> Limits {
        Limits {
            max_result_items: server.max_result_items.unwrap_or(self.max_result_items),
            max_result_bytes: server.max_result_bytes.unwrap_or(self.max_result_bytes),
            max_depth: server.max_depth.unwrap_or(self.max_depth),
            content_offset: server.max_offset.unwrap_or(self.content_offset),
            model_offset: server.max_offset.unwrap_or(self.model_offset),
            ..self
        }
    }

    /// The largest page of documents.
    pub(crate) fn content_items(&self) -> i64 {
        self.max_result_items.min(self.content_limit)
    }
}

impl std::fmt::Debug for Source {
    /// Leaves out the URL, which may hold a password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Source::Sample => "Sample",
            Source::Url(_) => "Url(…)",
        })
    }
}
