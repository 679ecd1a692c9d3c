//! Renders a planned change for a person, without secrets.
//!
//! Of other servers' entries only names are shown: of the server, its program or host,
//! its variables and headers. Values of variables and headers are never shown.

use serde_json::{Map, Value};

use crate::change::{FileChange, Step};
use crate::host::Reach;

/// One line of a preview.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub mark: Mark,
    pub text: String,
}

/// Whether a line is added or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    Added,
    Removed,
}

impl Mark {
    pub fn sign(self) -> char {
        match self {
            Mark::Added => '+',
            Mark::Removed => '-',
        }
    }
}

/// The keys of an entry whose values are never shown.
const SECRET_KEYS: &[&str] =
    &["env", "envs", "environment", "headers", "http_headers", "env_http_headers"];

/// Renders a change, line by line.
pub fn lines(change: &FileChange) -> Vec<Line> {
    let added = |text: String| Line { mark: Mark::Added, text };
    let removed = |text: String| Line { mark: Mark::Removed, text };
    let mut lines = Vec::new();
    for step in &change.steps {
        match step {
            Step::Added { keys, value, .. } => lines.push(added(render_own(keys, value))),
            Step::Restored { keys, value } => lines.push(added(render_foreign(keys, value))),
            Step::Removed { keys, was, .. } => lines.push(removed(render_foreign(keys, was))),
            Step::Replaced { keys, was, value, .. } => {
                lines.push(removed(render_foreign(keys, was)));
                lines.push(added(render_own(keys, value)));
            }
            Step::Appended { about, .. } => lines.push(added(about.clone())),
        }
    }
    lines
}

/// Renders gatelet's own entry, without the values of variables and headers.
fn render_own(keys: &[String], value: &Value) -> String {
    format!("{} = {}", keys.join("."), mask_secrets(value))
}

fn mask_secrets(value: &Value) -> Value {
    let Value::Object(members) = value else { return value.clone() };
    let mask = |(key, value): (&String, &Value)| {
        let names = SECRET_KEYS.contains(&key.as_str()).then(|| value.as_object()).flatten();
        let value = match names {
            Some(names) => Value::Object(hide_values(names)),
            None => value.clone(),
        };
        (key.clone(), value)
    };
    Value::Object(members.iter().map(mask).collect())
}

fn hide_values(members: &Map<String, Value>) -> Map<String, Value> {
    members.keys().map(|key| (key.clone(), Value::from("…"))).collect()
}

/// Renders the names in an entry of another server.
pub fn render_foreign(keys: &[String], entry: &Value) -> String {
    let mut parts: Vec<String> = Vec::new();
    match Reach::from_entry(entry) {
        Some(Reach::Program { command, args }) => {
            let program = command.rsplit(['/', '\\']).next().unwrap_or_default().to_owned();
            let n_args = args.len();
            let args =
                if n_args == 1 { "1 argument".to_owned() } else { format!("{n_args} arguments") };
            parts.push(if n_args == 0 { program } else { format!("{program} with {args}") });
        }
        Some(Reach::Http { url, .. }) => parts.push(host_of_url(&url)),
        None => {}
    }
    for key in SECRET_KEYS {
        let names = entry.get(key).and_then(Value::as_object);
        if let Some(names) = names.filter(|names| !names.is_empty()) {
            let names: Vec<&str> = names.keys().map(String::as_str).collect();
            parts.push(format!("{key}: {}", names.join(", ")));
        }
    }
    format!("{} ({})", keys.join("."), parts.join("; "))
}

/// Returns the host and port of a URL, without credentials, path and query.
fn host_of_url(url: &str) -> String {
    let after = url.split_once("://").map_or(url, |(_, after)| after);
    let authority = after.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit('@').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use document::Format;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn shown(steps: Vec<Step>) -> String {
        let change = FileChange {
            host: None,
            path: "f".into(),
            format: Format::Json,
            before: None,
            after: None,
            steps,
            private: false,
            notes: Vec::new(),
        };
        let lines =
            lines(&change).into_iter().map(|line| format!("{} {}\n", line.mark.sign(), line.text));
        lines.collect()
    }

    #[test]
    fn names_are_shown_and_values_are_not() {
        let keys = vec!["mcpServers".to_owned(), "x".to_owned()];
        let program =
            json!({"command": "/opt/npx", "args": ["-y", "S3CRET"], "env": {"TOKEN": "S3CRET"}});
        let http = json!({"url": "https://u:S3CRET@h.example:1/S3CRET?k=S3CRET", "headers": {"A": "S3CRET"}});
        let own = json!({"command": "/bin/gate", "env": {"HOME_OF": "S3CRET"}});
        let text = shown(vec![
            Step::Removed { keys: keys.clone(), was: program, preceding: None, source: None },
            Step::Replaced { keys, was: http, value: own, source: None },
        ]);
        assert_eq!(
            text,
            "- mcpServers.x (npx with 2 arguments; env: TOKEN)\n\
             - mcpServers.x (h.example:1; headers: A)\n\
             + mcpServers.x = {\"command\":\"/bin/gate\",\"env\":{\"HOME_OF\":\"…\"}}\n"
        );
    }

    proptest! {
        #[test]
        fn no_secret_of_others_is_shown(
            kind in 0..SECRET_KEYS.len(), url in any::<bool>(), place in 0..4usize,
        ) {
            let secret = "S3CRET";
            let address =
                ["http://h/S3CRET", "http://S3CRET@h", "https://h?S3CRET", "h/#S3CRET"][place];
            let argument = ["S3CRET", "--k=S3CRET"][place % 2];
            let mut entry = match url {
                true => json!({"url": address}),
                false => json!({"command": ["a"], "args": ["x", argument]}),
            };
            entry[SECRET_KEYS[kind]] = json!({"NAME": secret});
            let text = shown(vec![
                Step::Removed {
                    keys: vec!["t".to_owned()],
                    was: entry.clone(),
                    preceding: None,
                    source: None,
                },
                Step::Replaced {
                    keys: vec!["t".to_owned()],
                    was: entry,
                    value: json!({}),
                    source: None,
                },
            ]);
            prop_assert!(!text.contains(secret), "{}", text);
            prop_assert!(text.contains("NAME"), "{}", text);
        }
    }
}
