//! Strict messages: what is consistent is read, what is not is refused.

#![expect(clippy::unwrap_used, reason = "tests")]

use native::{ToolCall, ToolResult};
use serde_json::{Value, json};

#[track_caller]
fn reads(result: &Value) {
    let read = ToolResult::parse(result).unwrap();
    assert_eq!(ToolResult::parse(&read.to_value()).unwrap(), read);
}

#[track_caller]
fn refuses(result: &Value, reason: &str) {
    let error = ToolResult::parse(result).unwrap_err();
    assert_eq!(error.to_string(), format!("not a tool call: {reason}"));
}

#[test]
fn consistent_results_survive_a_round_trip() {
    let error = json!({"error_type": "T", "error_message": "m", "error_details": {"a": 1}});
    reads(&json!({"status": "success", "data": {"a": 1}, "error": null}));
    reads(&json!({"status": "success"}));
    reads(&json!({"status": "no_change_needed", "explanation": "was so"}));
    reads(&json!({"status": "partial_success", "data": {}, "error": error}));
    reads(&json!({"status": "failure", "error": error}));
    reads(&json!({"status": "failure", "error_type": "T", "error_message": "m"}));
}

#[test]
fn contradictions_are_refused() {
    let error = json!({"error_type": "T", "error_message": "m"});
    refuses(&json!({"status": "failure"}), "a failure needs `error_type`");
    refuses(&json!({"status": "failure", "data": {}, "error": error}), "a failure has no `data`");
    refuses(&json!({"status": "success", "error": error}), "`success` has no `error`");
    refuses(&json!({"status": "partial_success"}), "`partial_success` needs `data` and `error`");
    refuses(&json!({"data": {}}), "`status` must be text");
    refuses(
        &json!({"status": "error"}),
        "`status` is `error`, not one of `success`, `failure`, `partial_success`, \
         `no_change_needed`",
    );
    refuses(&json!({"status": "success", "data": [1]}), "`data` must be an object");
}

#[test]
fn both_forms_of_a_call_say_the_same() {
    let bare = ToolCall::parse(&json!({"tool_name": "t", "arguments": {"a": 1}})).unwrap();
    let request = bare.to_request(&json!(7));
    assert_eq!(ToolCall::parse(&request).unwrap(), bare);
    assert_eq!(ToolCall::parse(&bare.to_value()).unwrap(), bare);
}

#[test]
fn a_call_that_is_none_says_why() {
    let cases = [
        (json!([]), "a call must be an object"),
        (json!({"arguments": {}}), "`tool_name` must be text"),
        (json!({"tool_name": ""}), "the name is empty"),
        (json!({"tool_name": "t", "arguments": 1}), "`arguments` must be an object"),
        (json!({"tool_name": "t", "extra": 1}), "`extra` is not part of a call"),
        (json!({"jsonrpc": "1.0"}), "`jsonrpc` must be \"2.0\""),
        (json!({"jsonrpc": "2.0", "method": "x"}), "`method` must be \"tools/call\""),
        (
            json!({"jsonrpc": "2.0", "method": "tools/call", "id": null}),
            "`id` must be text or a number",
        ),
    ];
    for (value, reason) in cases {
        let error = ToolCall::parse(&value).unwrap_err();
        assert_eq!(error.to_string(), format!("not a tool call: {reason}"));
    }
}

#[test]
fn the_guide_has_the_table_of_errors_as_it_is() {
    let guide = include_str!("../../../docs/guide/tools-in-rust.md");
    for row in native::error::TABLE {
        let wire = match row.channel {
            native::error::ErrorChannel::Rpc(code) => code.to_string(),
            native::error::ErrorChannel::Result => "`isError`".to_owned(),
        };
        let line = format!("| `{}` | {wire} | {} | {} |", row.error_type, row.when, row.remedy);
        assert!(guide.contains(&line), "{line}");
    }
}
