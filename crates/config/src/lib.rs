//! Parses gatelet's configuration file.
//!
//! Each section has a `Raw` type, which is the section as written in the file, and
//! a validated type. The document is first checked against the JSON Schema of the
//! `Raw` types (`schema_check`), then each section is parsed. All problems are
//! collected with their positions in the file and reported together. The crate also
//! converts the configuration files of other MCP clients ([`foreign`]) and edits
//! single upstreams of gatelet's own file ([`edit`]).
//!
//! This crate does not know the command line or the state directory. The caller
//! passes an [`Environment`], which looks up `${env:…}`, `${keyring:…}` and `${cmd:…}`.

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
mod setting;

mod problem;
mod schema_check;
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
pub use mount::{Mount, Raw as RawMount, parse_mount};
pub use problem::{Problem, Problems, Severity, SourceFile};
pub use raw_upstream::{
    HttpTransport, Kind, Raw as RawUpstream, Start, UpstreamEntry, upstreams_to_toml,
};
pub use records::Records;
pub use serve::{Serve, Tls, parse_address};
pub use setting::{Applies, Setting};
pub use site::{Ownership, Rules};
pub use state::{SharedState, StateKey};
pub use surface::SurfaceName;
pub use text::{Environment, NamedSecrets, ProcessEnvironment};
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

/// The validated configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    pub upstreams: Vec<Upstream>,
    pub gate: Gate,
    /// Which part of a tool's result is returned when the caller does not choose one.
    pub shapes: gateway::dispatch::DefaultPicks,
    pub serve: Serve,
    pub scripts: Scripts,
    pub skills: Skills,
    /// Whether the tools that come with gatelet are offered.
    pub builtin: bool,
    pub auth: Auth,
    pub manifest: Manifest,
    pub records: Records,
    pub metrics: Metrics,
    /// `None` when tracing is off.
    pub traces: Option<Traces>,
    pub artifacts: Artifacts,
    pub console: Console,
    pub controls: Controls,
    pub learning: Learning,
    /// Which upstream tools are listed with their full definitions, beside gatelet's own tools.
    pub listed: gateway::surface::listed::Config,
    /// Whether searches compare the meaning of words.
    pub meaning: Meaning,
    pub trust: policy::trust::Config,
    pub approvals: Approvals,
    pub visibility: policy::visibility::Config,
    pub mounts: Vec<Mount>,
    /// The values that the file takes from other files, keyrings and commands.
    pub named_secrets: NamedSecrets,
    /// The store that replicas share; `None` for a single gatelet.
    pub state: Option<SharedState>,
}

impl Config {
    /// Returns the label and the description of each built-in namespace; none when the
    /// built-in tools are off.
    pub fn builtin_labels(&self) -> Vec<(String, &'static str)> {
        if !self.builtin {
            return Vec::new();
        }
        let upstreams = self.upstreams.iter().map(|upstream| upstream.label.as_str());
        let about = ::builtin::LABELS.iter().map(|(_, about)| *about);
        ::builtin::labels_beside(upstreams).into_iter().zip(about).collect()
    }

    /// Returns an error message when other machines can reach the listen address and
    /// callers need no authentication. `open_flag` is whether `--open` allows that.
    pub fn exposure_problem(&self, open_flag: bool) -> Option<String> {
        let serve = &self.serve;
        let needs_certificate =
            serve.tls.as_ref().is_some_and(|tls| tls.callers == ClientCertificates::Required);
        let is_allowed = self.auth.required || needs_certificate || open_flag || serve.open;
        (!serve.listen.ip().is_loopback() && !is_allowed).then(|| {
            format!(
                "`{}` can be reached from other machines, and nobody is asked who they are; listen \
                 on 127.0.0.1, set `auth.required`, or say --open if that is what you want",
                serve.listen
            )
        })
    }

    /// Returns the sections that differ in `other` and only take effect after a restart.
    pub fn sections_needing_restart(&self, other: &Config) -> Vec<&'static str> {
        // Every field is listed, so that the compiler notices a new one.
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
            // Reloaded without a restart by `Wiring::reload`.
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
    /// The problems that do not prevent its use.
    pub warnings: Option<Problems>,
}

