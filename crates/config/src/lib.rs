//! The configuration file: what was written, then what it means.
//!
//! Each section has a `Raw` type, which is the section as it stands in the file,
//! and a type with its meaning. A document is checked against the JSON Schema of
//! the `Raw` types first (`shape`), then each section is parsed. All problems are
//! collected with their places in the file and reported together. The files of
//! other MCP clients are read as well ([`foreign`]), and single upstreams of our
//! own file can be changed ([`edit`]).
//!
//! This crate knows no flags and no state directory: where values of `${env:…}`,
//! `${keyring:…}` and `${cmd:…}` come from is the caller's business, who passes an
//! [`Environment`].

mod access;
mod approvals;
mod artifacts;
mod auth;
mod builtin;
mod console;
mod controls;
mod gate;
mod learning;
mod listing;
mod manifest;
mod metrics;
mod mount;
mod raw_upstream;
mod records;
mod result_shape;
mod sandbox;
mod scripts;
mod search;
mod serve;
mod site;
mod skills;
mod state;
mod surface;
mod traces;
mod trust;
mod upstream;
mod visibility;

pub mod foreign;

pub mod edit;
mod self_reference;

mod problem;
mod shape;
mod text;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use catalog::index::Meaning;
use document::tree as node;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use web::tls::ClientCertificates;

pub use self::approvals::{Approvals, Confirm, Webhook, write_remembered};
pub use self::artifacts::{Artifacts, Location, ObjectStore};
pub use self::console::Console;
pub use self::sandbox::{Raw as RawSandbox, Sandbox};
pub use self::scripts::Scripts;
pub use self::skills::Skills;
pub use access::{GrantType, Oauth};
pub use auth::{Auth, KeySource};
pub use controls::Controls;
pub use gate::{Gate, SameData};
pub use learning::Learning;
pub use manifest::Manifest;
pub use metrics::Metrics;
pub use mount::{Mount, Raw as RawMount, meant};
pub use problem::{Problem, Problems, Source, Weight};
pub use raw_upstream::{Entry, Kind, Raw as RawUpstream, Start, Wire, write};
pub use records::Records;
pub use serve::{Serve, Tls, address};
pub use site::{Ownership, Rules};
pub use state::{SharedState, StateKey};
pub use surface::SurfaceName;
pub use text::{Environment, NamedSecrets, Process};
pub use traces::Traces;
pub use upstream::{Reach, Upstream};

use self_reference::OwnAddress;

/// The configuration file of gatelet.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "gatelet configuration")]
pub struct Raw {
    /// The servers behind gatelet.
    #[serde(default)]
    upstream: Vec<raw_upstream::Raw>,
    #[serde(default)]
    gate: gate::Raw,
    #[serde(default)]
    serve: serve::Raw,
    #[serde(default)]
    scripts: scripts::Raw,
    #[serde(default)]
    skills: skills::Raw,
    #[serde(default)]
    builtin: builtin::Raw,
    #[serde(default)]
    auth: auth::Raw,
    #[serde(default)]
    manifest: manifest::Raw,
    #[serde(default)]
    records: records::Raw,
    #[serde(default)]
    approvals: approvals::Raw,
    #[serde(default)]
    metrics: metrics::Raw,
    #[serde(default)]
    traces: traces::Raw,
    #[serde(default)]
    artifacts: artifacts::Raw,
    #[serde(default)]
    console: console::Raw,
    #[serde(default)]
    controls: controls::Raw,
    #[serde(default)]
    learning: learning::Raw,
    #[serde(default)]
    listing: listing::Raw,
    #[serde(default)]
    search: search::Raw,
    #[serde(default)]
    trust: trust::Raw,
    #[serde(default)]
    visibility: visibility::Raw,
    /// Which part of a tool's results goes out where a caller does not say.
    #[serde(default)]
    shape: Vec<result_shape::Raw>,
    /// Servers that are found through their manifests.
    #[serde(default)]
    mount: Vec<mount::Raw>,
    #[serde(default)]
    state: state::Raw,
}

