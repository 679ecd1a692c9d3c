//! Converts one server of another client's file into an upstream of gatelet's.

use document::tree::{Member, Node, Path, Value};

use super::super::access::RawOauth;
use super::super::problem::Problems;
use super::super::raw_upstream::{HttpTransport, Raw};
use super::super::text;
use super::variable::{self, Scope};

/// The path of an entry in its file, and the conventions of that file.
pub(super) struct EntryContext<'a> {
    pub(super) path: &'a Path,
    pub(super) scope: &'a Scope<'a>,
    /// The unit of timeouts in the file.
    pub(super) time: TimeUnit,
}

/// The unit of a timeout that is written as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimeUnit {
    Seconds,
    Milliseconds,
    Unknown,
}

/// Converts one entry; `None` when it has neither a command nor a URL.
pub(super) fn convert(
    name: &str,
    node: &Node,
    location: &EntryContext<'_>,
    problems: &mut Problems,
) -> Option<Raw> {
    let raw = Raw { label: Some(name.to_owned()), ..Raw::default() };
    let time = timeout_unit(node, location.time);
    let EntryContext { path, scope, .. } = *location;
    let mut entry = EntryConverter { raw, path, scope, time, address: "", problems };
    for member in node.members() {
        entry.convert_member(member);
    }
    entry.finish()
}

/// Returns the unit of timeouts, guessed from the keys of the entry when the file does not
/// tell.
fn timeout_unit(node: &Node, known: TimeUnit) -> TimeUnit {
    let has = |keys: &[&str]| keys.iter().any(|key| node.get(key).is_some());
    match known {
        // Cline and Roo Code.
        TimeUnit::Unknown if has(&["autoApprove", "alwaysAllow"]) => TimeUnit::Seconds,
        // Gemini CLI.
        TimeUnit::Unknown if has(&["httpUrl", "trust", "includeTools", "excludeTools"]) => {
            TimeUnit::Milliseconds
        }
        TimeUnit::Seconds | TimeUnit::Milliseconds | TimeUnit::Unknown => known,
    }
}

/// The upstream that is being built from an entry.
struct EntryConverter<'a> {
    raw: Raw,
    path: &'a Path,
    scope: &'a Scope<'a>,
    time: TimeUnit,
    /// The key that the URL came from.
    address: &'static str,
    problems: &'a mut Problems,
}

