//! The audit log: one JSON line per request with caller, method and status, but without
//! arguments and results.

use std::time::Duration;

use ::http::StatusCode;
use serde_json::{Value, json};

use super::auth::Caller;
use super::incoming::{Incoming, Route};

/// The audit line of one request, filled in while the request is handled.
pub(super) struct Record {
    started: Duration,
    line: Value,
}

impl Record {
    pub(super) fn new(incoming: &Incoming, started: Duration) -> Record {
        let method = match incoming.route {
            Route::Dispatch { .. } => "dispatch",
            Route::Call { .. } | Route::Task { .. } | Route::Unknown => {
                incoming.envelope.method().unwrap_or("unknown")
            }
        };
        let method: String = method.chars().take(100).collect();
        let line = json!({
            "timestamp": timestamp(started),
            "message": "emcp.audit",
            "request_id": incoming.request_id,
            "trace_id": incoming.trace_id,
            "server_handle": incoming.route.server(),
            "method": method,
            "status": 0,
            "actor_user_id": null,
            "context": "api",
            "duration_ms": 0,
            "task_id": null,
            "rate_limit_identity": null,
        });
        Record { started, line }
    }

    pub(super) fn set_caller(&mut self, caller: &Caller, rate_key: &str) {
        self.line["actor_user_id"] = json!(caller.user);
        self.line["rate_limit_identity"] = json!(rate_key);
    }

    pub(super) fn set_task(&mut self, id: i64) {
        self.line["task_id"] = json!(id);
    }

    /// Adds status and duration, and renders the line.
    pub(super) fn line(&mut self, status: StatusCode, now: Duration) -> String {
        self.line["status"] = json!(status.as_u16());
        let spent = now.saturating_sub(self.started).as_millis();
        self.line["duration_ms"] = json!(u64::try_from(spent).unwrap_or(u64::MAX));
        self.line.to_string()
    }
}

/// Formats a time as RFC 3339.
pub(super) fn timestamp(time: Duration) -> String {
    let millis = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    jiff::Timestamp::from_millisecond(millis).map(|time| time.to_string()).unwrap_or_default()
}

/// Keys of members whose values are masked.
const SECRET_KEYS: [&str; 7] =
    ["authorization", "token", "jwt", "secret", "cookie", "password", "api_key"];

/// Returns a copy of the value with the values of secret keys masked, at any depth.
pub fn redact(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let member = |(key, value): (&String, &Value)| {
                let bare = key.trim().to_ascii_lowercase();
                let secret = SECRET_KEYS.contains(&bare.as_str());
                (key.clone(), if secret { json!("[REDACTED]") } else { redact(value) })
            };
            Value::Object(members.iter().map(member).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(redact).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}
