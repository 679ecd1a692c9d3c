//! The meta-tools: what they are called, what is said of them, what they take.

use serde_json::{Map, Value, json};
use tool::Tool;

use crate::surface::batch::CALLS;
use policy::confirm;

/// Tokens that the names of the namespaces may take in the definition of
/// `tool_browse`.
pub(crate) const MAP: usize = 16;

/// What one meta-tool is.
struct Definition {
    name: &'static str,
    description: &'static str,
    takes: &'static [Argument],
}

/// One thing that a meta-tool takes.
struct Argument {
    name: &'static str,
    /// The type in the schema, where the definition names the argument at all:
    /// every client pays for what is named.
    named: Option<&'static str>,
    required: bool,
}

const fn takes(name: &'static str, kind: &'static str) -> Argument {
    Argument { name, named: Some(kind), required: false }
}

const fn needs(name: &'static str, kind: &'static str) -> Argument {
    Argument { name, named: Some(kind), required: true }
}

const fn unnamed(name: &'static str) -> Argument {
    Argument { name, named: None, required: false }
}

/// What all that browse take.
const BROWSE: &[Argument] = &[
    takes("query", "string"),
    takes("path", "string"),
    takes("top_k", "integer"),
    unnamed("format"),
];

/// All of them, as small as they can be.
const TOOLS: [Definition; 9] = [
    Definition {
        name: "tool_browse",
        description: "Find tools by query (what to do) or path (\"/\" lists namespaces).",
        takes: BROWSE,
    },
    Definition {
        name: "tool_execute",
        description: "Run a tool. pick: jq filter.",
        takes: &[
            needs("tool_id", "string"),
            takes("args", "object"),
            takes("dry_run", "boolean"),
            takes("pick", "string"),
            // Told in the instructions of the surface.
            unnamed(CALLS),
            takes(confirm::ARGUMENT, "string"),
        ],
    },
    Definition {
        name: "tool_view",
        description: "Part of a kept result. selector type: head|tail(chars), lines|rows(start,end), \
                      grep(pattern), jq(filter), json_keys(keys), image",
        takes: &[
            needs("handle", "string"),
            takes("selector", "object"),
            unnamed(confirm::ARGUMENT),
        ],
    },
    Definition {
        name: "tool_run",
        description: "Run JavaScript: `await tools.<namespace>.<tool>(args)`; return only what is needed.",
        takes: &[
            takes("code", "string"),
            takes("inputs", "object"),
            takes("resume", "string"),
            unnamed("fresh"),
            unnamed(confirm::ARGUMENT),
        ],
    },
    Definition {
        name: "tool_hydrate",
        description: "Schema of a tool.",
        takes: &[needs("tool_id", "string")],
    },
    Definition {
        name: "resource_browse",
        description: "Find resources, like tool_browse.",
        takes: BROWSE,
    },
    Definition {
        name: "resource_read",
        description: "Read a resource, or a uri made from a template.",
        takes: &[
            takes("resource_id", "string"),
            takes("uri", "string"),
            unnamed(confirm::ARGUMENT),
        ],
    },
    Definition {
        name: "prompt_browse",
        description: "Find prompts, like tool_browse.",
        takes: BROWSE,
    },
    Definition {
        name: "prompt_get",
        description: "Get a prompt.",
        takes: &[needs("prompt_id", "string"), takes("args", "object"), unnamed(confirm::ARGUMENT)],
    },
];

/// The names of all meta-tools.
pub fn names() -> impl Iterator<Item = &'static str> {
    TOOLS.iter().map(|tool| tool.name)
}

fn known(name: &str) -> &'static Definition {
    TOOLS.iter().find(|tool| tool.name == name).expect("only meta-tools are asked for")
}

/// Everything that a meta-tool takes, whether or not its definition names it.
pub(in crate::surface) fn arguments_of(name: &str) -> Vec<&'static str> {
    known(name).takes.iter().map(|argument| argument.name).collect()
}

/// Meta-tools, by name; `map` names the namespaces that there are.
pub(crate) fn tools(names: &[&str], map: &str) -> Vec<Tool> {
    let read =
        |name: &&str| Tool::parse(definition(name, map).into()).expect("our own tools have names");
    names.iter().map(read).collect()
}

/// The definition of a meta-tool; `map` names the namespaces that there are.
pub(crate) fn definition(name: &str, map: &str) -> Value {
    let Definition { description, takes, .. } = known(name);
    let description = match (name, map) {
        ("tool_browse", map) if !map.is_empty() => {
            format!("Find tools by query (what to do) or path (\"/\"). Namespaces: {map}.")
        }
        _ => (*description).to_owned(),
    };
    let named = takes.iter().filter_map(|argument| Some((argument.name, argument.named?)));
    let properties: Map<String, Value> =
        named.map(|(name, kind)| (name.to_owned(), json!({"type": kind}))).collect();
    let mut schema = json!({"type": "object", "properties": properties});
    let required = takes.iter().filter(|argument| argument.required);
    let required: Vec<&str> = required.map(|argument| argument.name).collect();
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    json!({"name": name, "description": description, "inputSchema": schema})
}
