//! Parses the JSON and YAML in code fences, and classifies each value as a schema, a tool,
//! a call or a sample.

use serde_json::{Map, Value, json};

/// The role of a JSON value in a document.
pub(super) enum Role {
    Schema(Value),
    /// A whole tool: `name`, `description`, `inputSchema`, `outputSchema`.
    Tool(Box<ToolParts>),
    Call {
        tool: String,
        arguments: Value,
    },
    /// Any other value: an example of a result.
    Sample,
}

/// The parts of a tool that a fence defines.
#[derive(Default)]
pub(super) struct ToolParts {
    pub(super) name: Option<String>,
    pub(super) description: Option<String>,
    pub(super) input: Option<Value>,
    pub(super) output: Option<Value>,
}

/// Parses a JSON fence: one value, several, or one with line comments.
pub(super) fn parse(body: &str) -> Result<Vec<Value>, String> {
    let strict = match serde_json::from_str::<Value>(body) {
        Ok(value) => return Ok(vec![value]),
        Err(error) => error,
    };
    if let Ok(value) = serde_json::from_str::<Value>(&without_comments(body)) {
        return Ok(vec![value]);
    }
    let several: Result<Vec<Value>, _> =
        serde_json::Deserializer::from_str(body).into_iter::<Value>().collect();
    match several {
        Ok(values) if !values.is_empty() => Ok(values),
        Ok(_) => Err("the fence is empty".to_owned()),
        Err(_) if has_bare_dots(body) => {
            Err("`...` stands for something that was left out".to_owned())
        }
        Err(_) => Err(strict.to_string()),
    }
}

/// Parses JSON with comments and trailing commas, as YAML without the comments.
pub(super) fn parse_loose(body: &str) -> Result<Vec<Value>, String> {
    parse(body).or_else(|reason| {
        let plain = without_blocks(&without_comments(body));
        parse(&plain).or_else(|_| parse_yaml(&plain).map(|value| vec![value])).map_err(|_| reason)
    })
}

/// Removes `/* … */` outside of strings.
fn without_blocks(body: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(body.len()), body);
    let (mut in_string, mut escaped) = (false, false);
    while let Some(letter) = rest.chars().next() {
        match letter {
            _ if escaped => escaped = false,
            '\\' if in_string => escaped = true,
            '"' => in_string = !in_string,
            '/' if !in_string && rest.starts_with("/*") => {
                rest = rest.split_once("*/").map_or("", |(_, after)| after);
                continue;
            }
            _ => {}
        }
        out.push(letter);
        rest = &rest[letter.len_utf8()..];
    }
    out
}

/// The deepest nesting of a YAML fence; its parser uses the stack for every level.
const YAML_DEPTH: usize = 32;

/// Parses a YAML fence.
pub(super) fn parse_yaml(body: &str) -> Result<Value, String> {
    let budget = serde_saphyr::budget! { max_depth: YAML_DEPTH };
    serde_saphyr::from_str_with_options::<Value>(body, serde_saphyr::options! { budget: budget })
        .map_err(|error| error.to_string().lines().next().unwrap_or("not YAML").to_owned())
}

/// Removes `// …` outside of strings.
fn without_comments(body: &str) -> String {
    let mut out = String::with_capacity(body.len());
    for line in body.lines() {
        let (mut in_string, mut escaped, mut end) = (false, false, line.len());
        for (at, letter) in line.char_indices() {
            match letter {
                _ if escaped => escaped = false,
                '\\' if in_string => escaped = true,
                '"' => in_string = !in_string,
                '/' if !in_string && line[at..].starts_with("//") => {
                    end = at;
                    break;
                }
                _ => {}
            }
        }
        out.push_str(&line[..end]);
        out.push('\n');
    }
    out
}

/// Returns whether there is a `...` outside of a string.
fn has_bare_dots(body: &str) -> bool {
    body.split('"').step_by(2).any(|outside| outside.contains("..."))
}

/// Classifies a value.
pub(super) fn role(value: &Value) -> Role {
    let Some(members) = value.as_object() else { return Role::Sample };
    if let Some(call) = call(members) {
        return call;
    }
    let text = |key: &str| members.get(key).and_then(Value::as_str).map(str::to_owned);
    let first =
        |keys: &[&str]| keys.iter().find_map(|key| members.get(*key).filter(|v| v.is_object()));
    let input = first(&["inputSchema", "input_schema", "parameters"]);
    if members.contains_key("name") && input.is_some() {
        return Role::Tool(Box::new(ToolParts {
            name: text("name"),
            description: text("description"),
            input: input.map(wrap_properties),
            output: first(&["outputSchema", "output_schema"]).cloned(),
        }));
    }
    if is_schema(members) {
        return Role::Schema(value.clone());
    }
    if is_property_map(members) {
        return Role::Schema(wrap_properties(value));
    }
    Role::Sample
}

/// Returns the call that an object is, if it is one.
fn call(members: &Map<String, Value>) -> Option<Role> {
    if members.get("method") == Some(&Value::from("tools/call")) {
        return call(members.get("params")?.as_object()?);
    }
    let tool = ["tool_name", "name", "tool"].iter().find_map(|key| members.get(*key)?.as_str())?;
    let mut arguments = members.get("arguments").filter(|value| value.is_object());
    if arguments.is_none() && members.contains_key("tool") {
        arguments = members.get("parameters").filter(|value| value.is_object());
    }
    let others = ["inputSchema", "input_schema", "description"];
    if others.iter().any(|key| members.contains_key(*key)) {
        return None;
    }
    Some(Role::Call { tool: tool.to_owned(), arguments: arguments?.clone() })
}

fn is_schema(members: &Map<String, Value>) -> bool {
    let typed = members.get("type").is_some_and(|kind| kind.is_string() || kind.is_array());
    let structured = ["properties", "items", "$ref", "anyOf", "oneOf", "allOf", "$schema", "$defs"]
        .iter()
        .any(|key| members.contains_key(*key));
    structured || (typed && members.values().all(|value| !value.is_null()) && known_type(members))
}

fn known_type(members: &Map<String, Value>) -> bool {
    let names = ["string", "integer", "number", "boolean", "array", "object", "null"];
    let is_name = |value: &Value| value.as_str().is_some_and(|name| names.contains(&name));
    members.get("type").is_some_and(|kind| match kind {
        Value::Array(list) => list.iter().all(is_name),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            is_name(kind)
        }
    })
}

/// `{"a": {"type": "string", "required": true}, …}`
fn is_property_map(members: &Map<String, Value>) -> bool {
    let is_property = |value: &Value| value.as_object().is_some_and(known_type);
    !members.is_empty() && members.values().all(is_property)
}

/// Wraps a bare map of properties in an object schema. Booleans under `required`
/// stay where they are, for the linter to find, and mark the property as required.
fn wrap_properties(schema: &Value) -> Value {
    let Some(members) = schema.as_object() else { return schema.clone() };
    if is_schema(members) || !is_property_map(members) {
        return schema.clone();
    }
    let is_required = |property: &Value| property.get("required") == Some(&Value::Bool(true));
    let required: Vec<&String> = members
        .iter()
        .filter(|(_, property)| is_required(property))
        .map(|(name, _)| name)
        .collect();
    let mut lifted = json!({"type": "object", "properties": schema});
    if !required.is_empty() {
        lifted["required"] = json!(required);
    }
    lifted
}
