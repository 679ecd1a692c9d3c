//! Encodes spans as OTLP, with the attributes of the semantic conventions for MCP.

use tool::trace::{SpanContext, TraceEvent};

use super::protobuf::Message;
use super::resource::{Attribute, Resource, Value, attribute, write_envelope};
use crate::labels::sanitize_label;
use crate::semantics::{Side, Target};
use crate::traces::{Operation, RecordedSpan};

/// Encodes an `ExportTraceServiceRequest` with the spans of these operations.
pub(super) fn request(operations: &[Operation], resource: &Resource) -> Vec<u8> {
    let mut message = Message::default();
    write_envelope(&mut message, resource, |scope| {
        for operation in operations {
            if let Some(span) = &operation.span {
                scope.message(2, |message| write(message, operation, span));
            }
        }
    });
    message.into_bytes()
}

fn write(message: &mut Message, operation: &Operation, span: &RecordedSpan) {
    message.bytes(1, &span.context.trace_id());
    message.bytes(2, &span.context.span_id());
    message.string(3, span.context.state().unwrap_or_default());
    message.bytes(4, span.parent.as_ref().map_or(&[], |id| id));
    message.string(5, &name(operation));
    message.varint(
        6,
        match operation.side {
            Side::Server => 2,
            Side::Client => 3,
        },
    );
    let took = u64::try_from(operation.took.as_nanos()).unwrap_or(u64::MAX);
    message.fixed64(7, operation.start);
    message.fixed64(8, operation.start.saturating_add(took));
    for (key, value) in
        common_attributes(operation).into_iter().chain(span_attributes(operation, span))
    {
        attribute(message, 9, key, &value);
    }
    for event in &span.events {
        message.message(11, |message| write_event(message, operation.start, event));
    }
    if let Some(link) = &span.link {
        message.message(13, |message| write_link(message, link));
    }
    message.message(15, |status| {
        if operation.outcome.error_type.is_some() {
            status.string(2, operation.outcome.message.as_deref().unwrap_or_default());
            status.varint(3, 2);
        }
    });
    message.fixed32(16, flags(&span.context));
}

/// Returns the name of a span, `{method} {tool or prompt}`. The URI of a resource is left
/// out, because there are too many.
fn name(operation: &Operation) -> String {
    match &operation.target {
        Target::Tool(name) | Target::Prompt(name) => {
            format!("{} {}", operation.method, sanitize_label(name))
        }
        Target::Resource(_) | Target::None => operation.method.to_owned(),
    }
}

/// Returns the attributes that spans and histograms both have.
pub(super) fn common_attributes(operation: &Operation) -> Vec<Attribute> {
    let mut attributes: Vec<Attribute> = vec![("mcp.method.name", operation.method.into())];
    match &operation.target {
        Target::Tool(name) => {
            attributes.push(("gen_ai.tool.name", Value::Text(sanitize_label(name))));
            attributes.push(("gen_ai.operation.name", "execute_tool".into()));
        }
        Target::Prompt(name) => {
            attributes.push(("gen_ai.prompt.name", Value::Text(sanitize_label(name))))
        }
        Target::Resource(_) | Target::None => {}
    }
    let outcome = &operation.outcome;
    if let Some(error) = &outcome.error_type {
        attributes.push(("error.type", Value::Text(error.clone())));
    }
    if let Some(code) = outcome.status_code {
        attributes.push(("rpc.response.status_code", Value::Text(code.to_string())));
    }
    if !operation.protocol.is_empty() {
        attributes.push(("mcp.protocol.version", operation.protocol.as_str().into()));
    }
    if !operation.peer.transport.is_empty() {
        attributes.push(("network.transport", operation.peer.transport.into()));
    }
    if let Some((address, port)) = &operation.peer.address {
        attributes.push(("server.address", address.as_str().into()));
        attributes.push(("server.port", Value::Number((*port).into())));
    }
    if let Some(upstream) = &operation.peer.upstream {
        attributes.push(("gatelet.upstream", upstream.as_str().into()));
    }
    attributes
}

/// Returns the attributes that only spans have.
fn span_attributes(operation: &Operation, span: &RecordedSpan) -> Vec<Attribute> {
    let mut attributes: Vec<Attribute> = Vec::new();
    if let Target::Resource(uri) = &operation.target {
        attributes.push(("mcp.resource.uri", Value::Text(sanitize_label(uri))));
    }
    if let Some(id) = &span.request_id {
        attributes.push(("jsonrpc.request.id", Value::Text(sanitize_label(id))));
    }
    if let Some(id) = &span.session_id {
        attributes.push(("mcp.session.id", id.as_str().into()));
    }
    if operation.peer.transport == "tcp" {
        attributes.push(("network.protocol.name", "http".into()));
    }
    attributes
}

fn write_event(message: &mut Message, start: u64, event: &TraceEvent) {
    let at = u64::try_from(event.offset.as_nanos()).unwrap_or(u64::MAX);
    message.fixed64(1, start.saturating_add(at));
    message.string(2, event.name);
    for (key, text) in &event.attributes {
        attribute(message, 3, key, &Value::Text(sanitize_label(text)));
    }
}

fn write_link(message: &mut Message, link: &SpanContext) {
    message.bytes(1, &link.trace_id());
    message.bytes(2, &link.span_id());
    message.string(3, link.state().unwrap_or_default());
    message.fixed32(6, flags(link));
}

/// Returns the trace flags of W3C: whether the trace is sampled.
fn flags(context: &SpanContext) -> u32 {
    u32::from(context.is_sampled())
}
