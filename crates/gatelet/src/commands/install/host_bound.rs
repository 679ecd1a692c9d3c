//! What ties a server to the host that starts it: inputs and secrets that only the host has,
//! and paths that mean the directory in which the host runs.

use std::path::PathBuf;

use config::RawUpstream;
use document::Format;
use hosts::plan::Scope;
use hosts::{Host, Machine};
use serde_json::Value;

use crate::commands::host_files::LocalHosts;
use crate::commands::relative_path::{is_rooted, relative_path};

/// What a server needs that only its host has, in words. `written` is its entry in the
/// host's file.
pub(super) fn needed_of_host(written: &Value, raw: &RawUpstream, scope: &Scope) -> Option<String> {
    let text = written.to_string();
    if text.contains("${input:") {
        return Some("an input that the host asks for".to_owned());
    }
    if written["env_keys"].as_array().is_some_and(|keys| !keys.is_empty()) {
        return Some("a secret that the host keeps".to_owned());
    }
    if let Some(key) = limit_on_tools(written) {
        return Some(format!("the host to keep models from some of its tools (`{key}`)"));
    }
    // The servers of a project run in its directory, also behind gatelet.
    if matches!(scope, Scope::Project(_)) {
        return None;
    }
    let folders = ["${workspaceFolder", "${workspaceRoot", "${cwd}"];
    if folders.iter().any(|folder| text.contains(folder)) {
        return Some("the folder that is open in the host".to_owned());
    }
    let path = path_of_host(written, raw)?;
    Some(format!("the directory in which the host starts it, for `{path}`"))
}

/// The key by which the host lets models use some tools of a server only, or none unasked.
fn limit_on_tools(written: &Value) -> Option<&'static str> {
    let allow = ["enabled_tools", "includeTools", "tools"];
    let deny = ["disabled_tools", "excludeTools", "disabledTools"];
    let is_limit = |value: &Value, is_deny: bool| match value {
        Value::Null => false,
        Value::Array(names) if is_deny => !names.is_empty(),
        // Copilot CLI writes that all are meant.
        Value::Array(names) => names.iter().all(|name| name != "*"),
        Value::Object(of_each) => !of_each.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    };
    let allow = allow.into_iter().find(|key| is_limit(&written[*key], false));
    allow.or_else(|| deny.into_iter().find(|key| is_limit(&written[*key], true)))
}

/// The key of a host's file that denies tools of a server by its name, as opencode's `tools`
/// and `permission` do.
pub(super) fn denial_in_file(root: &Value, name: &str) -> Option<&'static str> {
    let start = format!("{name}_").to_lowercase();
    let is_meant = |pattern: &str| {
        let literal = pattern.split(['*', '?']).next().unwrap_or_default().to_lowercase();
        literal.starts_with(&start) || literal.len() < pattern.len() && start.starts_with(&literal)
    };
    ["tools", "permission"].into_iter().find(|key| {
        let mut entries = root[*key].as_object().into_iter().flatten();
        entries.any(|(pattern, value)| (value == false || value == "deny") && is_meant(pattern))
    })
}

/// Claude Code's settings, by scope.
const CLAUDE_USER: &[&str] = &["{CLAUDE_CONFIG_DIR|~/.claude}/settings.json"];
const CLAUDE_PROJECT: &[&str] = &[".claude/settings.json", ".claude/settings.local.json"];

/// The key and the file, in words, by which Claude Code denies a server or tools of it outside
/// of the file that lists the server.
pub(super) fn denial_beside(
    host: &Host,
    name: &str,
    scope: &Scope,
    here: &LocalHosts,
) -> Option<String> {
    if host.id != "claude-code" {
        return None;
    }
    let mut files: Vec<PathBuf> =
        CLAUDE_USER.iter().map(|file| here.environment.expand(file)).collect();
    if let Scope::Project(directory) = scope {
        files.extend(CLAUDE_PROJECT.iter().map(|file| directory.join(file)));
    }
    let file = files.into_iter().find(|file| {
        let text = here.disk.read(file).ok().flatten().map(String::from_utf8);
        let root = document::parse(&text.and_then(Result::ok).unwrap_or_default(), Format::Json);
        root.is_ok_and(|root| is_denied(&root.to_json()["permissions"]["deny"], name))
    });
    file.map(|file| format!("`permissions.deny` in {}", file.display()))
}

/// Whether a list of `mcp__SERVER` and `mcp__SERVER__TOOL` names a server.
fn is_denied(list: &Value, name: &str) -> bool {
    let spelt = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let server: String = format!("mcp__{name}").chars().map(spelt).collect();
    let mut rules = list.as_array().into_iter().flatten().filter_map(Value::as_str);
    rules.any(|rule| {
        let rule = rule.split('(').next().unwrap_or_default();
        let literal = rule.split('*').next().unwrap_or_default();
        let is_of_server = rule
            .strip_prefix(&server)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with("__"));
        is_of_server || literal.len() < rule.len() && server.starts_with(literal)
    })
}

/// A path that is relative to the directory in which the host starts the server.
fn path_of_host(written: &Value, raw: &RawUpstream) -> Option<String> {
    let directory = ["cwd", "workingDirectory"].iter().find_map(|key| written[*key].as_str());
    match directory {
        // With a whole directory everything below it has its place.
        Some(directory) => (!is_rooted(directory)).then(|| directory.to_owned()),
        None => relative_path(raw),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_that_lets_everything_through_is_no_limit() {
        for (entry, expected) in [
            (json!({"enabled_tools": ["read"]}), Some("enabled_tools")),
            (json!({"enabled_tools": []}), Some("enabled_tools")),
            (json!({"disabledTools": ["rm"]}), Some("disabledTools")),
            (json!({"excludeTools": []}), None),
            (json!({"tools": ["*"]}), None),
            (json!({"tools": ["a"]}), Some("tools")),
            (json!({"tools": {"rm": {"approval_mode": "prompt"}}}), Some("tools")),
            (json!({"command": "x"}), None),
        ] {
            assert_eq!(limit_on_tools(&entry), expected, "{entry}");
        }
    }

    #[test]
    fn what_a_file_denies_by_the_name_of_a_server_is_found() {
        let root = json!({
            "tools": {"files_delete": false, "web_*": true, "git*": false},
            "permission": {"bash": "deny", "notes_*": "deny", "edit": "ask"},
        });
        let denied = |name: &str| denial_in_file(&root, name);
        assert_eq!((denied("files"), denied("web")), (Some("tools"), None));
        assert_eq!((denied("github"), denied("notes")), (Some("tools"), Some("permission")));
        assert_eq!(denied("bash"), None, "a tool of the host");
    }

    #[test]
    fn claude_code_denies_a_server_or_a_tool_of_it_by_name() {
        let list = json!(["Bash(rm:*)", "mcp__git_hub__delete", "mcp__web", "mcp__note__*"]);
        for (name, expected) in
            [("git hub", true), ("web", true), ("note", true), ("webs", false), ("git", false)]
        {
            assert_eq!(is_denied(&list, name), expected, "{name}");
        }
        assert!(is_denied(&json!(["mcp__*"]), "any") && !is_denied(&Value::Null, "any"));
    }

    #[test]
    fn a_whole_working_directory_gives_every_path_its_place() {
        let raw = RawUpstream {
            command: Some("node".to_owned()),
            args: vec!["index.js".to_owned()],
            ..Default::default()
        };
        assert_eq!(path_of_host(&json!({"cwd": "/srv/app"}), &raw), None);
        assert_eq!(path_of_host(&json!({"cwd": "app"}), &raw).as_deref(), Some("app"));
    }
}
