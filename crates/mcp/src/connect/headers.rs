//! The HTTP headers of a modern request: method, name and annotated arguments, repeated
//! from the body so that proxies can route without parsing it.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderName, HeaderValue};
use serde_json::Value;
use std::collections::HashSet;
use tool::trace::{SpanContext, TRACEPARENT, TRACESTATE};
use tool::{Ask, Json, Listing};

use crate::revision::header;

/// The schema annotation that asks to send a property as a header.
const ANNOTATION_KEY: &str = "x-mcp-header";

/// The properties of a tool that are also sent as headers: the path of each, and its
/// header name.
pub(super) type Annotations = Vec<(Vec<String>, String)>;

/// The headers that a request adds.
pub(super) type Headers = Vec<(HeaderName, HeaderValue)>;

/// Returns the headers for a client's request.
pub(super) fn for_ask(ask: &Ask, listing: &Listing) -> Headers {
    let mut headers = for_method(ask.method(), name_of(ask).as_deref());
    if let Ask::Call(call) = ask
        && let Some(arguments) = &call.arguments
    {
        let tool = listing.tools.iter().find(|tool| tool.name == call.name);
        let annotations = tool.and_then(|tool| annotations(&tool.input_schema).ok());
        for (path, header) in annotations.unwrap_or_default() {
            let Some(value) = argument_text(arguments, &path) else { continue };
            let header = format!("{}{header}", header::PARAM_PREFIX);
            if let Ok(header) = HeaderName::from_bytes(header.as_bytes()) {
                push_header(&mut headers, header, &value);
            }
        }
    }
    headers
}

/// Returns the headers for a method, and for the name of what it is about.
pub(super) fn for_method(method: &str, name: Option<&str>) -> Headers {
    let mut headers = Vec::with_capacity(2);
    push_header(&mut headers, header::METHOD, method);
    if let Some(name) = name {
        push_header(&mut headers, header::NAME, name);
    }
    headers
}

/// Returns the W3C trace headers for a span.
pub(super) fn for_span(span: &SpanContext) -> Headers {
    let mut headers = Vec::with_capacity(2);
    push_header(&mut headers, HeaderName::from_static(TRACEPARENT), &span.to_string());
    if let Some(state) = span.state() {
        push_header(&mut headers, HeaderName::from_static(TRACESTATE), state);
    }
    headers
}

/// Returns the properties of a tool that are also sent as headers, or why its annotations
/// are invalid: not on a primitive property, not reached by `properties` only, not a
/// header name, or a name used twice.
pub(super) fn annotations(schema: &Json) -> Result<Annotations, String> {
    // Almost no tool has annotations; a text search avoids parsing the schema.
    if memchr::memmem::find(schema.as_bytes(), ANNOTATION_KEY.as_bytes()).is_none() {
        return Ok(Vec::new());
    }
    let schema = schema.to_value().map_err(|error| error.to_string())?;
    let mut found = Vec::new();
    let n_legal = collect_annotations(&schema, &mut Vec::new(), &mut found)?;
    if n_legal != count_annotations(&schema) {
        return Err(format!("`{ANNOTATION_KEY}` must sit on a path of `properties` only"));
    }
    let mut names = HashSet::new();
    match found.iter().find(|(_, name)| !names.insert(name.to_ascii_lowercase())) {
        Some((_, name)) => Err(format!("`{ANNOTATION_KEY}` names `{name}` twice")),
        None => Ok(found),
    }
}

fn collect_annotations(
    schema: &Value,
    path: &mut Vec<String>,
    found: &mut Annotations,
) -> Result<usize, String> {
    let mut n_found = 0;
    for (name, property) in
        schema.get("properties").and_then(Value::as_object).into_iter().flatten()
    {
        path.push(name.clone());
        if let Some(header) = property.get(ANNOTATION_KEY) {
            found.push((path.clone(), header_name(header, property, path)?));
            n_found += 1;
        }
        n_found += collect_annotations(property, path, found)?;
        path.pop();
    }
    Ok(n_found)
}

fn header_name(header: &Value, property: &Value, path: &[String]) -> Result<String, String> {
    let at = path.join(".");
    let name = header.as_str().filter(|name| HeaderName::from_bytes(name.as_bytes()).is_ok());
    let name =
        name.ok_or_else(|| format!("`{ANNOTATION_KEY}` of `{at}` is no header name: {header}"))?;
    match property.get("type").and_then(Value::as_str) {
        Some("string" | "integer" | "boolean") => Ok(name.to_owned()),
        _ => Err(format!("`{ANNOTATION_KEY}` of `{at}` needs a string, an integer or a boolean")),
    }
}

/// Counts all annotations in a schema, except in instance data such as `default`.
fn count_annotations(schema: &Value) -> usize {
    match schema {
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| match key.as_str() {
                ANNOTATION_KEY => 1,
                "default" | "const" | "enum" | "examples" => 0,
                "properties" | "$defs" | "definitions" | "dependentSchemas"
                | "patternProperties" => value
                    .as_object()
                    .into_iter()
                    .flatten()
                    .map(|(_, schema)| count_annotations(schema))
                    .sum(),
                _ => count_annotations(value),
            })
            .sum(),
        Value::Array(items) => items.iter().map(count_annotations).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// Returns the argument at `path` as the text of a header; `None` if it is missing or not a
/// scalar.
fn argument_text(arguments: &Json, path: &[String]) -> Option<String> {
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

/// Returns the name that a request is about: of a tool or prompt, a URI or a task id; `None`
/// if it has none.
fn name_of(ask: &Ask) -> Option<String> {
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

fn push_header(headers: &mut Vec<(HeaderName, HeaderValue)>, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(&encode(value)) {
        headers.push((name, value));
    }
}

/// Encodes a value in base64 if a header cannot hold it as it is.
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
