//! Parses and validates `[[upstream]]`: the servers behind gatelet.

use std::collections::BTreeMap;
use std::path::{Path as FilePath, PathBuf};
use std::time::Duration;

use catalog::name;
use document::tree::Path;
use mcp::connect::{Certificates, Inherit};
use mcp::revision::Revision;

use super::access::{Access, CallerCredential, GrantType, Oauth, RawCaller, RawOauth};
use super::problem::Problems;
use super::raw_upstream::{HttpTransport, Kind, Raw, Start, UpstreamEntry};
use super::sandbox::{self, ConfinedProgram, Sandbox};
use super::self_reference::OwnAddress;
use super::site::Rules;
use super::text::{self, Environment};

/// A validated upstream.
#[derive(Clone, Debug, PartialEq)]
pub struct Upstream {
    pub label: String,
    pub description: Option<String>,
    pub reach: Reach,
    pub start: Start,
    /// Stop it after this long without a call.
    pub idle_stop: Option<Duration>,
    pub start_timeout: Duration,
    pub call_timeout: Duration,
    pub revision: Option<Revision>,
    pub prompts_as_skills: bool,
    /// Whether it runs on only one replica at a time.
    pub single: bool,
    /// What the operator says it is; found out when `None`.
    pub kind: Option<Kind>,
    pub access: Access,
    /// Nobody has reviewed its tools yet.
    pub quarantine: bool,
    /// What its program may do; everything when `None`.
    pub sandbox: Option<Sandbox>,
}

impl Upstream {
    /// Returns the upstream as gatelet serves it: one in quarantine keeps its label, but
    /// is neither started nor listed.
    pub fn served(&self) -> Upstream {
        if !self.quarantine {
            return self.clone();
        }
        let label = &self.label;
        let reason = format!(
            "it is in quarantine: look at its tools and let them in with `gatelet enable {label}`"
        );
        Upstream { reach: Reach::Nowhere { reason }, ..self.clone() }
    }

    /// Creates an upstream for a server that a `[[mount]]` found, with default settings.
    pub fn mounted(label: &str, description: Option<String>, reach: Reach) -> Upstream {
        Upstream {
            label: label.to_owned(),
            description,
            reach,
            start: Start::Eager,
            idle_stop: None,
            start_timeout: START_TIMEOUT,
            call_timeout: CALL_TIMEOUT,
            revision: None,
            prompts_as_skills: false,
            single: false,
            // It was found by the manifest of a CaSH server.
            kind: Some(Kind::Cash),
            access: Access::default(),
            quarantine: false,
            sandbox: None,
        }
    }
}

/// How an upstream is reached.
#[derive(Clone, PartialEq)]
pub enum Reach {
    Program {
        command: String,
        args: Vec<String>,
        env: BTreeMap<String, String>,
        inherit: Inherit,
        cwd: Option<PathBuf>,
    },
    Address {
        url: String,
        headers: BTreeMap<String, String>,
        /// How to talk to `url`; found out when `None`.
        wire: Option<HttpTransport>,
        certificates: Certificates,
    },
    /// A CMS site; the sample site when `database` is `None`.
    Content { database: Option<String>, prefix: Option<String>, rules: Box<Rules> },
    /// It cannot be reached, for example because a secret is missing. It stays in the
    /// configuration, so that the other upstreams can be used.
    Nowhere { reason: String },
}

const START_TIMEOUT: Duration = Duration::from_secs(30);
const CALL_TIMEOUT: Duration = Duration::from_secs(120);

