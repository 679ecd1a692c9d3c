//! The tools, resources and prompts of the conformance provider.

use serde_json::{Value, json};
use tool::{Json, Listing, Prompt, Resource, Server, Template, Tool};

/// A red pixel, as PNG.
pub(super) const IMAGE: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

/// Silence, as WAV.
pub(super) const AUDIO: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=";

/// The names and descriptions of tools without arguments.
const PLAIN: &[(&str, &str)] = &[
    ("test_simple_text", "Returns a text"),
    ("test_image_content", "Returns an image"),
    ("test_audio_content", "Returns a sound"),
    ("test_embedded_resource", "Returns a resource"),
    ("test_multiple_content_types", "Returns blocks of several kinds"),
    ("test_tool_with_logging", "Logs while it runs"),
    ("test_logging_tool", "Logs while it runs, if the request wants that"),
    ("test_error_handling", "Returns an error"),
    ("test_tool_with_progress", "Reports progress"),
    ("test_reconnection", "Answers after a while, so that the client may reconnect"),
    ("test_elicitation_sep1034_defaults", "Asks the user, with defaults"),
    ("test_elicitation_sep1330_enums", "Asks the user to choose"),
    ("test_missing_capability", "Needs a client that can sample"),
    ("test_streaming_elicitation", "Asks the user for a name"),
    ("test_trigger_tool_change", "Changes the list of tools"),
    ("test_trigger_prompt_change", "Changes the list of prompts"),
    ("test_input_required_result_elicitation", "Requires input from the user"),
    ("test_input_required_result_sampling", "Requires a sampled text"),
    ("test_input_required_result_list_roots", "Requires the roots"),
    ("test_input_required_result_request_state", "Requires input, and a state"),
    ("test_input_required_result_multiple_inputs", "Requires input of three kinds"),
    ("test_input_required_result_multi_round", "Requires input twice"),
    ("test_input_required_result_tampered_state", "Refuses a state that was changed"),
    ("test_input_required_result_capabilities", "Requires only what the client can give"),
];

pub(super) fn listing(extra_tool: bool, extra_prompt: bool, protocol: &str) -> Listing {
    let capabilities = json!({
        "tools": {"listChanged": true},
        "resources": {"subscribe": true, "listChanged": true},
        "prompts": {"listChanged": true},
        "logging": {},
        "completions": {},
    });
    let mut server = Server::new("everything", "1.0.0", capabilities.into());
    server.instructions = Some("Everything that a conformance suite looks for.".to_owned());
    server.protocol = protocol.to_owned();
    Listing {
        server,
        tools: parse_all(tools(extra_tool), Tool::parse),
        resources: parse_all(resources(), Resource::parse),
        templates: parse_all(vec![template()], Template::parse),
        prompts: parse_all(prompts(extra_prompt), Prompt::parse),
        ..Listing::default()
    }
}

fn parse_all<T>(raw: Vec<Value>, parse: fn(Json) -> Result<T, tool::Finding>) -> Vec<T> {
    let item = |raw: Value| parse(raw.into()).expect("our own definitions can be read");
    raw.into_iter().map(item).collect()
}

fn tools(extra: bool) -> Vec<Value> {
    let plain = |(name, description): &(&str, &str)| {
        let schema = json!({"type": "object", "properties": {}});
        json!({"name": name, "description": description, "inputSchema": schema})
    };
    let with = |name: &str, description: &str, properties: Value, required: &[&str]| {
        let schema = json!({"type": "object", "properties": properties, "required": required});
        json!({"name": name, "description": description, "inputSchema": schema})
    };
    let text = |description: &str| json!({"type": "string", "description": description});
    let mut tools: Vec<Value> = PLAIN.iter().map(plain).collect();
    tools.push(with(
        "test_sampling",
        "Samples",
        json!({"prompt": text("The prompt")}),
        &["prompt"],
    ));
    tools.push(with(
        "test_elicitation",
        "Asks the user",
        json!({"message": text("What the user is asked")}),
        &["message"],
    ));
    let region = json!({"type": "string", "description": "The region", "x-mcp-header": "Region"});
    tools.push(with(
        "test_custom_header",
        "Mirrors an argument",
        json!({"region": region}),
        &["region"],
    ));
    tools.push(json!({
        "name": "json_schema_2020_12_tool",
        "description": "Tool with JSON Schema 2020-12 features",
        "inputSchema": schema_2020_12(),
    }));
    if extra {
        tools.push(plain(&("test_extra_tool", "Comes and goes")));
    }
    tools
}

fn schema_2020_12() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {"$anchor": "addressDef", "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    })
}

fn resources() -> Vec<Value> {
    let one = |uri: &str, name: &str, media_type: &str| json!({"uri": uri, "name": name, "description": name, "mimeType": media_type});
    vec![
        one("test://static-text", "Static text", "text/plain"),
        one("test://static-binary", "Static binary", "image/png"),
        one("test://watched-resource", "Watched resource", "text/plain"),
    ]
}

fn template() -> Value {
    json!({"uriTemplate": "test://template/{id}/data", "name": "Data by id",
        "description": "Data by id", "mimeType": "application/json"})
}

fn prompts(extra: bool) -> Vec<Value> {
    let argument = |name: &str| json!({"name": name, "description": name, "required": true});
    let one = |name: &str, arguments: &[&str]| {
        let arguments: Vec<Value> = arguments.iter().map(|name| argument(name)).collect();
        json!({"name": name, "description": "A prompt for testing", "arguments": arguments})
    };
    let mut prompts = vec![
        one("test_simple_prompt", &[]),
        one("test_prompt_with_arguments", &["arg1", "arg2"]),
        one("test_prompt_with_embedded_resource", &["resourceUri"]),
        one("test_prompt_with_image", &[]),
        one("test_input_required_result_prompt", &[]),
    ];
    if extra {
        prompts.push(one("test_extra_prompt", &[]));
    }
    prompts
}
