//! The built-in tools for JSON, YAML and TOML.

mod conversion;

use artifacts::view::{self, Budget, ViewError};
use native::{Context, Text, ToolError, tool};
use offload::StopFlag;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::bounded::{Bounded, MAX_OUTPUT_BYTES, too_long};
use conversion::Format;

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
async fn query(
    context: &Context,
    /// The JSON: a value, or text that holds one.
    json: Value,
    /// A jq filter such as `.items[] | select(.price > 10) | .name`.
    filter: String,
) -> Result<Text, ToolError> {
    let input = match json {
        Value::String(text) if serde_json::from_str::<Value>(&text).is_ok() => text,
        Value::String(_)
        | Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::Array(_)
        | Value::Object(_) => json.to_string(),
    };
    let limits = Budget { chars: MAX_OUTPUT_BYTES, jq_steps: STEPS, ..Budget::default() };
    let run = move |stop: &StopFlag| {
        view::jq(input.as_bytes(), "application/json", &filter, &limits, stop)
    };
    let outputs = offload::evaluate(context.caller.caller_key(), run).await;
    match outputs.unwrap_or(Err(ViewError::Stopped)) {
        Ok(outputs) if outputs.results_shown == 0 => Ok(Text(String::new())),
        Ok(outputs) if outputs.at_least.is_none() => Ok(Text(outputs.text + "\n")),
        Ok(_) => {
            let message =
                format!("the filter has more than {MAX_OUTPUT_BYTES} characters of output");
            Err(ToolError::new("JqError", message))
        }
        Err(error @ (ViewError::StepLimit | ViewError::Stopped)) => {
            Err(ToolError::new("JqTooMuch", error.to_string()))
        }
        Err(error) => Err(ToolError::new("JqError", error.to_string())),
    }
}

/// The step limit of a filter: some seconds and a few hundred megabytes at worst.
const STEPS: u64 = 5_000_000;

/// Checks JSON and lays it out, pretty or compact, with sorted keys when wanted.
#[tool(read_only, idempotent, category = "json", tags = ["validate", "pretty", "minify"])]
fn format(
    /// JSON text.
    text: String,
    #[default(Style::Pretty)] style: Style,
    /// Whether the keys of objects are sorted.
    #[default(false)]
    sort_keys: bool,
) -> Result<Text, ToolError> {
    let mut value: Value = serde_json::from_str(&text).map_err(|error| {
        ToolError::new("InvalidDocument", format!("the text is not JSON: {error}"))
    })?;
    if sort_keys {
        value.sort_all_objects();
    }
    let mut laid_out = Bounded::default();
    let written = match style {
        Style::Pretty => serde_json::to_writer_pretty(&mut laid_out, &value),
        Style::Compact => serde_json::to_writer(&mut laid_out, &value),
    };
    written.map(|()| Text(laid_out.into_text())).map_err(|_| too_long())
}

/// Converts a document between JSON, YAML and TOML.
///
/// Every value stays what it is; what the other format has no way to say is an error that names
/// it. Dates of TOML become text.
#[tool(read_only, idempotent, category = "json")]
fn convert(text: String, from: Format, to: Format) -> Result<Text, ToolError> {
    conversion::serialize(&conversion::parse(&text, from)?, to).map(Text)
}
