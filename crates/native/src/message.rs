//! A tool call and its result as strictly parsed JSON messages.
//!
//! Neither type can hold an inconsistent state: a call has a name and an arguments
//! object, a failure has an error and no data, a success has no error. The parsers
//! report what is wrong and never repair it.

use serde_json::{Map, Value, json};

use crate::ToolError;
use crate::error::Error;

/// A call: the name of a tool, and its arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    name: String,
    arguments: Map<String, Value>,
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolResult {
    Success {
        data: Map<String, Value>,
    },
    /// Nothing had to be done.
    NoChangeNeeded {
        explanation: Option<String>,
    },
    /// A part was done (`data`), and the rest failed (`error`).
    PartialSuccess {
        data: Map<String, Value>,
        error: ToolError,
    },
    Failure {
        error: ToolError,
    },
}

impl ToolCall {
    pub fn new(name: &str, arguments: Map<String, Value>) -> Result<ToolCall, Error> {
        if name.is_empty() {
            return Err(invalid("the name is empty"));
        }
        Ok(ToolCall { name: name.to_owned(), arguments })
    }

    /// Parses the JSON-RPC request `tools/call`, or the bare form with
    /// `tool_name` and `arguments`.
    pub fn parse(value: &Value) -> Result<ToolCall, Error> {
        let message = object(value, "a call")?;
        if !message.contains_key("jsonrpc") {
            refuse_other_members(message, &["tool_name", "arguments"])?;
            return ToolCall::from_members(message, "tool_name");
        }
        refuse_other_members(message, &["jsonrpc", "id", "method", "params"])?;
        if message["jsonrpc"] != "2.0" {
            return Err(invalid("`jsonrpc` must be \"2.0\""));
        }
        if message.get("method") != Some(&Value::from("tools/call")) {
            return Err(invalid("`method` must be \"tools/call\""));
        }
        if !message.get("id").is_some_and(|id| id.is_string() || id.is_number()) {
            return Err(invalid("`id` must be text or a number"));
        }
        ToolCall::from_members(
            object(message.get("params").unwrap_or(&Value::Null), "`params`")?,
            "name",
        )
    }

    fn from_members(members: &Map<String, Value>, name_key: &str) -> Result<ToolCall, Error> {
        let name = members.get(name_key).and_then(Value::as_str);
        let name = name.ok_or_else(|| invalid(&format!("`{name_key}` must be text")))?;
        let empty = Value::Object(Map::new());
        let arguments = object(members.get("arguments").unwrap_or(&empty), "`arguments`")?;
        ToolCall::new(name, arguments.clone())
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn arguments(&self) -> &Map<String, Value> {
        &self.arguments
    }

    /// The bare form, with `tool_name` and `arguments`.
    pub fn to_value(&self) -> Value {
        json!({"tool_name": self.name, "arguments": self.arguments})
    }

    /// The JSON-RPC request `tools/call` with this request id.
    pub fn to_request(&self, id: &Value) -> Value {
        let params = json!({"name": self.name, "arguments": self.arguments});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    }
}

impl ToolResult {
    /// Parses a result. A result that contradicts itself is refused.
    pub fn parse(value: &Value) -> Result<ToolResult, Error> {
        let members = object(value, "a result")?;
        let given = |key: &str| members.get(key).filter(|value| !value.is_null());
        let status = given("status").and_then(Value::as_str);
        let status = status.ok_or_else(|| invalid("`status` must be text"))?;
        let data = given("data").map(|data| object(data, "`data`").cloned()).transpose()?;
        let error = given("error").map(parse_tool_error).transpose()?;
        match (status, data, error) {
            ("success", data, None) => Ok(ToolResult::Success { data: data.unwrap_or_default() }),
            ("no_change_needed", None, None) => {
                let explanation = given("explanation").and_then(Value::as_str).map(str::to_owned);
                Ok(ToolResult::NoChangeNeeded { explanation })
            }
            ("partial_success", Some(data), Some(error)) => {
                Ok(ToolResult::PartialSuccess { data, error })
            }
            ("failure", None, Some(error)) => Ok(ToolResult::Failure { error }),
            ("failure", None, None) => {
                // The flat form, with the error's members beside the status.
                parse_tool_error(value).map(|error| ToolResult::Failure { error })
            }
            ("failure", Some(_), _) => Err(invalid("a failure has no `data`")),
            ("success" | "no_change_needed", _, Some(_)) => {
                Err(invalid(&format!("`{status}` has no `error`")))
            }
            ("no_change_needed", Some(_), _) => Err(invalid("`no_change_needed` has no `data`")),
            ("partial_success", _, _) => Err(invalid("`partial_success` needs `data` and `error`")),
            (other, _, _) => Err(invalid(&format!(
                "`status` is `{other}`, not one of `success`, `failure`, `partial_success`, \
                 `no_change_needed`"
            ))),
        }
    }

    pub fn status(&self) -> &'static str {
        match self {
            ToolResult::Success { .. } => "success",
            ToolResult::NoChangeNeeded { .. } => "no_change_needed",
            ToolResult::PartialSuccess { .. } => "partial_success",
            ToolResult::Failure { .. } => "failure",
        }
    }

    pub fn to_value(&self) -> Value {
        let mut value = json!({"status": self.status()});
        match self {
            ToolResult::Success { data } => value["data"] = json!(data),
            ToolResult::NoChangeNeeded { explanation: Some(text) } => {
                value["explanation"] = json!(text);
            }
            ToolResult::NoChangeNeeded { explanation: None } => {}
            ToolResult::PartialSuccess { data, error } => {
                value["data"] = json!(data);
                value["error"] = render_tool_error(error);
            }
            ToolResult::Failure { error } => value["error"] = render_tool_error(error),
        }
        value
    }
}

fn parse_tool_error(value: &Value) -> Result<ToolError, Error> {
    let members = object(value, "`error`")?;
    let text = |key: &str| members.get(key).and_then(Value::as_str).filter(|t| !t.is_empty());
    let error_type = text("error_type").ok_or_else(|| invalid("a failure needs `error_type`"))?;
    let message =
        text("error_message").ok_or_else(|| invalid("a failure needs `error_message`"))?;
    let error = ToolError::new(error_type, message);
    Ok(match members.get("error_details").filter(|details| !details.is_null()) {
        Some(details) => error.details(details.clone()),
        None => error,
    })
}

fn render_tool_error(error: &ToolError) -> Value {
    let (error_type, error_message, details) = error.clone().into_parts();
    let mut value = json!({"error_type": error_type, "error_message": error_message});
    if let Some(details) = details {
        value["error_details"] = details;
    }
    value
}

/// Returns the members of an object; `what` names the value in the error.
fn object<'a>(value: &'a Value, what: &str) -> Result<&'a Map<String, Value>, Error> {
    value.as_object().ok_or_else(|| invalid(&format!("{what} must be an object")))
}

fn refuse_other_members(members: &Map<String, Value>, allowed: &[&str]) -> Result<(), Error> {
    match members.keys().find(|key| !allowed.contains(&key.as_str())) {
        Some(key) => Err(invalid(&format!("`{key}` is not part of a call"))),
        None => Ok(()),
    }
}

fn invalid(reason: &str) -> Error {
    Error::Validation { reason: reason.to_owned() }
}
