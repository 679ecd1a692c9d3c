//! What ties a server to the host that starts it: inputs and secrets that only the host has,
//! and paths that mean the directory in which the host runs.

use config::RawUpstream;
use hosts::plan::Scope;
use serde_json::Value;

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
