//! The definitions of the built-in functions, as clients see them.

use serde_json::{Value, json};
use tool::{Listing, Tool};

use super::view;

/// The function by which a model saves a recipe.
pub(super) const SAVE: &str = "save_recipe";

/// Whether scripts are switched on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scripts {
    Off,
    On,
}

/// How many results a search has unless the caller gives a limit.
pub(crate) const DEFAULT_RESULTS: usize = 5;
pub(super) const MAX_RESULTS: usize = 50;

/// Returns the functions that there are: those of scripts only if `scripts` are on,
/// and the one that saves recipes only if models `can_save` any.
pub(super) fn listing(scripts: Scripts, can_save: bool) -> Listing {
    let parse =
        |definition: Value| Tool::parse(definition.into()).expect("our own tools have names");
    let run = (scripts == Scripts::On).then(run_definition);
    let save = (scripts == Scripts::On && can_save).then(save_definition);
    let always = [find_definition(), view_definition(), status_definition()];
    let tools = always.into_iter().chain(run).chain(save).map(parse).collect();
    Listing { tools, ..Listing::default() }
}

/// Returns a definition with `annotations`, unless they are null.
fn definition(name: &str, description: &str, input_schema: &Value, annotations: Value) -> Value {
    let mut definition =
        json!({"name": name, "description": description, "inputSchema": input_schema});
    if !annotations.is_null() {
        definition["annotations"] = annotations;
    }
    definition
}

/// Returns the schema of an object that has no other properties than these.
fn object_schema(properties: &Value, required: &[&str]) -> Value {
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema["additionalProperties"] = json!(false);
    schema
}

fn read_only() -> Value {
    json!({"readOnlyHint": true})
}

fn find_definition() -> Value {
    let properties = json!({
        "query": {"type": "string", "description": "What you want to do, in words."},
        "limit": {"type": "integer", "minimum": 1, "maximum": MAX_RESULTS, "default": DEFAULT_RESULTS},
        "kind": {
            "type": "string",
            "enum": ["function", "resource", "prompt", "skill", "all"],
            "default": "function",
        },
    });
    let description = "Find functions in all namespaces by what they do.";
    definition("find", description, &object_schema(&properties, &["query"]), read_only())
}

fn view_definition() -> Value {
    let description = "Read a part of a result that was too long.\n\nGive the handle and one of \
        `head`, `tail`, `lines`, `grep`, `jq`. Without one, the beginning. Without a handle, \
        what is kept.";
    definition("view", description, &view::schema(), read_only())
}

fn status_definition() -> Value {
    let description = "Which upstreams are unavailable and why.";
    definition("status", description, &object_schema(&json!({}), &[]), read_only())
}

/// Defines the function that runs scripts.
fn run_definition() -> Value {
    let description = "Run JavaScript that calls functions, so that only what it returns comes back. \
        `code` is the body of an async function: `await tools.<namespace>.<function>({…})` gives \
        parsed data and throws on errors, `Promise.all` runs calls side by side, `console.log` \
        goes into the reply, `return` ends it.\n\nNo files, network, clock or randomness. \
        `help(namespace, function, kwargs={\"format\": \"ts\"})` has types.";
    let properties = json!({
        "code": {"type": "string", "description": "JavaScript, with `inputs` and `tools`."},
        "inputs": {"type": "object", "description": "The value of `inputs`."},
        "resume": {"type": "string", "description": "The handle of a script that stopped."},
        "fresh": {
            "type": "boolean",
            "description": "Start again although the same script was begun before.",
        },
    });
    definition("run", description, &object_schema(&properties, &[]), Value::Null)
}

/// Defines the function that saves a script as a recipe.
fn save_definition() -> Value {
    let description = "Save a script that proved its worth as a function `gatelet.recipes.NAME`. The user \
        has to agree.";
    let properties = json!({
        "name": {"type": "string", "description": "Lower case letters, digits and `_`."},
        "description": {"type": "string", "description": "What it does, in a sentence."},
        "inputs": {"type": "object", "description": "The JSON Schema of its `inputs`."},
        "functions": {
            "type": "array",
            "items": {"type": "string"},
            "description": "What it may call, such as `orders.list`; nothing else.",
        },
        "code": {"type": "string", "description": "As for `run`."},
    });
    let required = ["name", "description", "functions", "code"];
    let annotations = json!({"readOnlyHint": false, "destructiveHint": false});
    definition(SAVE, description, &object_schema(&properties, &required), annotations)
}