/// The configuration as it is meant.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    pub upstreams: Vec<Upstream>,
    pub gate: Gate,
    /// Which part of an answer goes out where the caller does not say.
    pub shapes: gateway::dispatch::Shapes,
    pub serve: Serve,
    pub scripts: Scripts,
    pub skills: Skills,
    /// Whether the tools that come with gatelet are offered.
    pub builtin: bool,
    pub auth: Auth,
    pub manifest: Manifest,
    pub records: Records,
    pub metrics: Metrics,
    /// `None` where nobody traces.
    pub traces: Option<Traces>,
    pub artifacts: Artifacts,
    pub console: Console,
    pub controls: Controls,
    pub learning: Learning,
    /// What is listed whole beside our own tools.
    pub listed: gateway::surface::listed::Config,
    /// Whether searches compare meanings.
    pub meaning: Meaning,
    pub trust: policy::trust::Config,
    pub approvals: Approvals,
    pub visibility: policy::visibility::Config,
    pub mounts: Vec<Mount>,
    /// What it takes from files, keyrings and commands.
    pub named_secrets: NamedSecrets,
    /// What is shared with other replicas, if there are any.
    pub state: Option<SharedState>,
}

impl Config {
    /// Returns what the built-in namespaces are called here, with what is in them;
    /// none where they are not offered.
    pub fn builtin_labels(&self) -> Vec<(String, &'static str)> {
        if !self.builtin {
            return Vec::new();
        }
        let upstreams = self.upstreams.iter().map(|upstream| upstream.label.as_str());
        let about = ::builtin::LABELS.iter().map(|(_, about)| *about);
        ::builtin::called(upstreams).into_iter().zip(about).collect()
    }

    /// Returns why this gatelet must not listen where it is told to: strangers
    /// reach it, and nobody is asked who they are. `open` is what the command line
    /// says.
    pub fn exposed(&self, open: bool) -> Option<String> {
        let serve = &self.serve;
        let shows = serve.tls.as_ref().is_some_and(|tls| tls.callers == ClientCertificates::Must);
        let guarded = self.auth.required || shows || open || serve.open;
        (!serve.listen.ip().is_loopback() && !guarded).then(|| {
            format!(
                "`{}` can be reached from other machines, and nobody is asked who they are; listen \
                 on 127.0.0.1, set `auth.required`, or say --open if that is what you want",
                serve.listen
            )
        })
    }

    /// The sections that are different in the `other`, of those that a running
    /// gate cannot take up.
    pub fn restart_for(&self, other: &Config) -> Vec<&'static str> {
        // Every section is named here, so that none is forgotten in silence.
        let Config {
            serve,
            auth,
            manifest,
            records,
            metrics,
            traces,
            artifacts,
            learning,
            meaning,
            approvals,
            console,
            scripts,
            state,
            // Taken up by `Wiring::reload`.
            upstreams: _,
            gate: _,
            shapes: _,
            skills: _,
            builtin: _,
            controls: _,
            listed: _,
            trust: _,
            visibility: _,
            mounts: _,
            named_secrets: _,
        } = self;
        let changed = [
            ("[serve]", *serve != other.serve),
            ("[auth]", *auth != other.auth),
            ("[manifest]", *manifest != other.manifest),
            ("[records]", *records != other.records),
            ("[metrics]", *metrics != other.metrics),
            ("[traces]", *traces != other.traces),
            ("[artifacts]", *artifacts != other.artifacts),
            ("[learning]", *learning != other.learning),
            ("[console]", *console != other.console),
            ("[search]", *meaning != other.meaning),
            ("`life` and `webhook` of [approvals]", {
                approvals.life != other.approvals.life
                    || approvals.webhook != other.approvals.webhook
            }),
            ("[scripts]", *scripts != other.scripts),
            ("[state]", *state != other.state),
        ];
        changed.into_iter().filter(|(_, is)| *is).map(|(section, _)| section).collect()
    }
}

/// A configuration and where it came from.
#[derive(Clone, Debug)]
pub struct Loaded {
    pub config: Config,
    /// `None` for the embedded default.
    pub file: Option<PathBuf>,
    /// What is odd in it though not in the way.
    pub warnings: Option<Problems>,
}

/// Why there is no configuration to work with.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("cannot read `{file}`: {source}")]
    Unreadable { file: String, source: std::io::Error },
    /// It is not a file of another client.
    #[error("{0}")]
    NoServers(String),
    /// What stands in it is wrong.
    #[error(transparent)]
    Wrong(#[from] Problems),
}

