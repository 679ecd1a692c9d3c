//! The errors of calls and of registrations, and how each reaches the client.
//!
//! [`TABLE`] lists every condition with its error type, its form on the wire and its
//! remedy. The docs repeat it, and a test compares them.

use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};
use tool::{Failure, Json, Reply, RpcError, Sent};

use crate::schema::{self, Problem};

/// The error of a tool that failed: the body of an `isError` result.
///
/// `?` converts every [`std::error::Error`] to a tool error, with the name of its type as
/// the `error_type`. Make one by hand to choose that name, or to add details.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolError {
    error_type: String,
    error_message: String,
    error_details: Option<Value>,
}

/// Why a call has no result. One variant per condition.
#[derive(Clone, Debug, PartialEq)]
pub enum Error {
    /// No answer came from where the tool runs.
    Transport(Failure),
    ToolNotFound {
        name: String,
        /// Names of tools that may have been meant.
        similar: Vec<String>,
    },
    /// The arguments do not fit the tool's schema.
    Schema {
        tool: String,
        problems: Vec<Problem>,
    },
    /// The message is not a well-formed call or result.
    Validation {
        reason: String,
    },
    /// The result does not fit the output schema that the tool declares.
    Serialization {
        tool: String,
        reason: String,
    },
    Timeout {
        tool: String,
        after: Duration,
    },
    Registration(RegistrationError),
    /// The tool panicked. The message of the panic goes to the log only.
    Panic {
        tool: String,
    },
    /// The tool itself reported an error.
    Failed(ToolError),
}

/// Why a tool was not registered. One variant per remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegistrationError {
    #[error("`{tool}` has no input schema, and a tool without one cannot be registered")]
    NoSchema { tool: String },
    #[error("the {which} schema of `{tool}` is invalid at `{}`: {}", problem.pointer, problem.message)]
    InvalidSchema { tool: String, which: SchemaKind, problem: Problem },
    #[error("the {which} schema of `{tool}` must have `\"type\": \"object\"` at its root")]
    NotAnObject { tool: String, which: SchemaKind },
    #[error("`{tool}` is registered already, and its {differs} differs")]
    Changed { tool: String, differs: String },
    #[error("`{tool}` of {module} is registered already by {first}")]
    NameTaken { tool: String, module: String, first: String },
    #[error("`{tool}` is not a tool name: 1 to 128 of `A-Z a-z 0-9 _ - . /`")]
    InvalidName { tool: String },
    #[error("`{tool}` needs `State<{state}>`, which the registry does not have")]
    MissingState { tool: String, state: String },
    #[error("`{tool}` has nothing to run")]
    NothingToRun { tool: String },
}

/// One of a tool's two schemas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaKind {
    Input,
    Output,
}

/// How a condition reaches the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorChannel {
    /// A JSON-RPC error with this code.
    Rpc(i64),
    /// A result with `isError` and the tool error as its body.
    Result,
}

/// One row of the table of errors.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub error_type: &'static str,
    pub channel: ErrorChannel,
    /// The condition under which this error is reported.
    pub when: &'static str,
    /// What to do about it, told to the caller.
    pub remedy: &'static str,
}

/// Every condition of [`Error`] but `Failed`, as documented.
pub const TABLE: &[Row] = &[
    Row {
        error_type: "TransportError",
        channel: ErrorChannel::Rpc(-32000),
        when: "the place where the tool runs cannot be reached, or broke off",
        remedy: "check that the server runs and how it is reached; try again later",
    },
    Row {
        error_type: "ToolNotFoundError",
        channel: ErrorChannel::Rpc(-32602),
        when: "no tool has the name that was called",
        remedy: "list the tools and check the name for typing mistakes",
    },
    Row {
        error_type: "SchemaError",
        channel: ErrorChannel::Result,
        when: "the arguments do not fit the tool's input schema",
        remedy: "correct the arguments by the tool's schema and call again",
    },
    Row {
        error_type: "ValidationError",
        channel: ErrorChannel::Rpc(-32602),
        when: "the message is not a tool call (no name, arguments that are no object)",
        remedy: "send `name` as text and `arguments` as an object",
    },
    Row {
        error_type: "SerializationError",
        channel: ErrorChannel::Result,
        when: "the tool ran, but its result is not what it declares",
        remedy: "tell the author of the tool; the call may have had its effect",
    },
    Row {
        error_type: "TimeoutError",
        channel: ErrorChannel::Result,
        when: "the tool took longer than it may (30 s unless it says otherwise)",
        remedy: "ask for less, or raise the tool's timeout; the call may still have its effect",
    },
    Row {
        error_type: "RegistrationError",
        channel: ErrorChannel::Rpc(-32010),
        when: "a tool was refused when it was registered (only at start, in the report)",
        remedy: "correct the tool; the report says what is wrong",
    },
    Row {
        error_type: "PanicError",
        channel: ErrorChannel::Result,
        when: "the tool broke off because of a bug of its own",
        remedy: "tell the author of the tool; the log has the message",
    },
];

