//! Checks the arguments of meta-tools, and finds the upstream that they name.
//!
//! An unknown argument is an error, never ignored: it may be a misspelt one that was
//! meant to restrict the tool.

use catalog::nearest;
use catalog::summary::echo;
use serde_json::{Value, json};
use tool::{Json, Object};

use super::definition::arguments_of;
use super::request::bad_argument;
use crate::error::GatewayError;
use policy::confirm;

/// The upstream that a request names, and the id of the tool if it names one.
pub(crate) struct NamedUpstream {
    pub(crate) upstream: String,
    pub(crate) id: Option<String>,
}

impl NamedUpstream {
    /// Splits an id such as `github:create_issue#34afee88`.
    pub(crate) fn by_id(id: &str) -> NamedUpstream {
        let id = id.trim();
        let upstream = id.split([':', '/', '.']).next().unwrap_or_default();
        NamedUpstream { upstream: upstream.to_owned(), id: Some(id.to_owned()) }
    }
}

/// Returns the upstream that a request names, by id or by path.
pub(super) fn named_upstream(arguments: &Json) -> Option<NamedUpstream> {
    if let Some(id) = arguments.member_as::<String>("tool_id") {
        return Some(NamedUpstream::by_id(&id));
    }
    let path = arguments.member_as::<String>("path")?;
    let upstream = path.split('/').find(|segment| !segment.is_empty())?;
    Some(NamedUpstream { upstream: upstream.to_owned(), id: None })
}

/// Names that other programs use for an argument, and its name here.
const SYNONYMS: &[(&[&str], &str)] = &[
    (&["arguments", "input", "params", "parameters", "kwargs"], "args"),
    (&["id", "tool", "name", "tool_name"], "tool_id"),
    (&["limit", "k", "n", "count", "max_results"], "top_k"),
    (&["q", "search", "text"], "query"),
    (&["id", "name", "prompt", "prompt_name"], "prompt_id"),
    (&["id", "name", "resource"], "resource_id"),
    (&["url"], "uri"),
    (&["id", "artifact", "artifact_id"], "handle"),
    (
        &[
            "type", "chars", "start", "end", "pattern", "filter", "keys", "head", "tail", "lines",
            "grep", "jq",
        ],
        "selector",
    ),
];

/// The most unknown arguments that an error names.
const MAX_NAMED: usize = 12;

/// Checks that a meta-tool knows all its arguments.
pub(super) fn check(tool: &str, arguments: Option<&Json>) -> Result<(), GatewayError> {
    let takes = arguments_of(tool);
    // Only the keys are parsed: the values may be long.
    let given = arguments.filter(|given| !given.is_null()).map(Object::parse).transpose();
    let given =
        given.map_err(|_| bad_argument("the arguments must be an object"))?.unwrap_or_default();
    // A valid approval token has been removed by now.
    if given.get(confirm::ARGUMENT).is_some_and(|left| !left.is_null()) {
        return Err(bad_argument(&format!("`{}` {}", confirm::ARGUMENT, confirm::NOT_A_TOKEN)));
    }
    let unknown: Vec<&str> = given.keys().filter(|key| !takes.contains(key)).collect();
    if unknown.is_empty() {
        return Ok(());
    }
    let message = |key: &str| match probable_argument(key, &takes) {
        Some(near) => format!("is not an argument; did you mean `{near}`?"),
        None if takes.contains(&"args") => {
            "is not an argument; what the tool itself takes goes into `args`".to_owned()
        }
        None => "is not an argument".to_owned(),
    };
    let more = unknown.len().saturating_sub(MAX_NAMED);
    let problems: Vec<(String, String)> =
        unknown.into_iter().take(MAX_NAMED).map(|key| (echo(key), message(key))).collect();
    let mut messages: Vec<String> =
        problems.iter().map(|(key, message)| format!("`{key}` {message}")).collect();
    if 0 < more {
        messages.push(format!("{more} more are not arguments either"));
    }
    let each: Vec<Value> =
        problems.iter().map(|(key, message)| json!({"at": key, "message": message})).collect();
    let error =
        bad_argument(&format!("{}; {tool} takes {}", messages.join("; "), takes.join(", ")));
    Err(error.detail("problems", each))
}

/// Returns the argument that an unknown key probably means.
fn probable_argument<'t>(key: &str, takes: &[&'t str]) -> Option<&'t str> {
    let folded = key.to_lowercase();
    let mut known = SYNONYMS.iter().filter(|(others, _)| others.contains(&folded.as_str()));
    let known = known.find_map(|(_, name)| takes.iter().copied().find(|taken| taken == name));
    let near = || nearest::rank_by_similarity(key, takes.iter().copied()).into_iter().next();
    known.or_else(|| {
        near().filter(|(score, _)| nearest::TYPO_SIMILARITY <= *score).map(|(_, name)| name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_other_programs_call_it_is_understood_for_each_tool() {
        for (tool, key, expected) in [
            ("tool_execute", "name", "tool_id"),
            ("prompt_get", "name", "prompt_id"),
            ("resource_read", "id", "resource_id"),
            ("tool_view", "type", "selector"),
            ("tool_browse", "limit", "top_k"),
        ] {
            assert_eq!(probable_argument(key, &arguments_of(tool)), Some(expected), "{tool}");
        }
    }
}
