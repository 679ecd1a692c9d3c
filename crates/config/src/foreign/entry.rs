//! Converts one server of another client's file into an upstream of ours.

use document::tree::{Member, Node, Path, Value};

use super::super::access::RawOauth;
use super::super::problem::Problems;
use super::super::raw_upstream::{Raw, Wire};
use super::super::text;
use super::variable::{self, Scope};

/// Where an entry stands.
pub(super) struct Location<'a> {
    pub(super) path: &'a Path,
    pub(super) scope: &'a Scope<'a>,
    /// How its file counts time.
    pub(super) time: Unit,
}

/// What a number without a unit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Seconds,
    Milliseconds,
    Unknown,
}

/// Reads one entry; `None` when there is nothing here that could be reached.
pub(super) fn read(
    name: &str,
    node: &Node,
    location: &Location<'_>,
    problems: &mut Problems,
) -> Option<Raw> {
    let raw = Raw { label: Some(name.to_owned()), ..Raw::default() };
    let time = unit(node, location.time);
    let Location { path, scope, .. } = *location;
    let mut entry = Entry { raw, path, scope, time, address: "", problems };
    for member in node.members() {
        entry.member(member);
    }
    entry.finish()
}

/// Returns what the keys of an entry tell of the client that counts here.
fn unit(node: &Node, known: Unit) -> Unit {
    let has = |keys: &[&str]| keys.iter().any(|key| node.get(key).is_some());
    match known {
        // Cline and Roo Code.
        Unit::Unknown if has(&["autoApprove", "alwaysAllow"]) => Unit::Seconds,
        // Gemini CLI.
        Unit::Unknown if has(&["httpUrl", "trust", "includeTools", "excludeTools"]) => {
            Unit::Milliseconds
        }
        Unit::Seconds | Unit::Milliseconds | Unit::Unknown => known,
    }
}

struct Entry<'a> {
    raw: Raw,
    path: &'a Path,
    scope: &'a Scope<'a>,
    time: Unit,
    /// The key that the address came from.
    address: &'static str,
    problems: &'a mut Problems,
}

