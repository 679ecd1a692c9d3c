//! JSON Schemas of Rust types, and what a schema must be to be registered.

use schemars::JsonSchema;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::transform::RecursiveTransform;
use serde::Serialize;
use serde_json::{Value, json};
use validator::{Dialect, Draft, ValidationError, Validator};

/// One place where a value does not fit its schema, or a schema its dialect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// JSON pointer to what is wrong; empty for the whole.
    pub pointer: String,
    pub message: String,
}

/// The schema of a type that is read from arguments (draft 2020-12).
pub fn input_schema<T: JsonSchema>() -> Value {
    schema_of::<T>(SchemaSettings::draft2020_12().for_deserialize())
}

/// The schema of a type that is written as a result (draft 2020-12).
pub fn output_schema<T: JsonSchema>() -> Value {
    schema_of::<T>(SchemaSettings::draft2020_12().for_serialize())
}

/// Returns whether every value of this schema is an object.
pub fn describes_object(schema: &Value) -> bool {
    schema.get("type") == Some(&Value::from("object"))
}

/// Puts a schema that is no object under the member `result`, because MCP
/// demands an object.
pub fn wrapped(mut schema: Value) -> Value {
    let definitions = schema.as_object_mut().and_then(|schema| schema.remove("$defs"));
    let mut whole = json!({
        "type": "object", "properties": {"result": schema}, "required": ["result"],
    });
    if let Some(definitions) = definitions {
        whole["$defs"] = definitions;
    }
    whole
}

/// Checks a schema and makes it ready for use. References to anything outside
/// the schema are refused, never fetched.
pub fn compile(schema: &Value) -> Result<Validator, Problem> {
    let wrong = |error: ValidationError<'_>| Problem {
        pointer: error.instance_path().to_string(),
        message: cut(&error.to_string(), LONGEST),
    };
    Validator::compile(schema, Dialect::Is(Draft::Draft202012)).map_err(wrong)
}

/// Returns where `value` does not fit, at most `limit` places.
pub fn problems(validator: &Validator, value: &Value, limit: usize) -> Vec<Problem> {
    // The value itself may be long, or a secret; the pointer says which it is.
    let problem = |error: &ValidationError<'_>| Problem {
        pointer: cut(error.instance_path().as_str(), LONGEST),
        message: cut(&error.masked_with("it").to_string(), LONGEST),
    };
    validator.errors(value, limit).iter().map(problem).collect()
}

/// How many characters of a text by a stranger are repeated.
pub(crate) const LONGEST: usize = 200;

/// The beginning of a text.
pub(crate) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

fn schema_of<T: JsonSchema>(settings: SchemaSettings) -> Value {
    let settings = settings.with(|settings| settings.meta_schema = None);
    let settings = settings.with_transform(RecursiveTransform(drop_number_formats));
    let mut schema = SchemaGenerator::from(settings).into_root_schema_for::<T>();
    // The name of the Rust type tells a client nothing.
    schema.remove("title");
    let mut schema = schema.to_value();
    add_properties(&mut schema);
    schema
}

/// `int64`, `uint32`, `double`: not formats of JSON Schema, and some clients
/// refuse them.
fn drop_number_formats(schema: &mut schemars::Schema) {
    let of_numbers = ["int", "uint", "double", "float"];
    let format = schema.get("format").and_then(Value::as_str);
    if format.is_some_and(|format| of_numbers.iter().any(|prefix| format.starts_with(prefix))) {
        schema.remove("format");
    }
}

/// An object without members still says `properties`: several clients insist.
fn add_properties(schema: &mut Value) {
    if describes_object(schema) && schema.get("properties").is_none() {
        schema["properties"] = json!({});
    }
}