/// Why a configuration could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file could not be read.
    #[error("cannot read `{file}`: {source}")]
    Unreadable { file: String, source: std::io::Error },
    /// The file to import has no table of servers.
    #[error("{0}")]
    NoServers(String),
    /// The contents are invalid.
    #[error(transparent)]
    Wrong(#[from] Problems),
}

/// Loads the configuration from a file; without a file, the embedded default.
/// `listen_flag` is the address from the command line, which overrides the file's.
pub fn load(
    file: Option<PathBuf>,
    environment: &dyn Environment,
    listen_flag: Option<SocketAddr>,
) -> Result<Loaded, LoadError> {
    let Some(file) = file else {
        return Ok(Loaded { config: default_config()?, file: None, warnings: None });
    };
    let shown = file.display().to_string();
    let unreadable = |source| LoadError::Unreadable { file: shown.clone(), source };
    let text = std::fs::read_to_string(&file).map_err(unreadable)?;
    // Paths in the file are relative to the directory of the file.
    let whole = std::path::absolute(&file).map_err(unreadable)?;
    let base = whole.parent().unwrap_or(Path::new("/"));
    let source = SourceFile { name: shown, text };
    let (config, problems) = parse_with_listen(source, base, environment, listen_flag)?;
    let warnings = Some(problems).filter(|problems| !problems.is_empty());
    Ok(Loaded { config, file: Some(file), warnings })
}

/// Returns the configuration that is used when there is no file.
pub fn default_config() -> Result<Config, Problems> {
    let text = "[builtin]\ntools = true\n".to_owned();
    let source = SourceFile { name: "the embedded default".to_owned(), text };
    Ok(parse(source, Path::new(""), &ProcessEnvironment)?.0)
}

/// Parses a configuration. Relative paths in it are relative to `base`. The problems
/// that are returned beside a configuration are warnings.
pub fn parse(
    source: SourceFile,
    base: &Path,
    environment: &dyn Environment,
) -> Result<(Config, Problems), Problems> {
    parse_with_listen(source, base, environment, None)
}

/// Parses a configuration for a gatelet whose command line may set the listen address.
fn parse_with_listen(
    source: SourceFile,
    base: &Path,
    environment: &dyn Environment,
    listen_flag: Option<SocketAddr>,
) -> Result<(Config, Problems), Problems> {
    let own_address = OwnAddress::with_defaults(&source.name, base, listen_flag);
    let (root, mut problems) = parse_tree(source);
    // After a syntax error the rest would be a guess.
    if problems.has_errors() {
        return Err(problems);
    }
    // Files of other clients must not run commands or use gatelet's secrets.
    let is_foreign = foreign::is_foreign(&root);
    let environment = if is_foreign { &ProcessEnvironment } else { environment };
    let (raw, found) = if is_foreign {
        (Raw::default(), foreign::convert(&root, &own_address, environment, &mut problems))
    } else {
        let raw = parse_raw(&root, &mut problems);
        let found = own_upstreams(&raw);
        (raw, found)
    };
    let mut config = parse_sections(raw, found, own_address, environment, &mut problems);
    config.named_secrets = environment.noted_secrets();
    if problems.has_errors() { Err(problems) } else { Ok((config, problems)) }
}

/// Returns the part of the document that fits the schema. A document that cannot be
/// deserialized is an error, never an empty configuration.
fn parse_raw(root: &node::Node, problems: &mut Problems) -> Raw {
    let Some(fitting) = schema_check::fit(root, &schema(), problems) else { return Raw::default() };
    serde_json::from_value(fitting.to_json()).unwrap_or_else(|error| {
        problems.error(&node::Path::default(), error.to_string(), None);
        Raw::default()
    })
}

