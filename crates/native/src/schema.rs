//! Derives JSON Schemas from Rust types, compiles schemas, and checks values against them.

use schemars::JsonSchema;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::transform::RecursiveTransform;
use serde::Serialize;
use serde_json::{Value, json};
use validator::{Dialect, Draft, ValidationError, Validator};

/// One violation: of a schema by a value, or of the rules for schemas by a schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// JSON pointer to the wrong part; empty for the whole value.
    pub pointer: String,
    pub message: String,
}

/// Derives the schema of a type that is deserialized from arguments (draft 2020-12).
pub fn input_schema<T: JsonSchema>() -> Value {
    schema_of::<T>(SchemaSettings::draft2020_12().for_deserialize())
}

/// Derives the schema of a type that is serialized as a result (draft 2020-12).
pub fn output_schema<T: JsonSchema>() -> Value {
    schema_of::<T>(SchemaSettings::draft2020_12().for_serialize())
}

/// Returns whether every value of this schema is an object.
pub fn describes_object(schema: &Value) -> bool {
    schema.get("type") == Some(&Value::from("object"))
}

/// Wraps the schema of a value in that of an object with the value as its member
/// `result`, because MCP demands that results are objects.
pub fn wrap_in_result(mut schema: Value) -> Value {
    let definitions = schema.as_object_mut().and_then(|schema| schema.remove("$defs"));
    let mut whole = json!({
        "type": "object", "properties": {"result": schema}, "required": ["result"],
    });
    if let Some(definitions) = definitions {
        whole["$defs"] = definitions;
    }
    whole
}

/// Checks a schema and compiles it. References to anything outside the schema are
/// refused, never fetched.
pub fn compile(schema: &Value) -> Result<Validator, Problem> {
    let problem = |error: ValidationError<'_>| Problem {
        pointer: error.instance_path().to_string(),
        message: truncate(&error.to_string(), MAX_QUOTED),
    };
    Validator::compile(schema, Dialect::Fixed(Draft::Draft202012)).map_err(problem)
}

/// Returns the first `limit` places where `value` does not fit the schema.
pub fn find_problems(validator: &Validator, value: &Value, limit: usize) -> Vec<Problem> {
    // The message leaves out the value, which may be long or a secret.
    let problem = |error: &ValidationError<'_>| Problem {
        pointer: truncate(error.instance_path().as_str(), MAX_QUOTED),
        message: truncate(&error.masked_with("it").to_string(), MAX_QUOTED),
    };
    validator.errors(value, limit).iter().map(problem).collect()
}

/// How many characters of a caller's text an error message quotes at most.
pub(crate) const MAX_QUOTED: usize = 200;

/// Cuts a text to its first `max_chars` characters, with `…` where some are missing.
pub(crate) fn truncate(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

fn schema_of<T: JsonSchema>(settings: SchemaSettings) -> Value {
    let settings = settings.with(|settings| settings.meta_schema = None);
    let settings = settings.with_transform(RecursiveTransform(drop_number_formats));
    let mut schema = SchemaGenerator::from(settings).into_root_schema_for::<T>();
    // The title is the name of the Rust type, which is of no use to a client.
    schema.remove("title");
    let mut schema = schema.to_value();
    add_properties(&mut schema);
    schema
}

/// Removes formats such as `int64`, `uint32` and `double`, which JSON Schema does not
/// define and some clients refuse.
fn drop_number_formats(schema: &mut schemars::Schema) {
    let prefixes = ["int", "uint", "double", "float"];
    let format = schema.get("format").and_then(Value::as_str);
    if format.is_some_and(|format| prefixes.iter().any(|prefix| format.starts_with(prefix))) {
        schema.remove("format");
    }
}

/// Adds empty `properties` to an object without members: several clients require them.
fn add_properties(schema: &mut Value) {
    if describes_object(schema) && schema.get("properties").is_none() {
        schema["properties"] = json!({});
    }
}
