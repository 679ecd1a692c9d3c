//! Maps requests and answers to OpenTelemetry's semantic conventions for MCP.
//!
//! Status of the conventions: development
//! (open-telemetry/semantic-conventions-genai, `docs/gen-ai/mcp.md`).

use tool::{Ask, Failure, Json, Reply};

/// The upper bounds of the buckets for durations, in seconds: those of the conventions,
/// and smaller ones for requests that gatelet answers by itself.
pub(crate) const BUCKETS: [f64; 18] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0,
    120.0, 300.0,
];

/// Returns the MCP method for the `meta_tool` of a record.
pub(crate) fn method(meta_tool: &str) -> &'static str {
    match meta_tool {
        "tool_execute" => "tools/call",
        "resource_read" => "resources/read",
        "prompt_get" => "prompts/get",
        "complete" => "completion/complete",
        "subscribe" => "resources/subscribe",
        "task" => "tasks",
        "help" => "help",
        _ => "unknown",
    }
}

/// What a request is about, if that has a name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Target {
    Tool(String),
    Prompt(String),
    /// The URI comes from callers, so it is an attribute of spans, but never in the name of
    /// a span or in a metric.
    Resource(String),
    None,
}

impl Target {
    pub(crate) fn from_ask(ask: &Ask) -> Target {
        match ask {
            Ask::Call(call) => Target::Tool(call.name.clone()),
            Ask::Prompt(prompt) => Target::Prompt(prompt.name.clone()),
            Ask::ReadResource(read) => Target::Resource(read.uri.clone()),
            Ask::Other { method, params } if method.starts_with("resources/") => {
                let uri = params.get("uri").and_then(Json::string_value);
                uri.map_or(Target::None, Target::Resource)
            }
            Ask::Complete(_) | Ask::Other { .. } => Target::None,
        }
    }
}

/// The methods that may appear in span names and metrics. Clients may send any method, so
/// all others count as one.
const METHODS: [&str; 20] = [
    "server/discover",
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "resources/directory/read",
    "prompts/list",
    "prompts/get",
    "groups/list",
    "completion/complete",
    "logging/setLevel",
    "tasks/get",
    "tasks/update",
    "tasks/cancel",
    "tasks/result",
    "skills/list",
    "skills/get",
];

/// Returns the method of a request, or `_OTHER` for an unknown one.
pub(crate) fn known_method(ask: &Ask) -> &'static str {
    let method = ask.method();
    METHODS.into_iter().find(|known| *known == method).unwrap_or("_OTHER")
}

/// The role of gatelet in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Side {
    /// gatelet answers a client.
    Server,
    /// gatelet sends the request to an upstream.
    Client,
}

/// The error of a request; all `None` when it succeeded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// `error.type`: only when the operation failed.
    pub(crate) error_type: Option<String>,
    /// `rpc.response.status_code`: only when the answer was a protocol error.
    pub(crate) status_code: Option<i64>,
    /// The message of a protocol error.
    pub(crate) message: Option<String>,
}

/// The `error.type` of a request whose caller hung up.
pub(crate) const CANCELLED: &str = "cancelled";

impl Outcome {
    pub(crate) fn from_reply(side: Side, reply: &Reply) -> Outcome {
        match reply {
            Reply::Result(result) if reports_error(result) => {
                Outcome { error_type: Some("tool_error".to_owned()), ..Outcome::default() }
            }
            Reply::Result(_) => Outcome::default(),
            Reply::Error(refusal) => Outcome {
                error_type: is_error(side, refusal.code).then(|| refusal.code.to_string()),
                status_code: Some(refusal.code),
                message: Some(refusal.message.clone()),
            },
        }
    }

    pub(crate) fn from_answer(side: Side, answer: &Result<Reply, Failure>) -> Outcome {
        let error = |error_type: &str| Outcome {
            error_type: Some(error_type.to_owned()),
            ..Outcome::default()
        };
        match answer {
            Ok(reply) => Outcome::from_reply(side, reply),
            Err(failure) => error(match failure {
                Failure::Timeout { .. } => "timeout",
                Failure::Unavailable { .. } => "unavailable",
                Failure::Lost { .. } => "connection_lost",
                Failure::Unauthorized { .. } => "unauthorized",
                Failure::Forbidden { .. } => "forbidden",
                Failure::RateLimited { .. } => "rate_limited",
                Failure::Unusable { .. } => "unusable_answer",
                Failure::Cancelled => CANCELLED,
                Failure::Unsupported { .. } => "unsupported",
            }),
        }
    }
}

/// Returns whether a code counts as a failure. For a client every error does; for a server
/// only errors of its own, not those of the caller.
fn is_error(side: Side, code: i64) -> bool {
    match side {
        Side::Client => true,
        Side::Server => code == -32603 || (-32099..=-32000).contains(&code),
    }
}

/// Returns whether a tool result has `isError`; it is parsed only if it mentions that.
fn reports_error(result: &Json) -> bool {
    result.mentions("\"isError\"") && result.member_as("isError").unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use tool::{Call, RpcError};

    use super::*;

    #[track_caller]
    fn check(side: Side, answer: &Result<Reply, Failure>, error: Option<&str>, code: Option<i64>) {
        let outcome = Outcome::from_answer(side, answer);
        assert_eq!((outcome.error_type.as_deref(), outcome.status_code), (error, code));
    }

    fn refused(code: i64) -> Result<Reply, Failure> {
        Ok(Reply::Error(RpcError::new(code, "no")))
    }

    #[test]
    fn a_server_has_failed_only_where_the_fault_is_its_own() {
        for (code, is_error) in [(-32602, false), (-32601, false), (-32603, true), (-32042, true)] {
            let text = code.to_string();
            check(Side::Server, &refused(code), is_error.then_some(text.as_str()), Some(code));
            check(Side::Client, &refused(code), Some(&text), Some(code));
        }
    }

    #[test]
    fn an_error_in_a_result_is_the_tools() {
        let result = |text: &str| Ok(Reply::Result(Json::parse(text.to_owned()).unwrap()));
        check(Side::Server, &result(r#"{"isError":true}"#), Some("tool_error"), None);
        check(Side::Client, &result(r#"{"isError":false}"#), None, None);
        check(Side::Client, &result(r#"{"content":["\"isError\""]}"#), None, None);
    }

    #[test]
    fn an_answer_that_never_came_has_a_word() {
        let after = std::time::Duration::from_secs(1);
        check(Side::Client, &Err(Failure::Timeout { after }), Some("timeout"), None);
        check(Side::Server, &Err(Failure::Cancelled), Some("cancelled"), None);
    }

    #[test]
    fn callers_cannot_make_up_methods() {
        let other = Ask::Other { method: "x".repeat(9), params: tool::Object::new() };
        assert_eq!(known_method(&other), "_OTHER");
        let call = Ask::Call(Call::new("read", Json::empty_object()));
        assert_eq!(
            (known_method(&call), Target::from_ask(&call)),
            ("tools/call", Target::Tool("read".into()))
        );
    }
}
