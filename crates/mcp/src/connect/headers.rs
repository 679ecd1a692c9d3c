//! What a modern HTTP request says in its headers, so that what stands between
//! can route it without reading the body.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderName, HeaderValue};
use serde_json::Value;
use std::collections::HashSet;
use tool::trace::{SpanContext, TRACEPARENT, TRACESTATE};
use tool::{Ask, Json, Listing};

use crate::revision::header;

/// The member of a schema that asks for a header.
const ANNOTATION: &str = "x-mcp-header";

/// The properties of one tool that travel in headers too.
pub(super) type Annotations = Vec<(Vec<String>, String)>;

/// What a question says in its headers.
pub(super) type Headers = Vec<(HeaderName, HeaderValue)>;

/// The headers of one question.
pub(super) fn for_ask(ask: &Ask, listing: &Listing) -> Headers {
    let mut headers = plain(ask.method(), name(ask).as_deref());
    if let Ask::Call(call) = ask
        && let Some(arguments) = &call.arguments
    {
        let tool = listing.tools.iter().find(|tool| tool.name == call.name);
        let annotations = tool.and_then(|tool| annotations(&tool.input_schema).ok());
        for (path, header) in annotations.unwrap_or_default() {
            let Some(value) = argument(arguments, &path) else { continue };
            let header = format!("{}{header}", header::PARAM_PREFIX);
            if let Ok(header) = HeaderName::from_bytes(header.as_bytes()) {
                push(&mut headers, header, &value);
            }
        }
    }
    headers
}

/// The headers of a question that is not a call.
pub(super) fn plain(method: &str, name: Option<&str>) -> Headers {
    let mut headers = Vec::with_capacity(2);
    push(&mut headers, header::METHOD, method);
    if let Some(name) = name {
        push(&mut headers, header::NAME, name);
    }
    headers
}

/// The headers that name the span of a question.
pub(super) fn for_span(span: &SpanContext) -> Headers {
    let mut headers = Vec::with_capacity(2);
    push(&mut headers, HeaderName::from_static(TRACEPARENT), &span.to_string());
    if let Some(state) = span.state() {
        push(&mut headers, HeaderName::from_static(TRACESTATE), state);
    }
    headers
}

/// Which properties of a tool travel in headers, or why its annotations are
/// wrong: on anything but a primitive property that only `properties` lead to,
/// or with a name that is no header name, or is there twice.
pub(super) fn annotations(schema: &Json) -> Result<Annotations, String> {
    // Almost no tool has any; a look at the text spares reading the schema.
    if memchr::memmem::find(schema.as_bytes(), ANNOTATION.as_bytes()).is_none() {
        return Ok(Vec::new());
    }
    let schema = schema.to_value().map_err(|error| error.to_string())?;
    let mut found = Vec::new();
    let n_legal = collect(&schema, &mut Vec::new(), &mut found)?;
    if n_legal != count(&schema) {
        return Err(format!("`{ANNOTATION}` must sit on a path of `properties` only"));
    }
    let mut names = HashSet::new();
    match found.iter().find(|(_, name)| !names.insert(name.to_ascii_lowercase())) {
        Some((_, name)) => Err(format!("`{ANNOTATION}` names `{name}` twice")),
        None => Ok(found),
    }
}

fn collect(
    schema: &Value,
    path: &mut Vec<String>,
    found: &mut Annotations,
) -> Result<usize, String> {
    let mut n_found = 0;
    for (name, property) in
        schema.get("properties").and_then(Value::as_object).into_iter().flatten()
    {
        path.push(name.clone());
        if let Some(header) = property.get(ANNOTATION) {
            found.push((path.clone(), header_name(header, property, path)?));
            n_found += 1;
        }
        n_found += collect(property, path, found)?;
        path.pop();
    }
    Ok(n_found)
}

fn header_name(header: &Value, property: &Value, path: &[String]) -> Result<String, String> {
    let at = path.join(".");
    let name = header.as_str().filter(|name| HeaderName::from_bytes(name.as_bytes()).is_ok());
    let name =
        name.ok_or_else(|| format!("`{ANNOTATION}` of `{at}` is no header name: {header}"))?;
    match property.get("type").and_then(Value::as_str) {
        Some("string" | "integer" | "boolean") => Ok(name.to_owned()),
        _ => Err(format!("`{ANNOTATION}` of `{at}` needs a string, an integer or a boolean")),
    }
}

