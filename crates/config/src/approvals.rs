//! `[approvals]`: how long calls wait for approval, who is notified, and which calls need none.

use std::collections::BTreeMap;
use std::path::Path as FilePath;
use std::time::Duration;

use base64::Engine;
use document::tree::Path;
use policy::approval::{ANY_WORD, RememberedApproval, approvals, queued};
use policy::pattern::Pattern;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::problem::Problems;
use super::text::{self, Environment};

/// How calls wait for somebody to agree to them.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Approvals")]
pub(crate) struct Raw {
    /// How long a call waits before it is refused; the same call can be made again later. `30s` when left out, `0s` for not at all.
    wait: Option<String>,
    /// How long a request waits to be decided about, and then how long an agreement is good. `30m` when left out.
    life: Option<String>,
    /// Who is told of requests that begin to wait.
    webhook: Option<RawWebhook>,
    /// What needs no more approval.
    #[serde(default)]
    remember: Vec<RawRemembered>,
}

/// A service that is told of requests and may decide about them, in the form of Standard Webhooks.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RawWebhook {
    /// Where requests are sent; https, or http on this machine.
    url: String,
    /// What messages are signed with: `whsec_` and base64.
    secret: String,
}

/// Calls of one tool, with arguments of one shape, that need no more approval.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RawRemembered {
    /// `files:write_file`, `files.write_file` or `write_file`.
    tool: String,
    /// How the tool looked then, as `gatelet approvals show` tells it; however it looks when left out.
    digest: Option<String>,
    /// Arguments that have to be given with this value.
    #[serde(default)]
    exactly: BTreeMap<String, Value>,
    /// Arguments that have to be given as a text of this form; `*` and `?` work.
    #[serde(default)]
    like: BTreeMap<String, String>,
}

/// The validated `[approvals]` section.
#[derive(Clone, Debug, PartialEq)]
pub struct Approvals {
    pub stage: queued::Config,
    /// How long a request waits for a decision, and how long an approval is valid.
    pub life: Duration,
    pub webhook: Option<Webhook>,
    /// `confirm` of `[trust]`.
    pub confirm: Confirm,
}

/// How a call is confirmed whose client cannot ask its user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Confirm {
    /// Somebody decides outside of the conversation
    #[default]
    Queue,
    /// The model is handed a token, which proves nothing
    Token,
}

/// The service that is notified of requests for approval.
#[derive(Clone, PartialEq)]
pub struct Webhook {
    pub url: String,
    /// The key that signs messages.
    pub key: Vec<u8>,
}

impl std::fmt::Debug for Webhook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Webhook").field("url", &self.url).finish_non_exhaustive()
    }
}

pub(crate) fn parse(
    raw: Raw,
    confirm: Option<Confirm>,
    base: &FilePath,
    environment: &dyn Environment,
    problems: &mut Problems,
) -> Approvals {
    let path = Path::default().key("approvals");
    let usual = queued::Config::default();
    let wait = match raw.wait.as_deref().map(str::trim) {
        None => usual.wait,
        Some("0" | "0s") => Duration::ZERO,
        Some(text) => {
            problems.parse(&path.key("wait"), text, text::parse_duration).unwrap_or(usual.wait)
        }
    };
    let life =
        raw.life.and_then(|life| problems.parse(&path.key("life"), &life, text::parse_duration));
    let webhook = raw
        .webhook
        .and_then(|raw| webhook(&raw, &path.key("webhook"), base, environment, problems));
    let remembered = raw.remember.into_iter().enumerate().map(|(at, rule)| {
        let path = path.key("remember").index(at);
        if rule.digest.as_ref().is_some_and(|digest| digest.len() < 12) {
            let hint = "`gatelet approvals show` tells it";
            problems.error(&path.key("digest"), "is too short to tell tools apart", Some(hint));
        }
        let RawRemembered { tool, digest, exactly, like } = rule;
        RememberedApproval { tool: Pattern::new(&tool), digest, exactly, like }
    });
    let remembered = remembered.collect();
    Approvals {
        stage: queued::Config { wait, remembered },
        life: life.unwrap_or(approvals::LIFE),
        webhook,
        confirm: confirm.unwrap_or_default(),
    }
}

fn webhook(
    raw: &RawWebhook,
    path: &Path,
    base: &FilePath,
    environment: &dyn Environment,
    problems: &mut Problems,
) -> Option<Webhook> {
    let mut fill = |key: &str, text: &str| match text::fill_placeholders(text, base, environment) {
        Ok(filled) => Some(filled),
        Err(missing) => {
            problems.error(&path.key(key), missing.to_string(), Some(missing.hint()));
            None
        }
    };
    let (url, secret) = (fill("url", &raw.url)?, fill("secret", &raw.secret)?);
    let parsed = reqwest::Url::parse(&url).ok();
    let is_here =
        |url: &reqwest::Url| matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
    let is_safe = parsed
        .is_some_and(|url| url.scheme() == "https" || url.scheme() == "http" && is_here(&url));
    if !is_safe {
        let hint = "use https, or http on this machine";
        problems.error(&path.key("url"), "is no address that requests may be sent to", Some(hint));
    }
    let engine = base64::engine::general_purpose::STANDARD;
    let bytes = secret.strip_prefix("whsec_").and_then(|text| engine.decode(text).ok());
    let key = bytes.filter(|bytes| (24..=64).contains(&bytes.len()));
    let Some(key) = key else {
        let hint = "make one with `echo whsec_$(openssl rand -base64 32)`";
        problems.error(
            &path.key("secret"),
            "is no `whsec_` and 24 to 64 bytes in base64",
            Some(hint),
        );
        return None;
    };
    Some(Webhook { url, key })
}

