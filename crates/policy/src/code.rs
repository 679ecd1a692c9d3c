//! Error codes of calls, for models and for records: one [`Code`] per remedy.
//!
//! A failure is classified by its type. Only where an upstream sends nothing but
//! a text is the text searched, for whole words.

use serde::Serialize;
use tool::{Failure, RpcError};

/// An error code; codes differ where the remedy differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Code {
    PathInvalid,
    PathNotFound,
    ArgsInvalid,
    SchemaInvalid,
    UpstreamError,
    UpstreamTimeout,
    UpstreamUnavailable,
    AuthFailed,
    PermissionDenied,
    RateLimited,
    PolicyDenied,
    AuthRequired,
    HydrateFailed,
    ViewFailed,
    ResourceNotFound,
    PromptNotFound,
}

impl Code {
    pub const ALL: [Code; 16] = [
        Code::PathInvalid,
        Code::PathNotFound,
        Code::ArgsInvalid,
        Code::SchemaInvalid,
        Code::UpstreamError,
        Code::UpstreamTimeout,
        Code::UpstreamUnavailable,
        Code::AuthFailed,
        Code::PermissionDenied,
        Code::RateLimited,
        Code::PolicyDenied,
        Code::AuthRequired,
        Code::HydrateFailed,
        Code::ViewFailed,
        Code::ResourceNotFound,
        Code::PromptNotFound,
    ];

    /// The code as it is serialized: `ARGS_INVALID`.
    pub fn as_str(self) -> String {
        serde_json::to_value(self)
            .ok()
            .and_then(|v| v.as_str().map(str::to_owned))
            .unwrap_or_default()
    }

    /// Whether failures of this kind may go away by themselves.
    pub fn is_transient(self) -> bool {
        matches!(self, Code::UpstreamTimeout | Code::UpstreamUnavailable | Code::RateLimited)
    }
}

/// The code for an error that an upstream answered with.
pub fn classify_rpc_error(error: &RpcError) -> Code {
    match error.code {
        -32602 => Code::ArgsInvalid,
        -32002 => Code::ResourceNotFound,
        _ => classify_text(&error.message),
    }
}

/// The code for a failure.
pub fn classify(failure: &Failure) -> Code {
    match failure {
        Failure::Timeout { .. } => Code::UpstreamTimeout,
        Failure::Unavailable { .. } | Failure::Lost { .. } => Code::UpstreamUnavailable,
        Failure::RateLimited { .. } => Code::RateLimited,
        Failure::Unauthorized { .. } => Code::AuthFailed,
        Failure::Forbidden { .. } => Code::PermissionDenied,
        Failure::Unusable { .. } | Failure::Cancelled | Failure::Unsupported { .. } => {
            Code::UpstreamError
        }
    }
}

/// The code that the text of an upstream's error suggests.
pub fn classify_text(text: &str) -> Code {
    let folded = text.to_lowercase();
    let word = |wanted: &str| {
        folded.match_indices(wanted).any(|(at, _)| {
            let edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
            edge(folded[..at].chars().next_back())
                && edge(folded[at + wanted.len()..].chars().next())
        })
    };
    let any = |words: &[&str]| words.iter().any(|wanted| word(wanted));
    if any(&["unauthorized", "unauthorised", "401", "authentication", "invalid api key"]) {
        Code::AuthFailed
    } else if any(&["forbidden", "403", "permission denied", "access denied"]) {
        Code::PermissionDenied
    } else if any(&["rate limit", "rate limited", "429", "too many requests"]) {
        Code::RateLimited
    } else if any(&["timed out", "timeout"]) {
        Code::UpstreamTimeout
    } else {
        Code::UpstreamError
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};
    use tool::Sent;

    use super::*;

    fn vectors() -> Value {
        let text = include_str!("../tests/vectors/contextweaver_errors.json");
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn there_are_exactly_the_codes_of_the_taxonomy() {
        let codes: Vec<String> = Code::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(json!(codes), vectors()["codes"]);
    }

    #[test]
    fn failures_are_classified_as_in_the_vectors() {
        for case in vectors()["classify"].as_array().unwrap() {
            let text = case["text"].as_str().unwrap().to_owned();
            let code = match case["type"].as_str().unwrap() {
                "TimeoutError" => classify(&Failure::Timeout { after: Duration::from_secs(1) }),
                "Boom" => classify_text(&text),
                _ => classify(&Failure::Lost { reason: text.clone(), sent: Sent::Perhaps }),
            };
            // A port number is no status code; the reference thinks it is.
            let expected = match text.as_str() {
                "port 4290" => json!("UPSTREAM_ERROR"),
                _ => case["code"].clone(),
            };
            assert_eq!(json!(code), expected, "{case}");
        }
    }

    #[test]
    fn who_may_not_is_told_apart_from_who_is_not_known_whatever_the_words() {
        let reason = "forbidden, like all that is not logged in".to_owned();
        assert_eq!(classify(&Failure::Unauthorized { reason, sent: Sent::No }), Code::AuthFailed);
        let reason = "unauthorized, though logged in".to_owned();
        assert_eq!(
            classify(&Failure::Forbidden { reason, sent: Sent::No }),
            Code::PermissionDenied
        );
    }
}
