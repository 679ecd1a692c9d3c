use serde_json::json;

use super::*;
use crate::result_text::ResultText;

#[track_caller]
fn check(result: serde_json::Value, limit: usize, expected: Option<usize>) {
    let gated = decide(Reply::Result(result.into()), limit);
    assert_eq!(gated.excess().map(|over| over.chars), expected);
}

#[test]
fn characters_count_and_not_bytes() {
    check(text_result(&"語".repeat(400)), 500, None);
    check(text_result(&"語".repeat(501)), 500, Some(501));
    check(text_result(&"x".repeat(500)), 500, None);
}

#[test]
fn structured_content_that_repeats_the_text_counts_once() {
    let rows = json!({"rows": ["abc", "def"]});
    let text = rows.to_string();
    let both = json!({"content": [{"type": "text", "text": text}], "structuredContent": rows});
    check(both, 10, Some(text.len()));
    let other =
        json!({"content": [{"type": "text", "text": "two rows"}], "structuredContent": rows});
    check(other, 10, Some(8 + text.len()));
}

#[test]
fn a_text_wrapped_into_one_member_counts_once() {
    let both = json!({
        "content": [{"type": "text", "text": "0123456789abc"}],
        "structuredContent": {"content": "0123456789abc"},
    });
    check(both, 10, Some(13));
}

#[test]
fn binary_content_and_embedded_resources_count_as_they_travel() {
    let data = "A".repeat(64);
    check(
        json!({"content": [{"type": "image", "data": data, "mimeType": "image/png"}]}),
        10,
        Some(64),
    );
    let resource = json!({"uri": "a://b", "text": "0123456789abc"});
    check(json!({"content": [{"type": "resource", "resource": resource}]}), 10, Some(13));
}

#[test]
fn whatever_goes_out_beside_the_text_is_measured() {
    let pad = "A".repeat(50_000);
    for block in [
        json!({"type": "text", "text": "x", "_meta": {"k": pad}}),
        json!({"type": "text", "text": "x", "annotations": {"audience": ["user"], "k": pad}}),
        json!({"type": "text", "text": "x", "other": pad}),
        json!({"type": "image", "mimeType": pad, "data": "AAAA"}),
        json!({"type": "resource", "resource": {"uri": pad, "text": "x"}}),
        json!({"type": "resource", "resource": {"uri": "a://b", "text": "x", "blob": pad}}),
        json!({"type": "resource", "_meta": {"k": pad}, "resource": {"uri": "a://b", "blob": "x"}}),
        json!({"type": "resource_link", "uri": "x://a", "name": pad}),
        json!({"type": "text", "data": pad}),
        json!(pad),
        json!([pad]),
    ] {
        let gated = decide(Reply::Result(json!({"content": [block]}).into()), LIMIT);
        assert!(
            gated.excess().is_some_and(|over| 45_000 < over.chars),
            "{:.80}",
            block.to_string()
        );
    }
    let empty = vec![json!({"type": "text", "text": ""}); 100_000];
    assert!(decide(Reply::Result(json!({"content": empty}).into()), LIMIT).excess().is_some());
    // The usual words around a text are free.
    let usual = json!({"type": "text", "text": "x".repeat(100), "annotations": {"priority": 0.5}});
    check(json!({"content": vec![usual; 50]}), LIMIT, None);
}

#[test]
fn a_question_back_is_no_answer_yet() {
    let pad = "x".repeat(100);
    check(json!({"resultType": "input_required", "inputRequests": {"a": pad}}), 10, None);
}

#[test]
fn what_is_no_answer_yet_is_bounded_all_the_same() {
    let pad = "x".repeat(2 << 20);
    let long = json!({"resultType": "task", "taskId": "t", "statusMessage": pad});
    assert!(decide(Reply::Result(long.into()), 10).excess().is_some());
}

