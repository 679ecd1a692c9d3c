//! Adds hints for hosts to the definitions of gatelet's own tools: titles, annotations,
//! and members of `_meta` that some hosts know. Models do not read them.
//!
//! As of 2026-11, Claude Code defers the definitions of every MCP server and
//! puts results over its own limit into a file: `anthropic/alwaysLoad` keeps a
//! definition loaded, `anthropic/searchHint` is what its search goes by, and
//! `anthropic/maxResultSizeChars` sets the limit.

use serde_json::{Value, json};
use tool::{Annotations, Json, Object, Tool};

use artifacts::gate;
use policy::confirm;
use policy::live::LiveStages;

/// The largest result size that Claude Code accepts, in characters.
const MOST_CHARS: usize = 500_000;

/// The hints for one of gatelet's own tools.
struct ToolHints {
    name: &'static str,
    title: &'static str,
    effect: Effect,
    result: ResultSize,
}

/// What a call may do outside of gatelet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// Nothing: it reads what this process knows.
    None,
    /// It reads from upstreams.
    Reads,
    /// It runs any function.
    Runs,
}

/// How long a result may be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ResultSize {
    /// Always short.
    Short,
    /// Up to the size limit of the gate.
    Gated,
    /// Up to the largest size limit that a caller may give.
    CallersLimit,
    /// Up to the size limit of a view.
    ViewLimit,
}

const fn hints(
    name: &'static str,
    title: &'static str,
    effect: Effect,
    result: ResultSize,
) -> ToolHints {
    ToolHints { name, title, effect, result }
}

const TOOL_HINTS: &[ToolHints] = &[
    hints("call", "Run a function", Effect::Runs, ResultSize::CallersLimit),
    hints(
        "call_read",
        "Run a function that changes nothing",
        Effect::Reads,
        ResultSize::CallersLimit,
    ),
    hints("help", "Find functions", Effect::None, ResultSize::Short),
    hints("skill", "Read instructions", Effect::None, ResultSize::CallersLimit),
    hints("tool_browse", "Find tools", Effect::None, ResultSize::Short),
    hints("tool_execute", "Run a tool", Effect::Runs, ResultSize::Gated),
    hints("tool_run", "Run a script", Effect::Runs, ResultSize::Gated),
    hints("tool_view", "View a kept result", Effect::None, ResultSize::ViewLimit),
    hints("tool_hydrate", "Show the schema of a tool", Effect::None, ResultSize::CallersLimit),
    hints("resource_browse", "Find resources", Effect::None, ResultSize::Short),
    hints("resource_read", "Read a resource", Effect::Reads, ResultSize::Gated),
    hints("prompt_browse", "Find prompts", Effect::None, ResultSize::Short),
    hints("prompt_get", "Get a prompt", Effect::Reads, ResultSize::Gated),
];

/// The state that the hints depend on.
pub(crate) struct HintContext<'a> {
    /// The names of the namespaces, for a host's tool search.
    pub(crate) map: &'a str,
    pub(crate) gate: &'a gate::Config,
    /// The most characters of one view.
    pub(crate) view_chars: usize,
    /// Whether callers agree with tokens, which are an argument then.
    pub(crate) confirms: bool,
}

/// Whether callers agree with tokens, by the policies in force.
pub(crate) fn confirms(live: &LiveStages) -> bool {
    !live.now().stages.approval.is_outside_of_the_model()
}

