//! What hosts are told beside the definitions of our own tools: titles,
//! annotations, and switches in `_meta` that some of them know. Models do not
//! read them, and hosts that do not know them ignore them.
//!
//! As of 2026-11, Claude Code defers the definitions of every MCP server and
//! puts results over its own limit into a file: `anthropic/alwaysLoad` keeps a
//! definition loaded, `anthropic/searchHint` is what its search goes by, and
//! `anthropic/maxResultSizeChars` sets the limit.

use serde_json::json;
use tool::{Annotations, Json, Object, Tool};

use artifacts::gate;

/// The largest limit that Claude Code takes.
const MOST_CHARS: usize = 500_000;

/// What one of our tools is to a host.
struct Row {
    name: &'static str,
    title: &'static str,
    effect: Effect,
    result: Longest,
}

/// What a call may do to the world.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// Reads what this process knows.
    Knows,
    /// Reads from upstreams.
    Reads,
    /// Runs whatever is asked for.
    Runs,
}

/// How long a result may be that was let through on purpose.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Longest {
    /// Short by itself.
    Short,
    /// As long as the gate lets results be.
    Gated,
    /// As long as a caller may ask for.
    Asked,
    /// As long as a view may be.
    Viewed,
}

const fn row(name: &'static str, title: &'static str, effect: Effect, result: Longest) -> Row {
    Row { name, title, effect, result }
}

const ROWS: &[Row] = &[
    row("call", "Run a function", Effect::Runs, Longest::Asked),
    row("call_read", "Run a function that changes nothing", Effect::Reads, Longest::Asked),
    row("help", "Find functions", Effect::Knows, Longest::Short),
    row("skill", "Read instructions", Effect::Knows, Longest::Asked),
    row("tool_browse", "Find tools", Effect::Knows, Longest::Short),
    row("tool_execute", "Run a tool", Effect::Runs, Longest::Gated),
    row("tool_run", "Run a script", Effect::Runs, Longest::Gated),
    row("tool_view", "View a kept result", Effect::Knows, Longest::Viewed),
    row("tool_hydrate", "Show the schema of a tool", Effect::Knows, Longest::Asked),
    row("resource_browse", "Find resources", Effect::Knows, Longest::Short),
    row("resource_read", "Read a resource", Effect::Reads, Longest::Gated),
    row("prompt_browse", "Find prompts", Effect::Knows, Longest::Short),
    row("prompt_get", "Get a prompt", Effect::Reads, Longest::Gated),
];

/// What the switches depend on.
pub(crate) struct Facts<'a> {
    /// The namespaces that there are, for a host's search.
    pub(crate) map: &'a str,
    pub(crate) gate: &'a gate::Config,
    /// The most characters of one view.
    pub(crate) view_chars: usize,
}

impl Facts<'_> {
    /// One of our tools as hosts are to see it; every other as it is.
    pub(crate) fn hinted(&self, tool: Tool) -> Tool {
        let row = ROWS.iter().find(|row| row.name == tool.name);
        let (Some(row), Ok(mut raw)) = (row, Object::parse(&tool.raw)) else { return tool };
        let annotations = row.annotations();
        let mut meta = Object::new();
        meta.push("anthropic/alwaysLoad", Json::encode(&true));
        if ["help", "tool_browse"].contains(&row.name) && !self.map.is_empty() {
            let phrase = format!("find and use tools of {}", self.map);
            meta.push("anthropic/searchHint", Json::encode(&phrase));
        }
        if let Some(chars) = self.longest(row.result) {
            meta.push("anthropic/maxResultSizeChars", Json::encode(&chars));
        }
        raw.set("title", Json::encode(row.title));
        raw.set("annotations", row.effect.annotations());
        raw.set("_meta", meta.to_json());
        Tool { title: Some(row.title.to_owned()), annotations, raw: raw.to_json(), ..tool }
    }

    fn longest(&self, result: Longest) -> Option<usize> {
        let chars = match result {
            Longest::Short => return None,
            Longest::Gated => self.gate.limit,
            Longest::Asked => self.gate.ceiling.unwrap_or(MOST_CHARS).max(self.gate.limit),
            Longest::Viewed => self.view_chars,
        };
        Some(chars.min(MOST_CHARS))
    }
}

