//! The definitions of the meta-tools: names, descriptions and arguments.

use serde_json::{Map, Value, json};
use tool::Tool;

use crate::surface::batch::CALLS;
use policy::confirm;

/// The most tokens of the namespaces' names in the definition of `tool_browse`.
pub(crate) const MAX_MAP_TOKENS: usize = 16;

/// The definition of one meta-tool.
struct Definition {
    name: &'static str,
    description: &'static str,
    arguments: &'static [Argument],
}

/// An argument of a meta-tool.
struct Argument {
    name: &'static str,
    /// The type in the schema; `None` if the schema does not have the argument, because
    /// every client pays for what is in it.
    schema_type: Option<&'static str>,
    required: bool,
}

const fn optional(name: &'static str, schema_type: &'static str) -> Argument {
    Argument { name, schema_type: Some(schema_type), required: false }
}

const fn required(name: &'static str, schema_type: &'static str) -> Argument {
    Argument { name, schema_type: Some(schema_type), required: true }
}

const fn unlisted(name: &'static str) -> Argument {
    Argument { name, schema_type: None, required: false }
}

/// The arguments of the meta-tools that browse.
const BROWSE_ARGUMENTS: &[Argument] = &[
    optional("query", "string"),
    optional("path", "string"),
    optional("top_k", "integer"),
    unlisted("format"),
];

/// All meta-tools, with definitions as small as possible.
const TOOLS: [Definition; 9] = [
    Definition {
        name: "tool_browse",
        description: "Find tools by query (what to do) or path (\"/\" lists namespaces).",
        arguments: BROWSE_ARGUMENTS,
    },
    Definition {
        name: "tool_execute",
        description: "Run a tool. pick: jq filter.",
        arguments: &[
            required("tool_id", "string"),
            optional("args", "object"),
            optional("dry_run", "boolean"),
            optional("pick", "string"),
            // The instructions of the surface explain it.
            unlisted(CALLS),
            unlisted(confirm::ARGUMENT),
        ],
    },
    Definition {
        name: "tool_view",
        description: "Part of a kept result. selector type: head|tail(chars), lines|rows(start,end), \
                      grep(pattern), jq(filter), json_keys(keys), image",
        arguments: &[
            required("handle", "string"),
            optional("selector", "object"),
            unlisted(confirm::ARGUMENT),
        ],
    },
    Definition {
        name: "tool_run",
        description: "Run JavaScript: `await tools.<namespace>.<tool>(args)`; return only what is needed.",
        arguments: &[
            optional("code", "string"),
            optional("inputs", "object"),
            optional("resume", "string"),
            unlisted("fresh"),
            unlisted(confirm::ARGUMENT),
        ],
    },
    Definition {
        name: "tool_hydrate",
        description: "Schema of a tool.",
        arguments: &[required("tool_id", "string")],
    },
    Definition {
        name: "resource_browse",
        description: "Find resources, like tool_browse.",
        arguments: BROWSE_ARGUMENTS,
    },
    Definition {
        name: "resource_read",
        description: "Read a resource, or a uri made from a template.",
        arguments: &[
            optional("resource_id", "string"),
            optional("uri", "string"),
            unlisted(confirm::ARGUMENT),
        ],
    },
    Definition {
        name: "prompt_browse",
        description: "Find prompts, like tool_browse.",
        arguments: BROWSE_ARGUMENTS,
    },
    Definition {
        name: "prompt_get",
        description: "Get a prompt.",
        arguments: &[
            required("prompt_id", "string"),
            optional("args", "object"),
            unlisted(confirm::ARGUMENT),
        ],
    },
];

/// The names of all meta-tools.
pub fn names() -> impl Iterator<Item = &'static str> {
    TOOLS.iter().map(|tool| tool.name)
}

fn definition_of(name: &str) -> &'static Definition {
    TOOLS.iter().find(|tool| tool.name == name).expect("only meta-tools are asked for")
}

/// Returns the names of all arguments of a meta-tool, also those not in its schema.
pub(in crate::surface) fn arguments_of(name: &str) -> Vec<&'static str> {
    definition_of(name).arguments.iter().map(|argument| argument.name).collect()
}

/// Returns these meta-tools as tools; `map` is the names of the namespaces.
pub(crate) fn tools(names: &[&str], map: &str) -> Vec<Tool> {
    let read =
        |name: &&str| Tool::parse(definition(name, map).into()).expect("our own tools have names");
    names.iter().map(read).collect()
}

/// Returns the JSON definition of a meta-tool; `map` is the names of the namespaces.
pub(crate) fn definition(name: &str, map: &str) -> Value {
    let Definition { description, arguments, .. } = definition_of(name);
    let description = match (name, map) {
        ("tool_browse", map) if !map.is_empty() => {
            format!("Find tools by query (what to do) or path (\"/\"). Namespaces: {map}.")
        }
        _ => (*description).to_owned(),
    };
    let listed =
        arguments.iter().filter_map(|argument| Some((argument.name, argument.schema_type?)));
    let properties: Map<String, Value> =
        listed.map(|(name, kind)| (name.to_owned(), json!({"type": kind}))).collect();
    let mut schema = json!({"type": "object", "properties": properties});
    let required = arguments.iter().filter(|argument| argument.required);
    let required: Vec<&str> = required.map(|argument| argument.name).collect();
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    json!({"name": name, "description": description, "inputSchema": schema})
}
