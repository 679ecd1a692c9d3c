//! Parses one line of an evaluation set, field by field, with errors that name the
//! field.

use serde_json::{Map, Value};

/// The members of a line.
pub(super) struct Fields(Map<String, Value>);

impl Fields {
    pub(super) fn parse(line: &str) -> Result<Fields, String> {
        match serde_json::from_str(line) {
            Ok(Value::Object(members)) => Ok(Fields(members)),
            Ok(other) => Err(format!("must be an object, not {}", kind(&other))),
            Err(error) => {
                // The error of the caller names the line of the file.
                let place = format!(" at line {} column {}", error.line(), error.column());
                let text = error.to_string();
                let text = text.strip_suffix(&place).unwrap_or(&text);
                Err(format!("not JSON: {text} at column {}", error.column()))
            }
        }
    }

    /// A value of any type; `None` for null.
    pub(super) fn value(&self, key: &str) -> Option<&Value> {
        self.0.get(key).filter(|value| !value.is_null())
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<String>, String> {
        self.value(key).map(|value| text(key, value)).transpose()
    }

    /// A required string.
    pub(super) fn required_text(&self, key: &str) -> Result<String, String> {
        self.text(key)?.ok_or_else(|| missing(key))
    }

    pub(super) fn texts(&self, key: &str) -> Result<Vec<String>, String> {
        let value = self.value(key).ok_or_else(|| missing(key))?;
        let Some(items) = value.as_array() else {
            return Err(format!("`{key}` must be a list of texts, not {}", kind(value)));
        };
        let item = |(at, item): (usize, &Value)| text(&format!("{key}[{at}]"), item);
        items.iter().enumerate().map(item).collect()
    }
}

fn text(key: &str, value: &Value) -> Result<String, String> {
    let text = value.as_str().map(str::to_owned);
    text.ok_or_else(|| format!("`{key}` must be text, not {}", kind(value)))
}

fn missing(key: &str) -> String {
    format!("`{key}` is missing")
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