#[test]
fn an_answer_is_one_whatever_it_calls_itself() {
    let content = json!([{"type": "text", "text": "x".repeat(100)}]);
    for kind in ["whatever", "partial", "task", "input_required"] {
        check(json!({"resultType": kind, "content": content}), 10, Some(100));
    }
}

#[test]
fn errors_of_the_protocol_pass() {
    let error = Reply::Error(tool::RpcError::new(-32602, "x".repeat(100)));
    assert!(decide(error, 10).whole().is_some());
}

#[test]
fn a_suggestion_has_some_to_spare() {
    for chars in [11, 10_001, 48_000, 1_000_000] {
        assert!(chars as f64 * 1.02 <= suggested_limit(chars) as f64);
    }
    assert_eq!(suggested_limit(48_000), 50_000);
}

#[test]
fn no_caller_exceeds_the_ceiling() {
    let config = Config { ceiling: Some(20_000), ..Config::default() };
    assert_eq!(config.limit(Some(50_000)), 20_000);
    assert_eq!(config.limit(None), 10_000);
    assert_eq!(config.limit(Some(100)), 100);
}

#[track_caller]
fn check_shape(text: &str, count: &str, described: &str) {
    let shape = Shape::of_text(text);
    assert_eq!((shape.count().as_str(), shape.describe().as_str()), (count, described));
}

#[test]
fn a_shape_says_what_there_is() {
    check_shape(
        r#"{"orders":[{"id":1,"s":2},{"id":2}],"n":2}"#,
        "2 items in `.orders`",
        "JSON object with keys orders, n; 2 items at `.orders`, each with id, s",
    );
    check_shape("[1,2,3]", "3 items", "JSON array; 3 items at `.`");
    check_shape("a\nb", "2 lines", "text, 2 lines");
    check_shape(r#"{"a":1}"#, "1 keys", "JSON object with keys a");
}

fn text_result(text: &str) -> serde_json::Value {
    json!({"content": [{"type": "text", "text": text}]})
}

#[test]
fn a_hostile_answer_is_counted_without_being_built() {
    let deep = format!("{}1{}", "[".repeat(60), "]".repeat(60));
    assert_eq!(Shape::of_text(&deep).count(), "1 items");
    let odd = r#"{"a":{"b c":[1,1e400,{"x":[1,2,3,4]}]},"n":18446744073709551617}"#;
    let shape = Shape::of_text(odd);
    assert_eq!(shape.count(), r#"3 items in `."a"."b c"`"#.replace(".\"a\"", ".a"));
    assert_eq!(shape.keys, ["a", "n"]);
    let forged = r#"{"$serde_json::private::Number":"1","b":2}"#;
    assert_eq!(Shape::of_text(forged).kind, "text");
    assert_eq!(Shape::of_text("{\"cut\": [1, 2").kind, "text");
}

#[test]
fn large_structured_content_that_repeats_the_text_counts_about_once() {
    let rows: Vec<u32> = (0..300_000).collect();
    let value = json!({"rows": rows});
    let text = value.to_string();
    let both = json!({"content": [{"type": "text", "text": text}], "structuredContent": value});
    check(both, 10, Some(text.len()));
}

#[test]
fn a_shape_is_that_of_what_is_long() {
    let rows: Vec<u32> = (0..9000).collect();
    let result = json!({
        "content": [{"type": "text", "text": "9000 rows"}],
        "structuredContent": {"rows": rows},
    });
    let result = Reply::Result(result.into()).tool_result().unwrap();
    assert_eq!(
        Shape::of_result(&result, &ResultText::new(&result)).count(),
        "9,000 items in `.rows`"
    );
    let text = json!({"rows": [1, 2]}).to_string();
    let told = json!({"content": [{"type": "text", "text": text}], "structuredContent": {"n": 2}});
    let told = Reply::Result(told.into()).tool_result().unwrap();
    assert_eq!(Shape::of_result(&told, &ResultText::new(&told)).count(), "2 items in `.rows`");
}
