//! The configuration of the content toolset.

use std::collections::BTreeMap;
use std::time::Duration;

/// How the toolset is opened. [`Config::new`] and [`Config::sample`] follow
/// the contract; every field may be changed.
#[derive(Clone, Debug)]
pub struct Config {
    pub source: Source,
    /// The prefix of every table name; detected when `None`.
    pub prefix: Option<String>,
    pub limits: Limits,
    pub pool: Pool,
    pub tree: Tree,
    /// The number of documents up to which a tree query starts at the roots; a query
    /// that would meet more reads the site in the order of ids. When `None`, a tenth
    /// of the site and at most 5000.
    pub few_documents: Option<i64>,
    pub errors: ErrorForm,
    pub ownership: Ownership,
    /// The id of the CMS user for whom a caller acts, by the caller's subject.
    pub owners: BTreeMap<String, i64>,
    /// Whether that user needs the CMS's own permission for this toolset.
    pub need_permission: bool,
    /// The time since 1970, for users who are blocked until or from a date. A field, so
    /// that tests can set it.
    pub clock: fn() -> Duration,
    /// Patterns for names of tools that are neither listed nor callable; `*` matches
    /// any text.
    pub deny_tools: Vec<String>,
}

/// The database with the content.
#[derive(Clone, PartialEq, Eq)]
pub enum Source {
    /// The small site that comes with gatelet.
    Sample,
    /// A URL that begins with `sqlite:`, `mysql:`, `mariadb:` or `postgres:`.
    Url(String),
}

/// The maxima of what one call may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest `limit` of any tool.
    pub max_result_items: i64,
    /// The largest `limit` of `evo.content.*`, if it is smaller.
    pub content_limit: i64,
    /// The largest `offset` of `evo.content.*`.
    pub content_offset: i64,
    /// The largest `offset` of `evo.model.*`.
    pub model_offset: i64,
    /// The largest `depth`.
    pub max_depth: i64,
    /// The size of the largest result.
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

/// The connections to the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool {
    pub connections: u32,
    /// How long a call waits for a connection.
    pub acquire: Duration,
    /// How long one statement may run.
    pub statement: Duration,
}

/// How descendants and ancestors of a document are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tree {
    /// As `Closure` when the closure table is complete, as `Walk` otherwise.
    Auto,
    /// In the closure table, which has a row for every pair of ancestor and descendant.
    Closure,
    /// By a recursive query that follows each document's `parent`.
    Walk,
}

/// How invalid arguments are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorForm {
    /// A JSON-RPC error, as the contract says.
    Rpc,
    /// A tool result with `isError`, which every model gets to read.
    Result,
}

/// Whether a call is limited to what the caller's owner (the CMS user for whom the
/// caller acts) may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// Every caller sees everything that is not deleted.
    Ignored,
    /// A caller with an owner sees what that user may see; a caller without one sees
    /// everything, as the contract says.
    Honoured,
    /// A caller with an owner sees what that user may see; a caller without one sees
    /// what a visitor of the web site sees.
    Required,
}

impl Config {
    /// The defaults of the contract, for the site in this database.
    pub fn new(url: impl Into<String>) -> Config {
        Config { source: Source::Url(url.into()), ..Config::sample() }
    }

    /// The defaults of the contract, for the sample site in memory.
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
    /// The limits that the contract sets.
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

    /// Returns these limits with the overrides of one server.
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

    /// The largest `limit` of a tool that lists documents.
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