/// Every annotation anywhere, apart from instance data.
fn count(schema: &Value) -> usize {
    match schema {
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| match key.as_str() {
                ANNOTATION => 1,
                "default" | "const" | "enum" | "examples" => 0,
                "properties" | "$defs" | "definitions" | "dependentSchemas"
                | "patternProperties" => {
                    value.as_object().into_iter().flatten().map(|(_, schema)| count(schema)).sum()
                }
                _ => count(value),
            })
            .sum(),
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

fn argument(arguments: &Json, path: &[String]) -> Option<String> {
    let mut value = arguments.clone();
    for key in path {
        value = value.member(key)?;
    }
    match value.to_value().ok()? {
        Value::String(text) => Some(text),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn name(ask: &Ask) -> Option<String> {
    match ask {
        Ask::Call(call) => Some(call.name.clone()),
        Ask::Prompt(prompt) => Some(prompt.name.clone()),
        Ask::ReadResource(read) => Some(read.uri.clone()),
        Ask::Complete(_) => None,
        Ask::Other { method, params } => {
            let key = match method.as_str() {
                "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
                _ => return None,
            };
            params.get(key)?.parse_as().ok()
        }
    }
}

fn push(headers: &mut Vec<(HeaderName, HeaderValue)>, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(&encode(value)) {
        headers.push((name, value));
    }
}

/// Values that a header cannot hold as they are travel in base64.
fn encode(value: &str) -> String {
    let blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    let edges = blank(value.as_bytes().first()) || blank(value.as_bytes().last());
    let plain = value.bytes().all(|byte| matches!(byte, 0x20..=0x7e));
    let disguised = value.starts_with("=?base64?") && value.ends_with("?=");
    if plain && !edges && !disguised {
        return value.to_owned();
    }
    format!("=?base64?{}?=", BASE64_STANDARD.encode(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(schema: &str, expected: Result<&[(&str, &str)], &str>) {
        let found = annotations(&Json::parse(schema.to_owned()).unwrap());
        let found = found.map(|found| {
            found.into_iter().map(|(path, name)| (path.join("."), name)).collect::<Vec<_>>()
        });
        let expected = expected
            .map(|list| list.iter().map(|(p, n)| ((*p).to_owned(), (*n).to_owned())).collect())
            .map_err(str::to_owned);
        assert_eq!(found, expected);
    }

    #[test]
    fn annotated_properties_become_headers_nested_ones_too() {
        check(
            r#"{"properties":{"region":{"type":"string","x-mcp-header":"Region"},
                "in":{"properties":{"n":{"type":"integer","x-mcp-header":"N"}}}}}"#,
            Ok(&[("region", "Region"), ("in.n", "N")]),
        );
        check(r#"{"properties":{"a":{"default":{"x-mcp-header":1}}}}"#, Ok(&[]));
    }

    #[test]
    fn wrong_annotations_say_what_is_wrong() {
        let one = |property: &str| format!(r#"{{"properties":{{"p":{property}}}}}"#);
        check(
            &one(r#"{"type":"string","x-mcp-header":"a b"}"#),
            Err("`x-mcp-header` of `p` is no header name: \"a b\""),
        );
        check(
            &one(r#"{"type":"number","x-mcp-header":"A"}"#),
            Err("`x-mcp-header` of `p` needs a string, an integer or a boolean"),
        );
        check(
            &one(r#"{"items":{"type":"string","x-mcp-header":"A"}}"#),
            Err("`x-mcp-header` must sit on a path of `properties` only"),
        );
        check(
            r#"{"properties":{"a":{"type":"string","x-mcp-header":"X"},
                "b":{"type":"string","x-mcp-header":"x"}}}"#,
            Err("`x-mcp-header` names `x` twice"),
        );
    }

    #[test]
    fn values_that_a_header_cannot_hold_travel_in_base64() {
        assert_eq!(encode("plain value"), "plain value");
        assert_eq!(encode("grün"), "=?base64?Z3LDvG4=?=");
        assert_eq!(encode(" x"), "=?base64?IHg=?=");
        assert_eq!(encode("=?base64?eA==?="), "=?base64?PT9iYXNlNjQ/ZUE9PT89?=");
    }
}