/// Converts the servers in another client's file to upstreams, for `gatelet import`.
pub fn import(
    source: SourceFile,
    base: &Path,
) -> Result<(Vec<raw_upstream::UpstreamEntry>, Problems), LoadError> {
    let name = source.name.clone();
    let (root, mut problems) = parse_tree(source);
    if problems.has_errors() {
        return Err(problems.into());
    }
    if !foreign::is_foreign(&root) {
        let known = "`mcpServers`, `servers`, `mcp`, `context_servers` and `mcp_servers` are known";
        return Err(LoadError::NoServers(format!("`{name}` has no table of servers; {known}")));
    }
    let own_address = OwnAddress::with_defaults(&name, base, None);
    let found = foreign::convert(&root, &own_address, &ProcessEnvironment, &mut problems);
    let found = found
        .into_iter()
        .filter(|one| is_valid_upstream(one, &own_address, &mut problems))
        .collect();
    Ok((found, problems))
}

/// Returns whether an entry in a host's file connects to the gatelet of this configuration.
pub fn is_self_reference(reach: &hosts::Reach, config: &Config, file: &Path) -> bool {
    let base = file.parent().unwrap_or(Path::new("/")).to_owned();
    let own_address = OwnAddress {
        listen_flag: None,
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
    own_address.self_reference(&raw, &ProcessEnvironment).is_some()
}

/// Returns whether a converted upstream would also be valid in gatelet's own file. Its
/// errors become warnings.
fn is_valid_upstream(
    found: &raw_upstream::UpstreamEntry,
    own_address: &OwnAddress,
    problems: &mut Problems,
) -> bool {
    let mut own = problems.new_empty();
    upstream::parse(vec![found.clone()], own_address, &ProcessEnvironment, &mut own);
    let is_valid_upstream = !own.has_errors();
    for problem in own.into_errors() {
        let message = format!("{}: the server was left out", problem.message);
        problems.push(Problem { severity: Severity::Warning, message, ..problem });
    }
    is_valid_upstream
}

/// Parses the document into a tree: as JSON when it looks like JSON, as YAML when its
/// name says so, else as TOML.
fn parse_tree(source: SourceFile) -> (node::Node, Problems) {
    let mut duplicates = Vec::new();
    let (root, errors) = if source.is_json() {
        match document::json::parse(&source.text) {
            Ok((root, noted)) => {
                duplicates = noted;
                (root, Vec::new())
            }
            // After a syntax error nothing else is checked.
            Err(error) => {
                let value = node::Value::Table(Vec::new());
                (node::Node { span: 0..0, value }, vec![error])
            }
        }
    } else if source.is_yaml() {
        match document::yaml::parse(&source.text) {
            Ok(root) => (root, Vec::new()),
            Err(error) => {
                (node::Node { span: 0..0, value: node::Value::Table(Vec::new()) }, vec![error])
            }
        }
    } else {
        document::toml::parse(&source.text)
    };
    let mut problems = Problems::new(source, root.clone());
    for (span, message) in errors {
        problems.push(Problem { severity: Severity::Error, span, message, hint: None });
    }
    for (span, message) in duplicates {
        problems.warning_at(span, message);
    }
    (root, problems)
}

/// Returns the upstreams of gatelet's own file, each with its path in the document.
fn own_upstreams(raw: &Raw) -> Vec<raw_upstream::UpstreamEntry> {
    let path = |at| node::Path::default().key("upstream").index(at);
    let found = raw.upstream.iter().enumerate();
    found
        .map(|(at, raw)| raw_upstream::UpstreamEntry { path: path(at), raw: raw.clone() })
        .collect()
}

fn parse_sections(
    raw: Raw,
    found: Vec<raw_upstream::UpstreamEntry>,
    mut own_address: OwnAddress,
    environment: &dyn Environment,
    problems: &mut Problems,
) -> Config {
    let base = &own_address.base.clone();
    let serve = serve::parse(raw.serve, base, problems);
    let auth = auth::parse(raw.auth, base, environment, problems);
    own_address.listen = own_address.listen_flag.unwrap_or(serve.listen);
    own_address.public = auth.public_url.clone();
    let state = state::parse(raw.state, base, environment, problems);
    let upstreams = upstream::parse(found, &own_address, environment, problems);
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

/// Returns the JSON Schema of the file, for editors and for `schema_check`.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(Raw).to_value()
}

#[cfg(test)]
mod tests;