/// Parses all entries; the problems of one do not hide those of the others.
pub(crate) fn parse(
    entries: Vec<UpstreamEntry>,
    own_address: &OwnAddress,
    environment: &dyn Environment,
    problems: &mut Problems,
) -> Vec<Upstream> {
    let mut upstreams: Vec<Upstream> = Vec::with_capacity(entries.len());
    for UpstreamEntry { path, raw } in entries {
        let mut entry = Parser { path, base: &own_address.base, problems };
        if raw.disabled {
            continue;
        }
        if let Some((key, why)) = own_address.self_reference(&raw, environment) {
            let hint = "take it out; to put one gate before another, give each its own \
                        configuration and its own `[serve] listen`";
            entry.error(key, format!("{why}: it would stand behind itself"), Some(hint));
            continue;
        }
        let Some(upstream) = entry.parse(raw, environment) else { continue };
        // Labels that differ only in characters that names cannot have are the same
        // namespace.
        if upstreams.iter().any(|other| name::means(&other.label, &upstream.label)) {
            let label = &upstream.label;
            entry.error("label", format!("`{label}` is taken by an earlier upstream"), None);
        } else {
            upstreams.push(upstream);
        }
    }
    upstreams
}

/// Parses one entry.
struct Parser<'a> {
    path: Path,
    /// The directory of the file.
    base: &'a FilePath,
    problems: &'a mut Problems,
}