/// Renders a remembered approval as TOML for the configuration file.
pub fn write_remembered(rule: &RememberedApproval) -> String {
    let raw = RawRemembered {
        tool: rule.tool.as_str().to_owned(),
        digest: rule.digest.clone(),
        exactly: rule.exactly.clone(),
        like: rule.like.clone(),
    };
    let text = |value: &str| toml_edit::Value::from(value).to_string().trim().to_owned();
    let mut toml = format!("[[approvals.remember]]\ntool = {}\n", text(&raw.tool));
    if let Some(digest) = &raw.digest {
        toml += &format!("digest = {}\n", text(digest));
    }
    let table = |name: &str, members: Vec<(&String, String)>| {
        let key = |key: &str| toml_edit::Key::new(key).to_string().trim().to_owned();
        let members = members.iter().map(|(name, value)| format!("{} = {value}", key(name)));
        match members.len() {
            0 => String::new(),
            _ => format!("{name} = {{ {} }}\n", members.collect::<Vec<_>>().join(", ")),
        }
    };
    toml += &table(
        "exactly",
        raw.exactly.iter().map(|(key, value)| (key, inline_toml(value))).collect(),
    );
    if raw.like.values().any(|form| form == ANY_WORD) {
        toml += "# `*` alone is one word: letters, digits and `_-.@+`; no path, space or option\n";
    }
    toml += &table("like", raw.like.iter().map(|(key, form)| (key, text(form))).collect());
    toml
}

/// Renders a JSON value as TOML on one line. TOML has no null, so arguments that hold one
/// are never remembered.
fn inline_toml(value: &Value) -> String {
    let text = |value: &str| toml_edit::Value::from(value).to_string().trim().to_owned();
    match value {
        Value::Null => text("null"),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(value) => text(value),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(inline_toml).collect::<Vec<_>>().join(", "))
        }
        Value::Object(members) => {
            let key = |key: &str| toml_edit::Key::new(key).to_string().trim().to_owned();
            let members = members
                .iter()
                .map(|(name, value)| format!("{} = {}", key(name), inline_toml(value)));
            format!("{{ {} }}", members.collect::<Vec<_>>().join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{ProcessEnvironment, SourceFile};

    fn read(text: &str) -> Result<Approvals, String> {
        let source = SourceFile { name: "gatelet.toml".to_owned(), text: text.to_owned() };
        let read = crate::parse(source, FilePath::new(""), &ProcessEnvironment);
        read.map(|(config, _)| config.approvals).map_err(|problems| problems.to_string())
    }

    #[test]
    fn a_rule_is_read_as_it_was_written() {
        let rule = RememberedApproval {
            tool: Pattern::new("files:delete \"it\""),
            digest: Some("0123456789ab".to_owned()),
            exactly: BTreeMap::from([
                ("deep".to_owned(), json!({"a b": [1, true, "x\ny"], "c": {"d": 1.5}})),
                ("force".to_owned(), json!(false)),
            ]),
            like: BTreeMap::from([("path.to".to_owned(), "/tmp/\"x\"/*".to_owned())]),
        };
        let approvals = read(&write_remembered(&rule)).unwrap();
        assert_eq!(approvals.stage.remembered, [rule]);
    }

    #[test]
    fn waiting_and_webhooks_are_checked() {
        let approvals = read("[approvals]\nwait = \"0s\"\nlife = \"1h\"\n").unwrap();
        assert_eq!(
            (approvals.stage.wait, approvals.life),
            (Duration::ZERO, Duration::from_secs(3600))
        );
        assert_eq!(read("[trust]\nconfirm = \"token\"\n").unwrap().confirm, Confirm::Token);
        assert_eq!(read("").unwrap().confirm, Confirm::Queue);
        let hook = |url: &str, secret: &str| {
            read(&format!("[approvals.webhook]\nurl = \"{url}\"\nsecret = \"{secret}\"\n"))
        };
        let secret = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";
        assert!(hook("https://hooks.example/x", secret).is_ok());
        assert!(hook("http://127.0.0.1:9/x", secret).is_ok());
        assert!(hook("http://hooks.example/x", secret).unwrap_err().contains("https"));
        assert!(hook("https://hooks.example/x", "whsec_x").unwrap_err().contains("openssl rand"));
    }
}