impl EntryConverter<'_> {
    fn convert_member(&mut self, member: &Member) {
        let node = &member.node;
        match member.key.as_str() {
            "command" | "cmd" => self.command(member),
            "args" => {
                let args = self.texts(member);
                self.raw.args.extend(args);
            }
            "env" | "environment" | "envs" => self.env(member),
            "env_vars" => self.env_names(member),
            "envFile" | "env_file" => {
                let file = self.text(member);
                self.raw.env_file = file.map(|file| variable::resolve_path(&file, self.scope));
            }
            "cwd" | "workingDirectory" => {
                let cwd = self.text(member);
                self.raw.cwd = cwd.map(|cwd| variable::resolve_path(&cwd, self.scope));
            }
            "url" => self.url(member, "url"),
            "serverUrl" => self.url(member, "serverUrl"),
            "httpUrl" => self.url(member, "httpUrl"),
            "uri" => self.url(member, "uri"),
            "headers" | "http_headers" => self.headers(member),
            "env_http_headers" => self.env_headers(member),
            "bearer_token_env_var" => match node.text() {
                Some(name) => {
                    let value = format!("Bearer ${{env:{name}}}");
                    self.raw.headers.insert("Authorization".to_owned(), value);
                }
                None => self.warn_left_out(member, "it is not text"),
            },
            "type" | "transport" | "transportType" => self.transport(member),
            "description" => self.raw.description = self.text(member),
            "disabled" | "enabled" => match node.value {
                Value::Bool(value) => self.raw.disabled = value == (member.key == "disabled"),
                Value::Null
                | Value::Number(_)
                | Value::Text(_)
                | Value::List(_)
                | Value::Table(_)
                | Value::DateTime(_) => self.warn_left_out(member, "it is neither true nor false"),
            },
            "timeout" | "tool_timeout_sec" | "startup_timeout_sec" => self.timeout(member),
            // What these say is what we do anyway, or says nothing to us.
            "source" | "name" | "icon" | "gallery" | "version" | "$schema" | "bundled"
            | "alwaysLoad" | "deferTools" | "codemode" => {}
            "includeTools" | "excludeTools" | "disabledTools" | "tools" | "enabled_tools"
            | "disabled_tools" => {
                self.warn_left_out(member, "which tools it may use is decided behind the gate");
            }
            "autoApprove" | "alwaysAllow" | "trust" | "alwaysAllowTools" => {
                self.warn_left_out(member, "approval stays with the client");
            }
            "oauth" | "auth" => self.oauth(member),
            "authProviderType" => self.warn_left_out(member, "give the credentials in `headers`"),
            "settings" => self.warn_left_out(member, "these are for the client's extension"),
            _ => self.warn_left_out(member, "gatelet has no counterpart for it"),
        }
    }

    /// Converts `"npx"`, `["npx", "-y", …]` or `{"path": "npx", "args": […]}`.
    fn command(&mut self, member: &Member) {
        match &member.node.value {
            Value::Text(text) => self.raw.command = Some(self.rewrite(text, member)),
            Value::List(_) => {
                let mut words = self.texts(member).into_iter();
                self.raw.command = words.next();
                self.raw.args.splice(0..0, words);
            }
            Value::Table(members) => {
                for inner in members {
                    let key = if inner.key == "path" { "command" } else { &inner.key };
                    self.convert_member(&Member { key: key.to_owned(), ..inner.clone() });
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::DateTime(_) => {
                self.warn_left_out(member, "it is not a command");
            }
        }
    }

    /// Converts a URL. Of several, `httpUrl` wins over the others, else the first one.
    fn url(&mut self, member: &Member, key: &'static str) {
        let taken = match (self.address, key) {
            ("", _) | (_, "httpUrl") => {
                let before = std::mem::replace(&mut self.address, key);
                self.raw.url = self.text(member);
                before
            }
            _ => key,
        };
        if !taken.is_empty() {
            let message = format!("was left out: `{}` is taken", self.address);
            self.problems.warning(&self.path.key(taken), message, None);
        }
    }

    /// Converts a registered OAuth client, as Claude Code, Cursor, Gemini CLI and opencode
    /// write one.
    fn oauth(&mut self, member: &Member) {
        // Whether the server needs a login is found out.
        if matches!(member.node.value, Value::Bool(_)) {
            return;
        }
        let mut oauth = RawOauth::default();
        for inner in self.table(member) {
            match key(&inner).to_ascii_lowercase().replace('_', "").as_str() {
                "clientid" => oauth.client_id = self.text(&inner),
                "clientsecret" => oauth.client_secret = self.text(&inner),
                // Claude Code writes `scopes` as one text, too.
                "scope" | "scopes" => oauth.scopes = self.words(&inner),
                "callbackport" | "redirectport" => {
                    let port = inner.node.to_json().as_u64().and_then(|port| port.try_into().ok());
                    oauth.redirect_port = port;
                }
                "enabled" => {}
                _ => {
                    self.warn_left_out(&inner, "gatelet finds it out, or has no counterpart for it")
                }
            }
        }
        self.raw.oauth = Some(oauth).filter(|oauth| *oauth != RawOauth::default());
    }

    fn env(&mut self, member: &Member) {
        for inner in self.table(member) {
            if let Some(value) = self.text(&inner) {
                self.raw.env.insert(key(&inner), value);
            }
        }
    }

    /// Converts Codex's list of variables that it passes on, as names or as `{ name = "X" }`.
    fn env_names(&mut self, member: &Member) {
        let Value::List(items) = &member.node.value else {
            return self.warn_left_out(member, "it is not a list");
        };
        for item in items {
            let is_here =
                item.get("source").and_then(Node::text).is_none_or(|place| place == "local");
            let name = item.text().or_else(|| item.get("name").and_then(Node::text));
            match name.filter(|name| is_here && variable::is_variable_name(name)) {
                // What `env` says counts, wherever it stands.
                Some(name) => {
                    let value = self.raw.env.entry(name.to_owned());
                    value.or_insert_with(|| format!("${{env:{name}}}"));
                }
                None => {
                    let inner = Member {
                        key_span: item.span.clone(),
                        node: item.clone(),
                        ..member.clone()
                    };
                    self.warn_left_out(&inner, "it names no variable of this machine");
                }
            }
        }
    }

    fn headers(&mut self, member: &Member) {
        for inner in self.table(member) {
            if let Some(value) = self.text(&inner) {
                self.raw.headers.insert(key(&inner), value);
            }
        }
    }

    fn env_headers(&mut self, member: &Member) {
        for inner in self.table(member) {
            match inner.node.text() {
                Some(name) => {
                    self.raw.headers.insert(key(&inner), format!("${{env:{name}}}"));
                }
                None => self.warn_left_out(&inner, "it is not text"),
            }
        }
    }

    /// Returns the members of a table, each with the table's key before its own; a value
    /// that is not a table is reported.
    fn table(&mut self, member: &Member) -> Vec<Member> {
        let Value::Table(members) = &member.node.value else {
            self.warn_left_out(member, "it is not a table");
            return Vec::new();
        };
        let whole = |inner: &Member| format!("{}.{}", member.key, inner.key);
        members.iter().map(|inner| Member { key: whole(inner), ..inner.clone() }).collect()
    }

    fn transport(&mut self, member: &Member) {
        let kind = member.node.text().unwrap_or_default().to_ascii_lowercase().replace('_', "-");
        match kind.as_str() {
            "sse" => self.raw.transport = Some(HttpTransport::Sse),
            "http" | "streamable-http" | "streamablehttp" => {
                self.raw.transport = Some(HttpTransport::Http)
            }
            // A remote server may be either; we find out.
            "stdio" | "local" | "remote" => {}
            _ => self.warn_left_out(member, "gatelet speaks stdio, http and sse"),
        }
    }

    /// Converts a timeout in seconds or milliseconds, depending on the key and the client.
    /// When the unit is unknown, a number of up to 3600 counts as seconds.
    fn timeout(&mut self, member: &Member) {
        let Value::Number(number) = &member.node.value else {
            return self.warn_left_out(member, "it is not a number");
        };
        let amount = number.as_f64().unwrap_or_default();
        let unit = if member.key.ends_with("_sec") { TimeUnit::Seconds } else { self.time };
        let seconds = match unit {
            TimeUnit::Seconds => true,
            TimeUnit::Milliseconds => false,
            TimeUnit::Unknown => amount <= 3600.0,
        };
        let millis = if seconds { amount * 1000.0 } else { amount };
        let written = match millis % 1000.0 {
            0.0 => format!("{:.0}s", millis / 1000.0),
            _ => format!("{millis:.0}ms"),
        };
        if text::parse_duration(&written).is_err() {
            return self.warn_left_out(member, "nobody waits that long, or that short");
        }
        if unit == TimeUnit::Unknown {
            let unit = if seconds { "seconds" } else { "milliseconds" };
            let key = self.path.key(&member.key);
            let message = format!("`{key}`: {number} is taken for {unit}");
            self.problems.warning_at(member.node.span.clone(), message);
        }
        match member.key.as_str() {
            "startup_timeout_sec" => self.raw.start_timeout = Some(written),
            _ => self.raw.call_timeout = Some(written),
        }
    }

    /// Drops the keys that only apply to the other kind of server, a program or a URL.
    fn drop_incompatible(&mut self) {
        let mut gone: Vec<&str> = Vec::new();
        let mut take = |is: bool, key: &'static str| gone.extend(is.then_some(key));
        let raw = &mut self.raw;
        let why = if raw.command.is_some() {
            raw.transport = None;
            take(raw.url.take().is_some(), self.address);
            take(!std::mem::take(&mut raw.headers).is_empty(), "headers");
            take(raw.oauth.take().is_some(), "oauth");
            "`command` is taken, and a program has none"
        } else {
            take(!std::mem::take(&mut raw.args).is_empty(), "args");
            take(!std::mem::take(&mut raw.env).is_empty(), "env");
            take(raw.env_file.take().is_some(), "envFile");
            take(raw.cwd.take().is_some(), "cwd");
            "a server at an address has none"
        };
        for key in gone {
            self.problems.warning(&self.path.key(key), format!("was left out: {why}"), None);
        }
    }

    fn finish(mut self) -> Option<Raw> {
        if self.raw.command.is_some() || self.raw.url.is_some() {
            self.drop_incompatible();
        }
        let EntryConverter { raw, path, problems, .. } = self;
        if raw.command.is_none() && raw.url.is_none() {
            let message = "has neither a command nor an address and was left out";
            problems.warning(path, message, None);
            return None;
        }
        Some(raw)
    }

    /// Converts a list of texts, or one text of words separated by white space.
    fn words(&mut self, member: &Member) -> Vec<String> {
        match &member.node.value {
            Value::List(_) => self.texts(member),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Text(_)
            | Value::Table(_)
            | Value::DateTime(_) => {
                let text = self.text(member).unwrap_or_default();
                text.split_whitespace().map(str::to_owned).collect()
            }
        }
    }

    fn texts(&mut self, member: &Member) -> Vec<String> {
        let Value::List(items) = &member.node.value else {
            self.warn_left_out(member, "it is not a list");
            return Vec::new();
        };
        let item = |(at, node): (usize, &Node)| Member {
            key: format!("{}[{at}]", member.key),
            key_span: node.span.clone(),
            node: node.clone(),
        };
        items.iter().enumerate().filter_map(|one| self.text(&item(one))).collect()
    }

    /// Converts a value that should be text; numbers and booleans are taken as written.
    fn text(&mut self, member: &Member) -> Option<String> {
        match &member.node.value {
            Value::Text(text) => Some(self.rewrite(text, member)),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(value) => Some(value.to_string()),
            Value::Null | Value::List(_) | Value::Table(_) | Value::DateTime(_) => {
                self.warn_left_out(member, "it is not text");
                None
            }
        }
    }

    fn rewrite(&mut self, text: &str, member: &Member) -> String {
        let written = variable::rewrite(text, self.scope);
        for note in written.notes {
            let key = self.path.key(&member.key);
            self.problems.warning_at(member.node.span.clone(), format!("`{key}`: {note}"));
        }
        written.text
    }

    fn warn_left_out(&mut self, member: &Member, why: &str) {
        let key = self.path.key(&member.key);
        self.problems.warning_at(member.key_span.clone(), format!("`{key}` was left out: {why}"));
    }
}

/// Returns the key of a member from [`EntryConverter::table`], without the table's key.
fn key(inner: &Member) -> String {
    let (_, key) = inner.key.split_once('.').unwrap_or(("", &inner.key));
    key.to_owned()
}