impl Parser<'_> {
    fn parse(&mut self, raw: Raw, environment: &dyn Environment) -> Option<Upstream> {
        let label = self.label(raw.label.as_deref());
        let start_timeout = self.duration("start_timeout", raw.start_timeout.as_deref());
        let call_timeout = self.duration("call_timeout", raw.call_timeout.as_deref());
        let idle_stop = self.duration("idle_stop", raw.idle_stop.as_deref());
        let revision = raw.revision.as_deref();
        let revision = revision.and_then(|text| {
            self.problems.parse(&self.path.key("revision"), text, str::parse::<Revision>)
        });
        let reach = self.reach(&raw, environment);
        let access = self.access(&raw, environment);
        let sandbox = self.sandbox(&raw, reach.as_ref(), environment)?;
        Some(Upstream {
            label: label?,
            description: raw.description,
            reach: reach?,
            start: raw.start.unwrap_or(Start::Eager),
            idle_stop,
            start_timeout: start_timeout.unwrap_or(START_TIMEOUT),
            call_timeout: call_timeout.unwrap_or(CALL_TIMEOUT),
            revision,
            prompts_as_skills: raw.prompts_as_skills,
            single: raw.single,
            kind: raw.kind,
            access,
            quarantine: raw.quarantine,
            sandbox,
        })
    }

    /// Parses the sandbox. The outer `None` is an invalid one, which is reported; the inner
    /// `None` is no sandbox.
    fn sandbox(
        &mut self,
        raw: &Raw,
        reach: Option<&Reach>,
        environment: &dyn Environment,
    ) -> Option<Option<Sandbox>> {
        let Some(written) = &raw.sandbox else { return Some(None) };
        self.reject_if(raw.command.is_none(), "sandbox", "command");
        let Some(Reach::Program { command, args, cwd, .. }) = reach else { return Some(None) };
        let home = environment.get("HOME").map(PathBuf::from);
        let confined = ConfinedProgram { command, args, directory: cwd.clone(), home };
        let place = |path: &PathBuf| text::resolve_path(path.clone(), self.base, environment);
        match sandbox::parse(written, &confined, place) {
            Ok(sandbox) => Some(Some(sandbox)),
            Err(why) => {
                self.error("sandbox", why, None);
                None
            }
        }
    }

    /// Checks that the grant `client_credentials` has all it needs. The issuer must be
    /// configured, so that the secret goes nowhere else, whatever the server says.
    fn check_client_credentials(&mut self, oauth: &RawOauth, per_caller: bool) {
        let given = [
            ("issuer", oauth.issuer.is_some()),
            ("client_id", oauth.client_id.is_some()),
            ("client_secret", oauth.client_secret.is_some()),
        ];
        for (key, _) in given.into_iter().filter(|(_, is_given)| !is_given) {
            let message = format!("`client_credentials` needs `{key}`");
            self.problems.error(&self.path.key("oauth").key("grant"), message, None);
        }
        if per_caller {
            let message = "goes with a login for each caller, not with `client_credentials`";
            self.error("per_caller", message, None);
        }
    }

    fn access(&mut self, raw: &Raw, environment: &dyn Environment) -> Access {
        self.reject_if(raw.oauth.is_some() && raw.url.is_none(), "oauth", "url");
        let oauth = raw.oauth.clone().unwrap_or_default();
        let mut missing = Vec::new();
        let path = self.path.key("oauth").key("client_secret");
        let secret = oauth.client_secret.as_deref();
        let secret = secret.map(|text| self.fill(&path, text, environment, &mut missing));
        if oauth.grant == GrantType::ClientCredentials {
            self.check_client_credentials(&oauth, raw.per_caller);
        }
        let oauth = Oauth {
            grant: oauth.grant,
            client_id: oauth.client_id,
            client_secret: secret.filter(|_| missing.is_empty()),
            client_metadata_url: oauth.client_metadata_url,
            scopes: oauth.scopes,
            redirect_port: oauth.redirect_port,
            issuer: oauth.issuer.clone(),
        };
        let mut callers = BTreeMap::new();
        for (name, own) in &raw.callers {
            let path = self.path.key("callers").key(name);
            callers.insert(name.clone(), self.caller(&path, own, environment));
        }
        Access { oauth, per_caller: raw.per_caller, callers }
    }

    /// Parses the credentials of one caller. A missing secret is an error, so that the
    /// caller never gets the credentials of the upstream instead.
    fn caller(
        &mut self,
        path: &Path,
        raw: &RawCaller,
        environment: &dyn Environment,
    ) -> Result<CallerCredential, String> {
        let mut missing = Vec::new();
        let mut fill = |key: &str, values: &BTreeMap<String, String>| -> BTreeMap<String, String> {
            let path = path.key(key);
            let filled = values.iter().map(|(name, text)| {
                let text = self.fill(&path.key(name), text, environment, &mut missing);
                (name.clone(), text)
            });
            filled.collect()
        };
        let own =
            CallerCredential { headers: fill("headers", &raw.headers), env: fill("env", &raw.env) };
        missing.into_iter().next().map_or(Ok(own), Err)
    }

    fn label(&mut self, label: Option<&str>) -> Option<String> {
        let Some(label) = label else {
            let hint = "name the namespace: label = \"files\"";
            self.problems.missing(&self.path, "label", "needs a `label`", hint);
            return None;
        };
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        let fits =
            label.len() <= 64 && label.bytes().all(legal) && !name::canonical(label).is_empty();
        if !fits {
            let hint = "1 to 64 letters, digits, `_` and `-`";
            self.error("label", format!("`{label}` cannot be a namespace"), Some(hint));
            return None;
        }
        if name::same(label, "gatelet") {
            self.error("label", "`gatelet` is the gate's own namespace", None);
            return None;
        }
        Some(label.to_owned())
    }

    fn reach(&mut self, raw: &Raw, environment: &dyn Environment) -> Option<Reach> {
        if raw.kind == Some(Kind::Content) {
            self.reject_if(raw.command.is_some(), "command", "a program");
            self.reject_if(raw.url.is_some(), "url", "an address");
            return Some(self.content(raw, environment));
        }
        self.reject_if(raw.database.is_some(), "database", "kind = \"content\"");
        self.reject_if(raw.prefix.is_some(), "prefix", "kind = \"content\"");
        self.reject_if(raw.content.is_some(), "content", "kind = \"content\"");
        match (&raw.command, &raw.url) {
            (Some(command), None) => {
                self.reject_if(raw.transport.is_some(), "transport", "url");
                self.reject_if(!raw.headers.is_empty(), "headers", "url");
                self.reject_if(raw.ca.is_some(), "ca", "url");
                self.reject_if(raw.cert.is_some(), "cert", "url");
                Some(self.program(command, raw, environment))
            }
            (None, Some(url)) => {
                self.reject_if(!raw.args.is_empty(), "args", "command");
                self.reject_if(!raw.env.is_empty(), "env", "command");
                self.reject_if(raw.env_file.is_some(), "env_file", "command");
                self.reject_if(raw.inherit_env, "inherit_env", "command");
                self.reject_if(raw.cwd.is_some(), "cwd", "command");
                self.address(url, raw, environment)
            }
            (Some(_), Some(_)) => {
                self.error("url", "an upstream has either `command` or `url`, not both", None);
                None
            }
            (None, None) => {
                let hint = "command = \"npx\" for a program, url = \"https://…\" for an address";
                self.problems.missing(&self.path, "command", "needs `command` or `url`", hint);
                None
            }
        }
    }

    fn program(&mut self, command: &str, raw: &Raw, environment: &dyn Environment) -> Reach {
        self.warn_of_arguments_in_command(command);
        let mut missing = Vec::new();
        let mut fill = |this: &mut Self, path: Path, text: &str| {
            this.fill(&path, text, environment, &mut missing)
        };
        let command = fill(self, self.path.key("command"), command);
        let args_path = self.path.key("args");
        let args = raw.args.iter().enumerate();
        let args = args.map(|(at, text)| fill(self, args_path.index(at), text)).collect();
        let env_path = self.path.key("env");
        let env = raw.env.iter();
        let env: BTreeMap<String, String> =
            env.map(|(name, text)| (name.clone(), fill(self, env_path.key(name), text))).collect();
        let mut all = self.env_file(raw, environment, &mut missing);
        all.extend(env);
        let cwd = self.resolve_path("cwd", raw.cwd.as_deref(), environment, &mut missing);
        if let Some(cwd) = cwd.as_ref().filter(|cwd| missing.is_empty() && !cwd.is_dir()) {
            let message = format!("there is no directory `{}`", cwd.display());
            self.problems.warning(&self.path.key("cwd"), message, None);
        }
        if command.trim().is_empty() && missing.is_empty() {
            self.error("command", "must name a program", None);
        }
        match missing.into_iter().next() {
            Some(reason) => Reach::Nowhere { reason },
            None => {
                let inherit = if raw.inherit_env { Inherit::All } else { Inherit::Needed };
                Reach::Program { command, args, env: all, inherit, cwd }
            }
        }
    }

    /// Warns of a command with arguments in it, as a shell would take it.
    fn warn_of_arguments_in_command(&mut self, command: &str) {
        let mut words = command.split_whitespace();
        let (first, rest) = (words.next(), words.collect::<Vec<_>>());
        if let Some(first) = first.filter(|_| !rest.is_empty() && !self.base.join(command).exists())
        {
            let hint = format!("arguments belong in `args`: command = {first:?}, args = {rest:?}");
            let message = format!("no program is called `{command}`");
            self.problems.warning(&self.path.key("command"), message, Some(&hint));
        }
    }

    /// Fills in the placeholders of a path and makes it absolute.
    fn resolve_path(
        &mut self,
        key: &str,
        written: Option<&FilePath>,
        environment: &dyn Environment,
        missing: &mut Vec<String>,
    ) -> Option<PathBuf> {
        let written = written?.to_string_lossy();
        let filled = self.fill(&self.path.key(key), &written, environment, missing);
        Some(text::resolve_path(PathBuf::from(filled), self.base, environment))
    }

    /// Returns the variables in `env_file`; those in `env` override them.
    fn env_file(
        &mut self,
        raw: &Raw,
        environment: &dyn Environment,
        missing: &mut Vec<String>,
    ) -> BTreeMap<String, String> {
        let Some(file) =
            self.resolve_path("env_file", raw.env_file.as_deref(), environment, missing)
        else {
            return BTreeMap::new();
        };
        match std::fs::read_to_string(&file) {
            Ok(text) => text::parse_env_file(&text).collect(),
            Err(error) => {
                let message = format!("`{}` cannot be read: {error}", file.display());
                self.problems.warning(&self.path.key("env_file"), message.clone(), None);
                missing.push(message);
                BTreeMap::new()
            }
        }
    }

    fn content(&mut self, raw: &Raw, environment: &dyn Environment) -> Reach {
        let mut missing = Vec::new();
        let path = self.path.key("database");
        let fill = |text: &String| self.fill(&path, text, environment, &mut missing);
        let database = raw.database.as_ref().map(fill);
        match missing.into_iter().next() {
            Some(reason) => Reach::Nowhere { reason },
            None => Reach::Content {
                database,
                prefix: raw.prefix.clone(),
                rules: Box::new(raw.content.clone().unwrap_or_default()),
            },
        }
    }

    fn address(&mut self, url: &str, raw: &Raw, environment: &dyn Environment) -> Option<Reach> {
        let mut missing = Vec::new();
        let url = self.fill(&self.path.key("url"), url, environment, &mut missing);
        if missing.is_empty() && !(url.starts_with("http://") || url.starts_with("https://")) {
            self.error("url", "must start with `https://` or `http://`", None);
            return None;
        }
        let mut headers = BTreeMap::new();
        for (name, text) in &raw.headers {
            let path = self.path.key("headers").key(name);
            headers.insert(name.clone(), self.fill(&path, text, environment, &mut missing));
        }
        let certificates = self.certificates(raw, environment, &mut missing);
        Some(match missing.into_iter().next() {
            Some(reason) => Reach::Nowhere { reason },
            None => Reach::Address { url, headers, wire: raw.transport, certificates },
        })
    }

    fn certificates(
        &mut self,
        raw: &Raw,
        environment: &dyn Environment,
        missing: &mut Vec<String>,
    ) -> Certificates {
        self.reject_if(raw.key.is_some() && raw.cert.is_none(), "key", "cert");
        let mut read = |key: &str, file: Option<&PathBuf>| {
            let file = text::resolve_path(file?.clone(), self.base, environment);
            match std::fs::read(&file) {
                Ok(pem) => Some(pem),
                Err(error) => {
                    let message = format!("`{}` cannot be read: {error}", file.display());
                    self.problems.warning(&self.path.key(key), message.clone(), None);
                    missing.push(message);
                    None
                }
            }
        };
        let authority = read("ca", raw.ca.as_ref());
        let mut identity = read("cert", raw.cert.as_ref());
        if let (Some(pem), Some(key)) = (&mut identity, read("key", raw.key.as_ref())) {
            pem.push(b'\n');
            pem.extend(key);
        }
        Certificates { authority, identity }
    }

    /// Fills in the placeholders of `text`. One without a value is a warning, and goes to
    /// `missing` as a reason why this upstream cannot be reached.
    fn fill(
        &mut self,
        path: &Path,
        text: &str,
        environment: &dyn Environment,
        missing: &mut Vec<String>,
    ) -> String {
        text::fill_placeholders(text, self.base, environment).unwrap_or_else(|error| {
            self.problems.warning(path, error.to_string(), Some(error.hint()));
            missing.push(error.to_string());
            String::new()
        })
    }

    fn duration(&mut self, key: &str, text: Option<&str>) -> Option<Duration> {
        self.problems.parse(&self.path.key(key), text?, text::parse_duration)
    }

    /// Reports that `key` is only allowed together with `partner`.
    fn reject_if(&mut self, is_misplaced: bool, key: &str, partner: &str) {
        if is_misplaced {
            self.error(key, format!("only goes with `{partner}`"), None);
        }
    }

    fn error(&mut self, key: &str, message: impl Into<String>, hint: Option<&str>) {
        self.problems.error(&self.path.key(key), message, hint);
    }
}

/// Arguments, environment and headers may hold secrets, so they are never
/// printed.
impl std::fmt::Debug for Reach {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Reach::Program { command, .. } => {
                f.debug_struct("Program").field("command", command).finish_non_exhaustive()
            }
            Reach::Address { url, wire, .. } => f
                .debug_struct("Address")
                .field("url", url)
                .field("wire", wire)
                .finish_non_exhaustive(),
            Reach::Content { prefix, .. } => {
                f.debug_struct("Content").field("prefix", prefix).finish_non_exhaustive()
            }
            Reach::Nowhere { reason } => f.debug_struct("Nowhere").field("reason", reason).finish(),
        }
    }
}
