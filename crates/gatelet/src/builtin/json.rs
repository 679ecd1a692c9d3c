//! JSON, and its cousins YAML and TOML.

use gateway::view::{self, Limits, ViewError};
use native::{Fault, Text, tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A format for documents.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Format {
    Json,
    Yaml,
    Toml,
}

/// How JSON is laid out.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Style {
    Pretty,
    Compact,
}

/// Runs a jq filter over JSON and returns its outputs, one per line.
///
/// Most of jq works: paths, `select`, `map`, `group_by`, `reduce`, functions. Not `@csv`, `@tsv`,
/// `IN`, `INDEX`, `tostream`, `input` and `$ENV`.
#[tool(read_only, idempotent, category = "json", tags = ["jq", "filter", "select", "transform"])]
fn query(
    /// The JSON: a value, or text that holds one.
    json: Value,
    /// A jq filter such as `.items[] | select(.price > 10) | .name`.
    filter: String,
) -> Result<Text, Fault> {
    let input = match json {
        Value::String(text) if serde_json::from_str::<Value>(&text).is_ok() => text,
        Value::String(_)
        | Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::Array(_)
        | Value::Object(_) => json.to_string(),
    };
    let limits = Limits { chars: OUTPUT, jq_steps: STEPS, ..Limits::default() };
    match view::jq(input.as_bytes(), "application/json", &filter, &limits) {
        Ok(outputs) if outputs.count == 0 => Ok(Text(String::new())),
        Ok(outputs) if outputs.cut.is_none() => Ok(Text(outputs.text + "\n")),
        Ok(_) => {
            let message = format!("the filter has more than {OUTPUT} characters of output");
            Err(Fault::new("JqError", message))
        }
        Err(error @ ViewError::Steps) => Err(Fault::new("JqTooMuch", error.to_string())),
        Err(error) => Err(Fault::new("JqError", error.to_string())),
    }
}

/// How far a filter may go: some seconds and a few hundred megabytes at worst.
const STEPS: u64 = 5_000_000;

/// More output than this is not read by anybody.
const OUTPUT: usize = 4 << 20;

/// Checks JSON and lays it out, pretty or compact, with sorted keys when wanted.
#[tool(read_only, idempotent, category = "json", tags = ["validate", "pretty", "minify"])]
fn format(
    /// JSON text.
    text: String,
    #[default(Style::Pretty)] style: Style,
    /// Whether the keys of objects are sorted.
    #[default(false)]
    sort_keys: bool,
) -> Result<Text, Fault> {
    let mut value: Value = read(&text, Format::Json)?;
    if sort_keys {
        value.sort_all_objects();
    }
    let text = match style {
        Style::Pretty => serde_json::to_string_pretty(&value),
        Style::Compact => serde_json::to_string(&value),
    };
    text.map(Text).map_err(|error| Fault::new("InvalidJson", error.to_string()))
}

/// Converts a document between JSON, YAML and TOML.
#[tool(read_only, idempotent, category = "json")]
fn convert(text: String, from: Format, to: Format) -> Result<Text, Fault> {
    let value = read(&text, from)?;
    let fault = |error: String| Fault::new("CannotConvert", error);
    Ok(Text(match to {
        Format::Json => serde_json::to_string_pretty(&value).map_err(|e| fault(e.to_string()))?,
        Format::Yaml => {
            serde_saphyr::to_string(&Plain(&value)).map_err(|e| fault(e.to_string()))?
        }
        Format::Toml => toml::to_string(&Plain(&value)).map_err(|e| fault(e.to_string()))?,
    }))
}

fn read(text: &str, format: Format) -> Result<Value, Fault> {
    let wrong = |name: &str, error: String| {
        Fault::new("InvalidDocument", format!("the text is not {name}: {error}"))
    };
    match format {
        Format::Json => serde_json::from_str(text).map_err(|e| wrong("JSON", e.to_string())),
        Format::Yaml => serde_saphyr::from_str(text).map_err(|e| wrong("YAML", e.to_string())),
        Format::Toml => toml::from_str(text).map_err(|e| wrong("TOML", e.to_string())),
    }
}

/// A value for formats that do not know numbers of any size: what does not fit
/// their numbers is written as text, so that no digit is lost.
struct Plain<'v>(&'v Value);

impl Serialize for Plain<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Null => serializer.serialize_none(),
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(whole), _) => serializer.serialize_i64(whole),
                (None, Some(real)) if !number.is_u64() => serializer.serialize_f64(real),
                (None, Some(_) | None) => serializer.serialize_str(&number.to_string()),
            },
            Value::String(text) => serializer.serialize_str(text),
            Value::Array(items) => serializer.collect_seq(items.iter().map(Plain)),
            Value::Object(members) => {
                serializer.collect_map(members.iter().map(|(key, value)| (key, Plain(value))))
            }
        }
    }
}