impl ToolError {
    /// An error with a message of at most about 2000 characters. A longer one usually
    /// quotes its input, so its middle is left out.
    pub fn new(error_type: impl Into<String>, message: impl Into<String>) -> ToolError {
        ToolError {
            error_type: error_type.into(),
            error_message: elide_middle(message.into()),
            error_details: None,
        }
    }

    /// Adds details in a form that a program can use.
    #[must_use]
    pub fn details(mut self, details: Value) -> ToolError {
        self.error_details = Some(details);
        self
    }

    pub fn error_type(&self) -> &str {
        &self.error_type
    }

    pub fn message(&self) -> &str {
        &self.error_message
    }

    /// The JSON body: `status`, `error_type`, `error_message` and, if any, `error_details`.
    pub fn body(&self) -> Value {
        let mut body = json!({
            "status": "failure",
            "error_type": self.error_type,
            "error_message": self.error_message,
        });
        if let Some(details) = &self.error_details {
            body["error_details"] = details.clone();
        }
        body
    }

    /// Returns type, message and details.
    pub(crate) fn into_parts(self) -> (String, String, Option<Value>) {
        (self.error_type, self.error_message, self.error_details)
    }

    fn into_reply(self) -> Reply {
        let body = self.body();
        let text = body.to_string();
        let content = json!([{"type": "text", "text": text}]);
        Reply::Result(json!({"content": content, "isError": true}).into())
    }
}

impl<E: std::error::Error> From<E> for ToolError {
    fn from(error: E) -> ToolError {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            message = format!("{message}: {cause}");
            source = cause.source();
        }
        ToolError::new(type_name::<E>(), message)
    }
}

/// How many characters of a long message are kept, of its beginning and of its end.
const HEAD_CHARS: usize = 1_500;
const TAIL_CHARS: usize = 500;

/// Replaces the middle of a long message by `…`.
fn elide_middle(message: String) -> String {
    let Some((head, _)) = message.char_indices().nth(HEAD_CHARS) else { return message };
    let Some((tail, _)) = message.char_indices().nth_back(TAIL_CHARS - 1) else { return message };
    if tail <= head {
        return message;
    }
    format!("{} … {}", &message[..head], &message[tail..])
}

/// Returns the name of an error's type; a type called `Error` is prefixed with its
/// module, so `io::Error` gives `IoError`.
fn type_name<E>() -> String {
    let path = std::any::type_name::<E>();
    let plain = path.split('<').next().unwrap_or(path);
    let mut segments = plain.rsplit("::");
    let name = segments.next().unwrap_or(plain);
    // The path of `std::io::Error` is `std::io::error::Error`.
    match segments.find(|&module| module != "error") {
        Some(module) if name == "Error" => {
            let mut letters = module.chars();
            let first = letters.next().map(|letter| letter.to_ascii_uppercase());
            first.into_iter().chain(letters).chain("Error".chars()).collect()
        }
        Some(_) | None => name.to_owned(),
    }
}