impl Entry<'_> {
    fn member(&mut self, member: &Member) {
        let node = &member.node;
        match member.key.as_str() {
            "command" | "cmd" => self.command(member),
            "args" => {
                let args = self.texts(member);
                self.raw.args.extend(args);
            }
            "env" | "environment" | "envs" => self.env(member),
            "envFile" | "env_file" => {
                let file = self.text(member);
                self.raw.env_file = file.map(|file| variable::place(&file, self.scope));
            }
            "cwd" | "workingDirectory" => {
                let cwd = self.text(member);
                self.raw.cwd = cwd.map(|cwd| variable::place(&cwd, self.scope));
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
                None => self.left_out(member, "it is not text"),
            },
            "type" | "transport" | "transportType" => self.wire(member),
            "description" => self.raw.description = self.text(member),
            "disabled" | "enabled" => match node.value {
                Value::Bool(value) => self.raw.disabled = value == (member.key == "disabled"),
                Value::Null
                | Value::Number(_)
                | Value::Text(_)
                | Value::List(_)
                | Value::Table(_)
                | Value::Moment(_) => self.left_out(member, "it is neither true nor false"),
            },
            "timeout" | "tool_timeout_sec" | "startup_timeout_sec" => self.timeout(member),
            // What these say is what we do anyway, or says nothing to us.
            "source" | "name" | "icon" | "gallery" | "version" | "$schema" | "bundled"
            | "alwaysLoad" | "deferTools" | "codemode" => {}
            "includeTools" | "excludeTools" | "disabledTools" | "tools" | "enabled_tools"
            | "disabled_tools" => {
                self.left_out(member, "which tools it may use is decided behind the gate");
            }
            "autoApprove" | "alwaysAllow" | "trust" | "alwaysAllowTools" => {
                self.left_out(member, "approval stays with the client");
            }
            "oauth" | "auth" => self.oauth(member),
            "authProviderType" => self.left_out(member, "give the credentials in `headers`"),
            "settings" => self.left_out(member, "these are for the client's extension"),
            _ => self.left_out(member, "gatelet has no counterpart for it"),
        }
    }

    /// `"npx"`, `["npx", "-y", …]` or `{"path": "npx", "args": […]}`.
    fn command(&mut self, member: &Member) {
        match &member.node.value {
            Value::Text(text) => self.raw.command = Some(self.write(text, member)),
            Value::List(_) => {
                let mut words = self.texts(member).into_iter();
                self.raw.command = words.next();
                self.raw.args.splice(0..0, words);
            }
            Value::Table(members) => {
                for inner in members {
                    let key = if inner.key == "path" { "command" } else { &inner.key };
                    self.member(&Member { key: key.to_owned(), ..inner.clone() });
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Moment(_) => {
                self.left_out(member, "it is not a command");
            }
        }
    }

    /// The address. Of several the newer way to reach a server counts.
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

    /// A registered client, as Claude Code, Cursor, Gemini CLI and opencode
    /// name one.
    fn oauth(&mut self, member: &Member) {
        // That there is a login, or none, is found out.
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
                _ => self.left_out(&inner, "gatelet finds it out, or has no counterpart for it"),
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
                None => self.left_out(&inner, "it is not text"),
            }
        }
    }

    /// The members of a table, each under its whole name; what is no table is
    /// left out.
    fn table(&mut self, member: &Member) -> Vec<Member> {
        let Value::Table(members) = &member.node.value else {
            self.left_out(member, "it is not a table");
            return Vec::new();
        };
        let whole = |inner: &Member| format!("{}.{}", member.key, inner.key);
        members.iter().map(|inner| Member { key: whole(inner), ..inner.clone() }).collect()
    }

    fn wire(&mut self, member: &Member) {
        let kind = member.node.text().unwrap_or_default().to_ascii_lowercase().replace('_', "-");
        match kind.as_str() {
            "sse" => self.raw.transport = Some(Wire::Sse),
            "http" | "streamable-http" | "streamablehttp" => self.raw.transport = Some(Wire::Http),
            // A remote server may be either; we find out.
            "stdio" | "local" | "remote" => {}
            _ => self.left_out(member, "gatelet speaks stdio, http and sse"),
        }
    }

    /// Seconds or milliseconds, as the key or the client has it. Nobody says so
    /// in a file of which that is not known; there a time that is an hour or
    /// less as seconds is taken for seconds.
    fn timeout(&mut self, member: &Member) {
        let Value::Number(number) = &member.node.value else {
            return self.left_out(member, "it is not a number");
        };
        let amount = number.as_f64().unwrap_or_default();
        let unit = if member.key.ends_with("_sec") { Unit::Seconds } else { self.time };
        let seconds = match unit {
            Unit::Seconds => true,
            Unit::Milliseconds => false,
            Unit::Unknown => amount <= 3600.0,
        };
        let millis = if seconds { amount * 1000.0 } else { amount };
        let written = match millis % 1000.0 {
            0.0 => format!("{:.0}s", millis / 1000.0),
            _ => format!("{millis:.0}ms"),
        };
        if text::duration(&written).is_err() {
            return self.left_out(member, "nobody waits that long, or that short");
        }
        if unit == Unit::Unknown {
            let unit = if seconds { "seconds" } else { "milliseconds" };
            let key = self.path.key(&member.key);
            let message = format!("`{key}`: {number} is taken for {unit}");
            self.problems.note(member.node.span.clone(), message);
        }
        match member.key.as_str() {
            "startup_timeout_sec" => self.raw.start_timeout = Some(written),
            _ => self.raw.call_timeout = Some(written),
        }
    }

    /// Leaves out what only goes with the other kind of server.
    fn sort_out(&mut self) {
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
            self.sort_out();
        }
        let Entry { raw, path, problems, .. } = self;
        if raw.command.is_none() && raw.url.is_none() {
            let message = "has neither a command nor an address and was left out";
            problems.warning(path, message, None);
            return None;
        }
        Some(raw)
    }

    /// A list, or one text with blanks between its words.
    fn words(&mut self, member: &Member) -> Vec<String> {
        match &member.node.value {
            Value::List(_) => self.texts(member),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Text(_)
            | Value::Table(_)
            | Value::Moment(_) => {
                let text = self.text(member).unwrap_or_default();
                text.split_whitespace().map(str::to_owned).collect()
            }
        }
    }

    fn texts(&mut self, member: &Member) -> Vec<String> {
        let Value::List(items) = &member.node.value else {
            self.left_out(member, "it is not a list");
            return Vec::new();
        };
        let item = |(at, node): (usize, &Node)| Member {
            key: format!("{}[{at}]", member.key),
            key_span: node.span.clone(),
            node: node.clone(),
        };
        items.iter().enumerate().filter_map(|one| self.text(&item(one))).collect()
    }

    /// A value that should be text; numbers and switches are taken as written.
    fn text(&mut self, member: &Member) -> Option<String> {
        match &member.node.value {
            Value::Text(text) => Some(self.write(text, member)),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(value) => Some(value.to_string()),
            Value::Null | Value::List(_) | Value::Table(_) | Value::Moment(_) => {
                self.left_out(member, "it is not text");
                None
            }
        }
    }

    fn write(&mut self, text: &str, member: &Member) -> String {
        let written = variable::rewrite(text, self.scope);
        for note in written.notes {
            let key = self.path.key(&member.key);
            self.problems.note(member.node.span.clone(), format!("`{key}`: {note}"));
        }
        written.text
    }

    fn left_out(&mut self, member: &Member, why: &str) {
        let key = self.path.key(&member.key);
        self.problems.note(member.key_span.clone(), format!("`{key}` was left out: {why}"));
    }
}

/// The name of a member of a table that has its table's name before it.
fn key(inner: &Member) -> String {
    let (_, key) = inner.key.split_once('.').unwrap_or(("", &inner.key));
    key.to_owned()
}