impl HintContext<'_> {
    /// Adds the hints to one of gatelet's own tools; returns any other tool unchanged.
    pub(crate) fn with_hints(&self, tool: Tool) -> Tool {
        let hints = TOOL_HINTS.iter().find(|hints| hints.name == tool.name);
        let (Some(hints), Ok(mut raw)) = (hints, Object::parse(&tool.raw)) else { return tool };
        let annotations = hints.annotations();
        let mut meta = Object::new();
        meta.push("anthropic/alwaysLoad", Json::encode(&true));
        if ["help", "tool_browse"].contains(&hints.name) && !self.map.is_empty() {
            let phrase = format!("find and use tools of {}", self.map);
            meta.push("anthropic/searchHint", Json::encode(&phrase));
        }
        if let Some(chars) = self.max_chars(hints.result) {
            meta.push("anthropic/maxResultSizeChars", Json::encode(&chars));
        }
        if self.confirms && hints.effect != Effect::None {
            raw.set("inputSchema", with_confirm(&tool.input_schema));
        }
        raw.set("title", Json::encode(hints.title));
        raw.set("annotations", hints.effect.annotations());
        raw.set("_meta", meta.to_json());
        let input_schema = raw.get("inputSchema").cloned().unwrap_or(tool.input_schema);
        let title = Some(hints.title.to_owned());
        Tool { title, annotations, input_schema, raw: raw.to_json(), ..tool }
    }

    fn max_chars(&self, result: ResultSize) -> Option<usize> {
        let chars = match result {
            ResultSize::Short => return None,
            ResultSize::Gated => self.gate.limit,
            ResultSize::CallersLimit => {
                self.gate.ceiling.unwrap_or(MOST_CHARS).max(self.gate.limit)
            }
            ResultSize::ViewLimit => self.view_chars,
        };
        Some(chars.min(MOST_CHARS))
    }
}

/// A schema with the argument for a token.
fn with_confirm(schema: &Json) -> Json {
    let Ok(mut schema) = schema.to_value() else { return schema.clone() };
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        // The refusal that gives the token says what it is for.
        properties.insert(confirm::ARGUMENT.to_owned(), json!({"type": "string"}));
    }
    schema.into()
}

impl ToolHints {
    fn annotations(&self) -> Annotations {
        let runs = self.effect == Effect::Runs;
        Annotations {
            read_only: Some(!runs),
            destructive: Some(runs),
            open_world: Some(self.effect != Effect::None),
            idempotent: None,
        }
    }
}

impl Effect {
    fn annotations(self) -> Json {
        match self {
            Effect::None => json!({"readOnlyHint": true, "openWorldHint": false}).into(),
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

    fn hint_context(gate: &gate::Config) -> HintContext<'_> {
        HintContext { map: "files, mail", gate, view_chars: 8_000, confirms: false }
    }

    #[test]
    fn every_tool_of_ours_has_a_title_annotations_and_is_kept_loaded() {
        let gate = gate::Config::default();
        let names: Vec<&str> = meta::names().collect();
        let own = cash::tools("").into_iter().chain(meta::tools(&names, ""));
        let own: Vec<Tool> = own.map(|tool| hint_context(&gate).with_hints(tool)).collect();
        // The tool that only reads is listed by itself.
        assert_eq!(own.len(), TOOL_HINTS.len() - 1);
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
            let tool = hint_context(&gate).with_hints(own.find(|tool| tool.name == name).unwrap());
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
    fn the_token_of_an_approval_stands_in_definitions_only_where_tokens_are_given() {
        let gate = gate::Config::default();
        let listing = |confirms| {
            let names: Vec<&str> = meta::names().collect();
            let own = cash::tools("").into_iter().chain(meta::tools(&names, ""));
            let hints = HintContext { confirms, ..hint_context(&gate) };
            let with = own.map(|tool| hints.with_hints(tool)).filter(|tool| {
                assert_eq!(tool.raw.member("inputSchema").as_ref(), Some(&tool.input_schema));
                tool.input_schema.mentions(confirm::ARGUMENT)
            });
            with.map(|tool| tool.name).collect::<Vec<_>>()
        };
        assert_eq!(listing(false), Vec::<String>::new());
        let with = ["call", "tool_execute", "tool_run", "resource_read", "prompt_get"];
        assert_eq!(listing(true), with);
    }

    #[test]
    fn the_tools_of_others_are_left_as_they_are() {
        let gate = gate::Config::default();
        let text = r#"{"name":"call_me","_meta":{"a":1}}"#;
        let tool = Tool::parse(Json::parse(text).unwrap()).unwrap();
        assert_eq!(hint_context(&gate).with_hints(tool).raw.as_str(), text);
    }
}
