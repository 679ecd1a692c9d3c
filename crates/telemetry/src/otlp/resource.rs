//! Encodes the parts that OTLP's spans and metrics share: the resource, the scope and
//! attributes.

use super::protobuf::Message;

/// The service that sends spans and metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resource {
    /// `service.name`.
    pub service: String,
    /// `service.version`.
    pub version: String,
    /// `service.instance.id`: tells this process from others.
    pub instance: String,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Value {
    Text(String),
    Number(i64),
    Flag(bool),
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}

/// A key and its value.
pub(super) type Attribute = (&'static str, Value);

/// The schema that the attributes follow.
const SCHEMA: &str = "https://opentelemetry.io/schemas/1.41.0";

/// Encodes `ResourceSpans` or `ResourceMetrics`, which begin alike; `write` adds the items
/// to the scope.
pub(super) fn write_envelope(
    message: &mut Message,
    resource: &Resource,
    write: impl FnOnce(&mut Message),
) {
    message.message(1, |within| {
        within.message(1, |inner| {
            let Resource { service, version, instance } = resource;
            let named = [
                ("service.name", service),
                ("service.version", version),
                ("service.instance.id", instance),
            ];
            for (key, text) in named {
                attribute(inner, 1, key, &Value::Text(text.clone()));
            }
        });
        within.message(2, |scoped| {
            scoped.message(1, |scope| {
                scope.string(1, "gatelet");
                scope.string(2, &resource.version);
            });
            write(scoped);
        });
        within.string(3, SCHEMA);
    });
}

/// Encodes a `KeyValue`.
pub(super) fn attribute(message: &mut Message, field: u32, key: &str, value: &Value) {
    message.message(field, |pair| {
        pair.string(1, key);
        pair.message(2, |any| match value {
            // The type of the value must be encoded even when the value is empty.
            Value::Text(text) if text.is_empty() => any.message(1, |_| ()),
            Value::Text(text) => any.string(1, text),
            Value::Flag(flag) => any.always_varint(2, u64::from(*flag)),
            Value::Number(number) => any.always_varint(3, number.cast_unsigned()),
        });
    });
}