impl Row {
    fn annotations(&self) -> Annotations {
        let runs = self.effect == Effect::Runs;
        Annotations {
            read_only: Some(!runs),
            destructive: Some(runs),
            open_world: Some(self.effect != Effect::Knows),
            idempotent: None,
        }
    }
}

impl Effect {
    fn annotations(self) -> Json {
        match self {
            Effect::Knows => json!({"readOnlyHint": true, "openWorldHint": false}).into(),
            Effect::Reads => json!({"readOnlyHint": true, "openWorldHint": true}).into(),
            Effect::Runs => {
                let all =
                    json!({"readOnlyHint": false, "destructiveHint": true, "openWorldHint": true});
                all.into()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surface::{cash, meta};

    fn facts(gate: &gate::Config) -> Facts<'_> {
        Facts { map: "files, mail", gate, view_chars: 8_000 }
    }

    #[test]
    fn every_tool_of_ours_has_a_title_annotations_and_is_kept_loaded() {
        let gate = gate::Config::default();
        let names: Vec<&str> = meta::names().collect();
        let own = cash::tools("").into_iter().chain(meta::tools(&names, ""));
        let own: Vec<Tool> = own.map(|tool| facts(&gate).hinted(tool)).collect();
        // The tool that only reads is listed by itself.
        assert_eq!(own.len(), ROWS.len() - 1);
        for tool in own {
            assert!(tool.title.is_some(), "{}", tool.name);
            let read = Tool::parse(tool.raw.clone()).unwrap();
            assert_eq!(read.annotations.read_only, tool.annotations.read_only, "{}", tool.name);
            let runs = ["call", "tool_execute", "tool_run"].contains(&tool.name.as_str());
            assert_eq!(read.annotations.read_only, Some(!runs), "{}", tool.name);
            let meta = tool.raw.member("_meta").unwrap();
            assert_eq!(meta.member_as("anthropic/alwaysLoad"), Some(true), "{}", tool.name);
            assert!(meta.as_str().len() <= 160, "{meta}");
        }
    }

    #[test]
    fn hosts_are_told_how_long_results_are_on_purpose() {
        let chars = |gate: gate::Config, name: &str| {
            let names: Vec<&str> = meta::names().collect();
            let mut own = cash::tools("").into_iter().chain(meta::tools(&names, ""));
            let tool = facts(&gate).hinted(own.find(|tool| tool.name == name).unwrap());
            tool.raw.member("_meta")?.member_as::<usize>("anthropic/maxResultSizeChars")
        };
        let gate = |limit, ceiling| gate::Config { limit, ceiling, ..gate::Config::default() };
        assert_eq!(chars(gate(10_000, None), "call"), Some(500_000));
        assert_eq!(chars(gate(10_000, Some(40_000)), "call"), Some(40_000));
        assert_eq!(chars(gate(10_000, Some(40_000)), "tool_execute"), Some(10_000));
        assert_eq!(chars(gate(2_000_000, None), "tool_execute"), Some(500_000));
        assert_eq!(chars(gate(10_000, None), "tool_view"), Some(8_000));
        assert_eq!(chars(gate(10_000, None), "help"), None);
    }

    #[test]
    fn the_tools_of_others_are_left_as_they_are() {
        let gate = gate::Config::default();
        let text = r#"{"name":"call_me","_meta":{"a":1}}"#;
        let tool = Tool::parse(Json::parse(text).unwrap()).unwrap();
        assert_eq!(facts(&gate).hinted(tool).raw.as_str(), text);
    }
}
