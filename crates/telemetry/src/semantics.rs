//! The words of OpenTelemetry's semantic conventions for MCP.
//!
//! Status of the conventions: development
//! (open-telemetry/semantic-conventions-genai, `docs/gen-ai/mcp.md`).

use tool::{Ask, Failure, Json, Reply};

/// The upper ends of the buckets of durations, in seconds: those of the
/// conventions, and below them some for what a gate answers by itself.
pub(crate) const BUCKETS: [f64; 18] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0,
    120.0, 300.0,
];

/// The method of MCP behind a record's word for what was done.
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

/// What a question is about, where that has a name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Target {
    Tool(String),
    Prompt(String),
    /// Named by callers: on a span, and never in its name or a metric.
    Resource(String),
    None,
}

impl Target {
    pub(crate) fn of(ask: &Ask) -> Target {
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

/// Methods that span names and metrics may have. Clients write whatever they like
/// there, so everything else is one.
const METHODS: [&str; 14] = [
    "tools/call",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "resources/directory/read",
    "prompts/get",
    "completion/complete",
    "logging/setLevel",
    "tasks/get",
    "tasks/update",
    "tasks/cancel",
    "tasks/result",
    "skills/list",
    "skills/get",
];

/// The method of a question, or `_OTHER` for one that is not known.
pub(crate) fn known_method(ask: &Ask) -> &'static str {
    let method = ask.method();
    METHODS.into_iter().find(|known| *known == method).unwrap_or("_OTHER")
}

/// Which side of a question is told about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Side {
    /// We answer.
    Server,
    /// We ask.
    Client,
}

/// How a question went, as far as it did not go well.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// `error.type`: only where the operation failed.
    pub(crate) error_type: Option<String>,
    /// `rpc.response.status_code`: only where the answer was an error.
    pub(crate) status_code: Option<i64>,
    /// What an error of the protocol said.
    pub(crate) message: Option<String>,
}

/// The word for a question that nobody waits for any more.
pub(crate) const CANCELLED: &str = "cancelled";

impl Outcome {
    pub(crate) fn of(side: Side, answer: &Result<Reply, Failure>) -> Outcome {
        let error = |error_type: &str| Outcome {
            error_type: Some(error_type.to_owned()),
            ..Outcome::default()
        };
        match answer {
            Ok(Reply::Result(result)) if reports_error(result) => error("tool_error"),
            Ok(Reply::Result(_)) => Outcome::default(),
            Ok(Reply::Error(refusal)) => Outcome {
                error_type: is_error(side, refusal.code).then(|| refusal.code.to_string()),
                status_code: Some(refusal.code),
                message: Some(refusal.message.clone()),
            },
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

/// For who asked, every error is one. Who answered has only failed where the
/// fault is its own, not that of who asked.
fn is_error(side: Side, code: i64) -> bool {
    match side {
        Side::Client => true,
        Side::Server => code == -32603 || (-32099..=-32000).contains(&code),
    }
}

/// Whether a result says that it is an error; read only if it can say so.
fn reports_error(result: &Json) -> bool {
    result.mentions("\"isError\"") && result.member_as("isError").unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use tool::{Call, RpcError};

    use super::*;

    #[track_caller]
    fn check(side: Side, answer: &Result<Reply, Failure>, error: Option<&str>, code: Option<i64>) {
        let outcome = Outcome::of(side, answer);
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
            (known_method(&call), Target::of(&call)),
            ("tools/call", Target::Tool("read".into()))
        );
    }
}
