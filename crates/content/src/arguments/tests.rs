use serde_json::json;

use super::documents;
use super::*;

#[track_caller]
fn check_search(arguments: &Value, expected: &str) {
    let limits = Limits::contract();
    let outcome = documents::search(arguments, &limits);
    assert_eq!(outcome.map_err(|invalid| invalid.0).err().as_deref(), Some(expected));
}

#[test]
fn all_rule_failures_are_reported_plain_arguments_first() {
    check_search(
        &json!({"with_tvs": [1], "published": "yes", "parent": 1.5}),
        "The parent must be an integer. The published field must be true or false. \
         The limit field is required. The with_tvs.0 must be a string.",
    );
}

#[test]
fn a_value_that_is_neither_integer_nor_large_enough_fails_twice() {
    check_search(
        &json!({"limit": 0.5}),
        "The limit must be an integer. The limit must be at least 1.",
    );
    check_search(
        &json!({"limit": false}),
        "The limit must be an integer. The limit must be at least 1.",
    );
}

#[test]
fn tool_messages_stop_at_the_first() {
    check_search(&json!({"limit": 101, "offset": 9000}), "limit must be between 1 and 100.");
    check_search(
        &json!({"limit": 1, "with_tvs": ["a b"], "order_by": "x"}),
        "Invalid with_tvs entry [a b].",
    );
}

#[test]
fn integers_are_read_loosely_but_exactly() {
    let read = |value| coerce::integer(&value);
    for (value, expected) in [
        (json!(3), Some(3)),
        (json!(3.0), Some(3)),
        (json!(" 3 "), Some(3)),
        (json!("+3"), Some(3)),
        (json!(true), Some(1)),
        (json!("03"), None),
        (json!("3.0"), None),
        (json!(1e30), None),
        (json!("99999999999999999999"), None),
        (json!(false), None),
        (json!([3]), None),
    ] {
        assert_eq!(read(value.clone()), expected, "{value}");
    }
}

#[test]
fn messages_never_repeat_a_megabyte() {
    let limits = Limits::contract();
    let huge = "x y".repeat(400_000);
    let outcome = documents::search(&json!({"limit": 1, "with_tvs": [huge]}), &limits);
    assert!(outcome.unwrap_err().0.len() < 500);
}
