//! One server in another client's file, read as an upstream of ours.

use std::path::PathBuf;

use super::super::node::{Member, Node, Path, Value};
use super::super::problem::Problems;
use super::super::upstream::{Raw, Wire};
use super::variable::{self, Scope};

/// Reads one entry; `None` when there is nothing here that could be reached.
pub(super) fn read(
    name: &str,
    node: &Node,
    path: &Path,
    scope: &Scope<'_>,
    problems: &mut Problems,
) -> Option<Raw> {
    let raw = Raw { label: Some(name.to_owned()), ..Raw::default() };
    let mut entry = Entry { raw, path, scope, problems };
    for member in node.members() {
        entry.member(member);
    }
    entry.finish()
}

struct Entry<'a> {
    raw: Raw,
    path: &'a Path,
    scope: &'a Scope<'a>,
    problems: &'a mut Problems,
}

impl Entry<'_> {
    fn member(&mut self, member: &Member) {
        let node = &member.node;
        match member.key.as_str() {
            "command" => self.command(member),
            "args" => {
                let args = self.texts(member);
                self.raw.args.extend(args);
            }
            "env" | "environment" | "envs" => self.env(member),
            "envFile" | "env_file" => self.raw.env_file = self.text(member).map(PathBuf::from),
            "cwd" | "workingDirectory" => self.raw.cwd = self.text(member).map(PathBuf::from),
            "url" | "serverUrl" | "httpUrl" | "uri" => self.raw.url = self.text(member),
            "headers" | "http_headers" => self.headers(member),
            "env_http_headers" => self.env_headers(member),
            "bearer_token_env_var" => {
                if let Some(name) = node.text() {
                    let value = format!("Bearer ${{env:{name}}}");
                    self.raw.headers.insert("Authorization".to_owned(), value);
                }
            }
            "type" | "transport" | "transportType" => self.wire(member),
            "description" => self.raw.description = self.text(member),
            "disabled" => self.raw.disabled = node.value == Value::Bool(true),
            "enabled" => self.raw.disabled = node.value == Value::Bool(false),
            "timeout" | "tool_timeout_sec" | "startup_timeout_sec" => self.timeout(member),
            // What these say is what we do anyway, or says nothing to us.
            "source" | "name" | "icon" | "gallery" | "version" | "$schema" => {}
            "includeTools" | "excludeTools" | "disabledTools" | "tools" | "enabled_tools"
            | "disabled_tools" => {
                self.left_out(member, "which tools it may use is decided behind the gate");
            }
            "autoApprove" | "alwaysAllow" | "trust" | "alwaysAllowTools" => {
                self.left_out(member, "approval stays with the client");
            }
            "oauth" | "auth" | "authProviderType" => {
                self.left_out(member, "give the credentials in `headers`");
            }
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

    fn env(&mut self, member: &Member) {
        for inner in member.node.members() {
            if let Some(value) = self.text(inner) {
                self.raw.env.insert(inner.key.clone(), value);
            }
        }
    }

    fn headers(&mut self, member: &Member) {
        for inner in member.node.members() {
            if let Some(value) = self.text(inner) {
                self.raw.headers.insert(inner.key.clone(), value);
            }
        }
    }

    fn env_headers(&mut self, member: &Member) {
        for inner in member.node.members() {
            if let Some(name) = inner.node.text() {
                self.raw.headers.insert(inner.key.clone(), format!("${{env:{name}}}"));
            }
        }
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

    /// Milliseconds, except where the key or a small number says seconds.
    fn timeout(&mut self, member: &Member) {
        let Value::Number(number) = &member.node.value else {
            return self.left_out(member, "it is not a number");
        };
        let amount = number.as_f64().unwrap_or_default();
        let seconds = member.key.ends_with("_sec") || amount < 1000.0;
        let millis = if seconds { amount * 1000.0 } else { amount };
        let written = Some(format!("{millis:.0}ms")).filter(|_| millis >= 1.0);
        match member.key.as_str() {
            "startup_timeout_sec" => self.raw.start_timeout = written,
            _ => self.raw.call_timeout = written,
        }
    }

    fn finish(self) -> Option<Raw> {
        let Entry { mut raw, path, problems, .. } = self;
        if raw.command.as_deref().is_some_and(is_gatelet) {
            problems.warning(path, "is gatelet itself and was left out", None);
            return None;
        }
        if raw.command.is_none() && raw.url.is_none() {
            let message = "has neither a command nor an address and was left out";
            problems.warning(path, message, None);
            return None;
        }
        if raw.command.is_some() {
            raw.transport = None;
        }
        Some(raw)
    }

    fn texts(&mut self, member: &Member) -> Vec<String> {
        let text = |node: &Node| match &node.value {
            Value::Text(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(value) => Some(value.to_string()),
            Value::Null | Value::List(_) | Value::Table(_) | Value::Moment(_) => None,
        };
        let texts: Vec<String> = member.node.items().iter().filter_map(text).collect();
        texts.iter().map(|text| self.write(text, member)).collect()
    }

    /// A value that should be text; numbers and switches are taken as written.
    fn text(&mut self, member: &Member) -> Option<String> {
        match &member.node.value {
            Value::Text(text) => Some(self.write(text, member)),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(value) => Some(value.to_string()),
            Value::Null => None,
            Value::List(_) | Value::Table(_) | Value::Moment(_) => {
                self.left_out(member, "it is not text");
                None
            }
        }
    }

    fn write(&mut self, text: &str, member: &Member) -> String {
        let written = variable::rewrite(text, self.scope);
        if let Some(note) = written.note {
            self.problems.note(member.node.span.clone(), note);
        }
        written.text
    }

    fn left_out(&mut self, member: &Member, why: &str) {
        let key = self.path.key(&member.key);
        self.problems.note(member.key_span.clone(), format!("`{key}` was left out: {why}"));
    }
}

fn is_gatelet(command: &str) -> bool {
    let name = command.rsplit(['/', '\\']).next().unwrap_or_default();
    name.strip_suffix(".exe").unwrap_or(name) == "gatelet"
}
