use serde_json::json;

use super::*;
use super::{documents, records};
use crate::query::{Condition, Operand, TreeScope};

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
fn blank_text_is_not_an_argument_that_was_left_out() {
    let columns = "order_by must be one of: id, pagetitle, menuindex, createdon, pub_date.";
    for (arguments, said) in [
        (json!({"order_by": ""}), columns),
        (json!({"order_by_date": ""}), "Invalid order_by_date []."),
        (json!({"order_by": "id", "order_dir": " "}), "Invalid order_dir []."),
        (json!({"depth": ""}), "depth must be between 1 and 6."),
        (json!({"tv_order": [{"tv": "x", "dir": ""}]}), "Invalid tv sort direction []."),
    ] {
        let mut arguments = arguments;
        arguments["limit"] = json!(1);
        check_search(&arguments, said);
    }
    let read = |arguments| documents::search(&arguments, &Limits::contract()).unwrap();
    assert_eq!(read(json!({"limit": 1, "published": ""})).published, Some(false));
    let below = TreeScope::Below { parent: 0, depth: 6 };
    assert_eq!(read(json!({"limit": 1, "parent": ""})).scope, below);
}

#[track_caller]
fn check_tv_filter(filter: &Value, expected: &str) {
    check_search(&json!({"limit": 1, "tv_filters": [filter]}), expected);
}

#[test]
fn conditions_on_variables_are_judged_from_the_left() {
    let bad_both = json!({"tv": "x", "op": "bad", "value": 1, "cast": "X"});
    check_tv_filter(&bad_both, "Invalid tv operator [bad].");
    check_tv_filter(&json!({"tv": "x", "op": "in"}), "Invalid value for operator [in].");
    let nothing = json!({"tv": "x", "op": "not_in", "value": null});
    check_tv_filter(&nothing, "Invalid value for operator [not_in].");
    let empty = json!({"tv": "x", "op": "in", "value": []});
    check_tv_filter(&empty, "Operator [in] requires at least one value.");
    let spaced = json!({"limit": 1, "tv_filters": [{"tv": "x", "op": " = ", "value": 1}]});
    assert!(documents::search(&spaced, &Limits::contract()).is_ok());
    let up = json!({"limit": 1, "tv_order": [{"tv": "x", "dir": "up"}]});
    check_search(&up, "Invalid tv sort direction [up].");
}

#[test]
fn a_range_is_looked_at_before_the_page() {
    let arguments = json!({"id": 10, "from": 5, "to": 2, "limit": 101});
    for read in [documents::children_range, documents::siblings_range] {
        let said = read(&arguments, &Limits::contract()).unwrap_err().0;
        assert_eq!(said, "to must be greater than or equal to from.");
    }
}

fn list_where(condition: &Value) -> Result<Vec<crate::query::FieldFilter>, String> {
    let filters = json!({"where": [condition]});
    let arguments = json!({"model": "SiteTemplate", "limit": 1, "filters": filters});
    let read = records::list(&arguments, &Limits::contract());
    read.map(|query| query.filters).map_err(|invalid| invalid.0)
}

#[test]
fn conditions_on_fields_say_what_they_lack() {
    for (condition, said) in [
        (
            json!({"op": "=", "value": 1}),
            "The filters.where.0.field field is required when filters.where is present.",
        ),
        (
            json!({"field": "id"}),
            "The filters.where.0.op field is required when filters.where is present.",
        ),
        (
            json!({"field": "icon", "op": "like", "value": ""}),
            "Operator [like] requires non-empty value.",
        ),
        (
            json!({"field": "id", "op": "in", "value": [false]}),
            "Operator [in] requires at least one value.",
        ),
        (
            json!({"field": "id", "op": "in", "value": [null, ""]}),
            "Operator [in] requires at least one value.",
        ),
        (
            json!({"field": "id", "op": "in", "value": [[1]]}),
            "Operator [in] expects scalar values.",
        ),
    ] {
        assert_eq!(list_where(&condition), Err(said.to_owned()));
    }
}

#[test]
fn blanks_in_a_list_are_dropped() {
    let filters = list_where(&json!({"field": "id", "op": "in", "value": [null, 1, false]}));
    let one = vec![Operand::Text("1".to_owned())];
    assert_eq!(filters.unwrap()[0].condition, Condition::In(one));
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