impl Error {
    /// Returns the row of [`TABLE`] for this error; `None` for an error that the tool
    /// itself reported.
    pub fn row(&self) -> Option<&'static Row> {
        let error_type = match self {
            Error::Transport(_) => "TransportError",
            Error::ToolNotFound { .. } => "ToolNotFoundError",
            Error::Schema { .. } => "SchemaError",
            Error::Validation { .. } => "ValidationError",
            Error::Serialization { .. } => "SerializationError",
            Error::Timeout { .. } => "TimeoutError",
            Error::Registration(_) => "RegistrationError",
            Error::Panic { .. } => "PanicError",
            Error::Failed(_) => return None,
        };
        TABLE.iter().find(|row| row.error_type == error_type)
    }

    /// Converts the error to a tool error, with the remedy among its details.
    pub fn to_tool_error(&self) -> ToolError {
        let Some(row) = self.row() else {
            return match self {
                Error::Failed(error) => error.clone(),
                Error::Transport(_)
                | Error::ToolNotFound { .. }
                | Error::Schema { .. }
                | Error::Validation { .. }
                | Error::Serialization { .. }
                | Error::Timeout { .. }
                | Error::Registration(_)
                | Error::Panic { .. } => ToolError::new("InternalError", self.to_string()),
            };
        };
        let mut details = self.details();
        details["remedy"] = Value::from(row.remedy);
        ToolError::new(row.error_type, self.to_string()).details(details)
    }

    /// Renders the error as the reply for its channel; a transport error stays a failure.
    pub fn into_reply(self) -> Result<Reply, Failure> {
        let channel = self.row().map_or(ErrorChannel::Result, |row| row.channel);
        match (self, channel) {
            (Error::Transport(failure), _) => Err(failure),
            (error, ErrorChannel::Result) => Ok(error.to_tool_error().into_reply()),
            (error, ErrorChannel::Rpc(code)) => {
                let error = error.to_tool_error();
                let data = Json::encode(&error.body());
                Ok(Reply::Error(RpcError::with_data(code, error.error_message, &data)))
            }
        }
    }

    fn details(&self) -> Value {
        match self {
            Error::ToolNotFound { name, similar } => {
                json!({"tool": schema::truncate(name, schema::MAX_QUOTED), "similar": similar})
            }
            Error::Schema { tool, problems } => json!({"tool": tool, "problems": problems}),
            Error::Timeout { tool, after } => {
                json!({"tool": tool, "after_ms": u64::try_from(after.as_millis()).unwrap_or(u64::MAX)})
            }
            Error::Serialization { tool, .. } | Error::Panic { tool } => json!({"tool": tool}),
            Error::Transport(failure) => json!({"may_have_run": failure.sent() == Sent::Perhaps}),
            Error::Validation { .. } | Error::Registration(_) | Error::Failed(_) => json!({}),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Transport(failure) => write!(f, "{failure}"),
            Error::ToolNotFound { name, similar } => {
                write!(f, "no tool is called `{name}`")?;
                match similar.first() {
                    Some(first) => write!(f, "; did you mean `{first}`?"),
                    None => Ok(()),
                }
            }
            Error::Schema { tool, problems } => {
                write!(f, "arguments for `{tool}` do not fit its schema")?;
                problems.iter().try_for_each(|problem| {
                    let place = if problem.pointer.is_empty() { "/" } else { &problem.pointer };
                    write!(f, "; at `{place}`: {}", problem.message)
                })
            }
            Error::Validation { reason } => write!(f, "not a tool call: {reason}"),
            Error::Serialization { tool, reason } => {
                write!(f, "the result of `{tool}` is not what it declares: {reason}")
            }
            Error::Timeout { tool, after } => write!(f, "`{tool}` did not finish within {after:?}"),
            Error::Registration(error) => write!(f, "{error}"),
            Error::Panic { tool } => write!(f, "`{tool}` broke off because of a bug of its own"),
            Error::Failed(error) => write!(f, "{}: {}", error.error_type, error.error_message),
        }
    }
}

impl std::error::Error for Error {}

impl From<RegistrationError> for Error {
    fn from(error: RegistrationError) -> Error {
        Error::Registration(error)
    }
}

impl fmt::Display for SchemaKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SchemaKind::Input => "input",
            SchemaKind::Output => "output",
        })
    }
}