/// Reads the configuration in a file; without a file, the embedded default.
/// `listen` is where the command line says that gatelet listens, which wins over
/// what the file says.
pub fn load(
    file: Option<PathBuf>,
    environment: &dyn Environment,
    listen: Option<SocketAddr>,
) -> Result<Loaded, LoadError> {
    let Some(file) = file else {
        return Ok(Loaded { config: default_config()?, file: None, warnings: None });
    };
    let shown = file.display().to_string();
    let unreadable = |source| LoadError::Unreadable { file: shown.clone(), source };
    let text = std::fs::read_to_string(&file).map_err(unreadable)?;
    // Relative paths in the file are relative to the file, whoever reads it.
    let whole = std::path::absolute(&file).map_err(unreadable)?;
    let base = whole.parent().unwrap_or(Path::new("/"));
    let source = Source { name: shown, text };
    let (config, problems) = read_for(source, base, environment, listen)?;
    let warnings = Some(problems).filter(|problems| !problems.is_empty());
    Ok(Loaded { config, file: Some(file), warnings })
}

/// The configuration that is used when there is none.
pub fn default_config() -> Result<Config, Problems> {
    let text = "[builtin]\ntools = true\n".to_owned();
    let source = Source { name: "the embedded default".to_owned(), text };
    Ok(read(source, Path::new(""), &Process)?.0)
}

/// Reads a document. The problems that come with a configuration are warnings.
pub fn read(
    source: Source,
    base: &Path,
    environment: &dyn Environment,
) -> Result<(Config, Problems), Problems> {
    read_for(source, base, environment, None)
}

/// Reads a document for a gatelet that listens where the command line says.
fn read_for(
    source: Source,
    base: &Path,
    environment: &dyn Environment,
    listen: Option<SocketAddr>,
) -> Result<(Config, Problems), Problems> {
    let here = OwnAddress::usual(&source.name, base, listen);
    let (root, mut problems) = tree(source);
    // What was meant by the rest is a guess where something cannot be read.
    if problems.has_errors() {
        return Err(problems);
    }
    // Others' files run no commands and get no secrets of ours.
    let is_foreign = foreign::is_foreign(&root);
    let environment = if is_foreign { &Process } else { environment };
    let (raw, found) = if is_foreign {
        (Raw::default(), foreign::read(&root, &here, environment, &mut problems))
    } else {
        let raw = raw(&root, &mut problems);
        let found = own(&raw);
        (raw, found)
    };
    let mut config = parse(raw, found, here, environment, &mut problems);
    config.named_secrets = environment.noted_secrets();
    if problems.has_errors() { Err(problems) } else { Ok((config, problems)) }
}

/// Returns what was written, as far as it fits. A document that cannot be taken
/// over is an error, never an empty configuration.
fn raw(root: &node::Node, problems: &mut Problems) -> Raw {
    let Some(fitting) = shape::fit(root, &schema(), problems) else { return Raw::default() };
    serde_json::from_value(fitting.to_json()).unwrap_or_else(|error| {
        problems.error(&node::Path::default(), error.to_string(), None);
        Raw::default()
    })
}

/// Reads the servers in another client's file, for `gatelet import`.
pub fn import(
    source: Source,
    base: &Path,
) -> Result<(Vec<raw_upstream::Entry>, Problems), LoadError> {
    let name = source.name.clone();
    let (root, mut problems) = tree(source);
    if problems.has_errors() {
        return Err(problems.into());
    }
    if !foreign::is_foreign(&root) {
        let known = "`mcpServers`, `servers`, `mcp`, `context_servers` and `mcp_servers` are known";
        return Err(LoadError::NoServers(format!("`{name}` has no table of servers; {known}")));
    }
    let here = OwnAddress::usual(&name, base, None);
    let found = foreign::read(&root, &here, &Process, &mut problems);
    let found = found.into_iter().filter(|one| is_sound(one, &here, &mut problems)).collect();
    Ok((found, problems))
}

/// Returns whether an entry of a host leads to the gatelet of this configuration.
pub fn leads_here(reach: &hosts::Reach, config: &Config, file: &Path) -> bool {
    let base = file.parent().unwrap_or(Path::new("/")).to_owned();
    let here = OwnAddress {
        asked: None,
        listen: config.serve.listen,
        public: config.auth.public_url.clone(),
        file: file.to_owned(),
        base,
    };
    let raw = match reach.clone() {
        hosts::Reach::Program { command, args } => {
            raw_upstream::Raw { command: Some(command), args, ..raw_upstream::Raw::default() }
        }
        hosts::Reach::Http { url, .. } => {
            raw_upstream::Raw { url: Some(url), ..raw_upstream::Raw::default() }
        }
    };
    here.is(&raw, &Process).is_some()
}

