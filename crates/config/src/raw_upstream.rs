//! An `[[upstream]]` section as written in the file, before validation.

use std::collections::BTreeMap;
use std::path::PathBuf;

use document::tree::Path;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::access::{RawCaller, RawOauth};
use crate::sandbox;
use crate::site::Rules;

/// An upstream as written, and its path in the file.
#[derive(Clone, Debug, PartialEq)]
pub struct UpstreamEntry {
    pub path: Path,
    pub raw: Raw,
}

/// One server behind gatelet: either a `command` to run or a `url` to call.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Upstream")]
pub struct Raw {
    /// The namespace under which its tools are found: letters, digits, `_` and `-`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// One line that says what the server is for. Its own words when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The program to run; it speaks MCP on its standard input and output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The program's arguments. `${env:NAME}` is filled in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Variables of the program's environment, beside the few that every program needs. `${env:NAME}` and `${file:PATH}` are filled in.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Pass gatelet's whole environment on to the program, with every secret in it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inherit_env: bool,
    /// A file of `NAME=value` lines that are added to the program's environment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env_file: Option<PathBuf>,
    /// The directory the program runs in, relative to this file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    /// The address of a server that is running already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Headers sent with every request to `url`. `${env:NAME}` and `${file:PATH}` are filled in.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// A file of certificates in PEM, relative to this file, that may have signed that of `url`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca: Option<PathBuf>,
    /// A certificate in PEM, relative to this file, that is shown to `url` where that wants one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cert: Option<PathBuf>,
    /// Its private key in PEM, relative to this file; in the file of `cert` when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<PathBuf>,
    /// `content` for the tools of a CMS site, read straight from its database. `cash` for a CaSH
    /// server, whose functions are listed instead of its three tools, and `mcp` for one that is none;
    /// found out when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
    /// The site's database, for `kind = "content"`: `sqlite:`, `mysql:`, `mariadb:` or `postgres:`.
    /// `${env:NAME}` is filled in. The sample site when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// What stands before every table name of the site; found out when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// How to talk to `url`; found out when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<HttpTransport>,
    /// When to start it: with gatelet (`eager`, the default) or when first needed (`on-demand`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<Start>,
    /// Stop it after this long without a call, such as `10m`. Never when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_stop: Option<String>,
    /// How long it may take to start and to list what it has. `30s` when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_timeout: Option<String>,
    /// How long a call may take. `2m` when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_timeout: Option<String>,
    /// Speak this protocol revision only, such as `2025-06-18`, instead of agreeing on one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Run it at one replica at a time, where several share a store (`[state]`); calls are carried there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub single: bool,
    /// Offer its prompts as skills, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub prompts_as_skills: bool,
    /// Every caller needs credentials of their own, from `callers` or from a login.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub per_caller: bool,
    /// How to log in with OAuth, where the server's own word is not enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oauth: Option<RawOauth>,
    /// Credentials of single callers, by the name of their identity, such as `key:ann`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub callers: BTreeMap<String, RawCaller>,
    /// What the program may read, write and connect to, enforced by the kernel: a table, `"auto"` for a
    /// server that gatelet knows, or `"container"`. Everything when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<sandbox::Raw>,
    /// Nobody has looked at its tools yet: it is not started and shows nothing until `gatelet enable`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub quarantine: bool,
    /// Keep the entry but leave the server out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disabled: bool,
    /// What a site shows, and to whom, for `kind = "content"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<Rules>,
}

/// What an upstream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The content tools of a CMS site, neither a program nor an address.
    Content,
    /// A CaSH server.
    Cash,
    /// A server whose tools are listed as they are.
    Mcp,
}

/// How to talk to a `url`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Wire")]
pub enum HttpTransport {
    /// Streamable HTTP.
    Http,
    /// The older HTTP with server-sent events.
    Sse,
}

/// When an upstream is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    Eager,
    OnDemand,
}

/// Renders upstreams as TOML for gatelet's own file.
pub fn upstreams_to_toml(upstream: Vec<Raw>) -> String {
    if upstream.is_empty() {
        // An empty list would leave no room for `[[upstream]]`.
        return "# No servers were found.\n".to_owned();
    }
    #[derive(Serialize)]
    struct File {
        upstream: Vec<Raw>,
    }
    toml::to_string(&File { upstream }).expect("tables come after plain values in `Raw`")
}
