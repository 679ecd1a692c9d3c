//! The definitions of `call`, `help`, `skill` and `call_read`, and the listing around
//! them.

use serde_json::{Value, json};
use tool::{Listing, Server, Tool};

use crate::choice::Surface;
use crate::surface::about::{self, About};
use crate::surface::hints::HintContext;
use crate::surface::instructions::{ListedDirectly, instructions};
use policy::visibility::{CallerView, Item};
use roster::Snapshot;

/// The tool that runs only functions that only read, if the operator wants it.
pub(crate) const CALL_READ: &str = "call_read";

/// The most tokens of the namespaces' names in the definition of `help`.
pub(crate) const MAX_MAP_TOKENS: usize = 60;

/// Returns `call`, `help` and `skill`; `map` is the names of the namespaces.
pub fn tools(map: &str) -> Vec<Tool> {
    let mut help = "kwargs={\"query\": \"what to do\"} finds functions and their arguments: start \
        there. namespace lists its functions, with function for detail; help() lists namespaces."
        .to_owned();
    if !map.is_empty() {
        help.push_str(&format!(" Namespaces: {map}."));
    }
    let namespace = json!({"type": "string", "description": "Dotted path; empty for root"});
    let text = json!({"type": "string"});
    let object = json!({"type": "object"});
    let definitions = [
        json!({
            "name": "call",
            "description": "Run a function. Find functions and their arguments with help.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "namespace": namespace,
                    "function": text,
                    "kwargs": {"type": "object", "description": "The function's arguments"},
                    "sizelimit": {"type": "integer", "description": "Most characters of the result"},
                    "pick": {"type": "string", "description": "jq over the result (text is a string); only its output returns"},
                    "calls": {"type": "array", "description": "Calls like this one, in order; function is then \"calls\""},
                },
                "required": ["function"],
            },
        }),
        json!({
            "name": "help",
            "description": help,
            "inputSchema": {
                "type": "object",
                "properties": {"namespace": text, "function": text, "kwargs": object},
            },
        }),
        json!({
            "name": "skill",
            "description": "Instructions for multi-step tasks. skill() lists them.",
            "inputSchema": {
                "type": "object",
                "properties": {"namespace": text, "skillname": text, "kwargs": object},
            },
        }),
    ];
    let parse = |raw: Value| Tool::parse(raw.into()).expect("our own tools have names");
    definitions.into_iter().map(parse).collect()
}

/// Returns `call_read`, which hosts can allow once for all.
pub(super) fn read_tool() -> Tool {
    let raw = json!({
        "name": CALL_READ,
        "description": "Like call, but runs only functions that change nothing.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "namespace": {"type": "string"},
                "function": {"type": "string"},
                "kwargs": {"type": "object"},
                "sizelimit": {"type": "integer"},
                "pick": {"type": "string"},
                "calls": {"type": "array"},
            },
            "required": ["function"],
        },
    });
    Tool::parse(raw.into()).expect("our own tools have names")
}

/// Makes the listing of the surface, with what a caller sees.
pub(super) fn listing(
    about: &About,
    snapshot: &Snapshot,
    hints: &HintContext<'_>,
    capabilities: Value,
    visible: &CallerView<'_>,
    listed: ListedDirectly,
) -> Listing {
    let shows = &|thing: &Item<'_>| visible.shows_directly(thing);
    let seen = snapshot.primitives().visible(&snapshot.catalog, shows);
    let server = Server {
        instructions: Some(instructions(Surface::Cash, listed, &snapshot.catalog, visible)),
        ..about::server(about, snapshot, capabilities, shows)
    };
    Listing {
        server,
        tools: tools(hints.map).into_iter().map(|tool| hints.with_hints(tool)).collect(),
        resources: about.resource().into_iter().chain(seen.resources).collect(),
        templates: seen.templates,
        prompts: seen.prompts,
        findings: snapshot.findings.clone(),
        ..Listing::default()
    }
}