/// Returns whether an upstream would be taken from our own file, too. Why not is
/// noted.
fn is_sound(found: &raw_upstream::Entry, here: &OwnAddress, problems: &mut Problems) -> bool {
    let mut own = problems.empty();
    upstream::parse(vec![found.clone()], here, &Process, &mut own);
    let is_sound = !own.has_errors();
    for problem in own.into_errors() {
        let message = format!("{}: the server was left out", problem.message);
        problems.push(Problem { weight: Weight::Warning, message, ..problem });
    }
    is_sound
}

/// The document as a tree, read as JSON when it looks like it, as YAML when
/// its name says so, else as TOML.
fn tree(source: Source) -> (node::Node, Problems) {
    let mut twice = Vec::new();
    let (root, errors) = if source.is_json() {
        match document::json::read(&source.text) {
            Ok((root, noted)) => {
                twice = noted;
                (root, Vec::new())
            }
            // Nothing more is said against what cannot be read.
            Err(error) => {
                let value = node::Value::Table(Vec::new());
                (node::Node { span: 0..0, value }, vec![error])
            }
        }
    } else if source.is_yaml() {
        match document::yaml::read(&source.text) {
            Ok(root) => (root, Vec::new()),
            Err(error) => {
                (node::Node { span: 0..0, value: node::Value::Table(Vec::new()) }, vec![error])
            }
        }
    } else {
        document::toml::read(&source.text)
    };
    let mut problems = Problems::new(source, root.clone());
    for (span, message) in errors {
        problems.push(Problem { weight: Weight::Error, span, message, hint: None });
    }
    for (span, message) in twice {
        problems.note(span, message);
    }
    (root, problems)
}

/// The upstreams of our own file, each with its place.
fn own(raw: &Raw) -> Vec<raw_upstream::Entry> {
    let place = |at| node::Path::default().key("upstream").index(at);
    let found = raw.upstream.iter().enumerate();
    found.map(|(at, raw)| raw_upstream::Entry { path: place(at), raw: raw.clone() }).collect()
}

fn parse(
    raw: Raw,
    found: Vec<raw_upstream::Entry>,
    mut here: OwnAddress,
    environment: &dyn Environment,
    problems: &mut Problems,
) -> Config {
    let base = &here.base.clone();
    let serve = serve::parse(raw.serve, base, problems);
    let auth = auth::parse(raw.auth, base, environment, problems);
    here.listen = here.asked.unwrap_or(serve.listen);
    here.public = auth.public_url.clone();
    let state = state::parse(raw.state, base, environment, problems);
    let upstreams = upstream::parse(found, &here, environment, problems);
    let labels: Vec<&str> = upstreams.iter().map(|upstream| upstream.label.as_str()).collect();
    let confirm = raw.trust.confirm;
    Config {
        approvals: approvals::parse(raw.approvals, confirm, base, environment, problems),
        artifacts: artifacts::parse(raw.artifacts, state.is_some(), base, environment, problems),
        console: console::parse(&raw.console),
        controls: controls::parse(raw.controls, &labels, problems),
        learning: learning::parse(&raw.learning),
        listed: listing::parse(&raw.listing),
        meaning: search::parse(&raw.search),
        trust: trust::parse(raw.trust, &labels, problems),
        visibility: visibility::parse(&raw.visibility, problems),
        mounts: mount::parse(raw.mount, base, environment, problems),
        named_secrets: NamedSecrets::default(),
        gate: gate::parse(&raw.gate, problems),
        shapes: result_shape::parse(raw.shape, problems),
        serve,
        scripts: scripts::parse(&raw.scripts, base),
        skills: skills::parse(raw.skills, base, environment),
        builtin: builtin::parse(&raw.builtin, &labels, problems),
        auth,
        manifest: manifest::parse(raw.manifest, base, problems),
        records: records::parse(raw.records, base, environment),
        metrics: metrics::parse(&raw.metrics, base, environment, problems),
        traces: traces::parse(&raw.traces, base, environment, problems),
        state,
        upstreams,
    }
}

/// The JSON Schema of the file, for editors and for ourselves.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(Raw).to_value()
}

#[cfg(test)]
mod tests;
