use serde_json::{Value, json};

use super::*;

fn structured(value: &Value) -> Json {
    json!({"content": [{"type": "text", "text": "see the data"}], "structuredContent": value})
        .into()
}

fn text(text: &str) -> Json {
    json!({"content": [{"type": "text", "text": text}]}).into()
}

#[track_caller]
fn check(result: &Json, pick: Value, expected: &str) {
    let pick = Pick::parse(&pick.into()).unwrap();
    let picked = pick.run(result, 10_000, &StopFlag::never());
    assert_eq!(
        picked.map_err(|error| error.to_string()).map(|picked| picked.text).unwrap(),
        expected
    );
}

fn orders() -> Value {
    json!({"total": 3, "items": [
        {"id": 1, "name": "a", "owner": {"login": "x"}},
        {"id": 2, "name": "b", "owner": null},
        {"id": 3, "name": "c"},
    ]})
}

#[test]
fn a_program_runs_over_structured_content_then_json_text_then_text() {
    check(&structured(&orders()), json!(".total"), "3");
    check(&text(&orders().to_string()), json!(".items | length"), "3");
    check(&text("one\ntwo"), json!("split(\"\\n\") | length"), "2");
    let blocks = json!({"content": [
        {"type": "text", "text": "{\"id\":1}"}, {"type": "text", "text": "{\"id\":2}"},
    ]});
    check(&blocks.into(), json!("map(.id)"), "[1,2]");
}

#[test]
fn a_single_text_comes_as_it_is() {
    check(&structured(&json!({"content": "one\n\"two\""})), json!(".content"), "one\n\"two\"");
    check(&structured(&orders()), json!(".items[].name"), "\"a\"\n\"b\"\n\"c\"");
}

#[test]
fn what_models_write_by_themselves_is_understood() {
    let orders = structured(&orders());
    let expected =
        r#"[{"id":1,"owner.login":"x"},{"id":2,"owner.login":null},{"id":3,"owner.login":null}]"#;
    check(&orders, json!(["id", "owner.login"]), expected);
    check(&orders, json!({"fields": ["id"], "limit": 2}), r#"[{"id":1},{"id":2}]"#);
    check(&orders, json!({"count": true}), "3");
    check(&structured(&json!([1, 2])), json!({"count": true}), "2");
    check(&structured(&json!({"a": 1, "b": 2})), json!(["b"]), r#"{"b":2}"#);
}

#[test]
fn odd_field_names_are_names_and_never_programs() {
    let odd = json!({"a\"b": 1, "\\(1+1)": 2, "x y": 3});
    check(&structured(&odd), json!(["a\"b"]), r#"{"a\"b":1}"#);
    check(&structured(&odd), json!(["\\(1+1)"]), r#"{"\\(1+1)":2}"#);
    check(&structured(&odd), json!(["x y"]), r#"{"x y":3}"#);
}

#[test]
fn what_is_no_pick_is_refused_with_what_it_must_be() {
    for wrong in [
        json!(""),
        json!(7),
        json!({}),
        json!({"fields": "a"}),
        json!([]),
        json!([1]),
        json!({"where": "x"}),
        json!({"count": 1}),
        json!({"limit": -1}),
        json!(".items["),
    ] {
        assert!(Pick::parse(&wrong.clone().into()).is_err(), "{wrong}");
    }
}

#[test]
fn a_pick_has_a_bound_and_says_so() {
    let fields = |n: usize| {
        let names: Vec<String> = (0..n).map(|n| format!("a{n}.b")).collect();
        Pick::parse(&json!(names).into())
    };
    assert_eq!(fields(20).err(), None);
    // The program that they become has a bound of its own.
    assert!(fields(100).unwrap_err().contains("longer than 4000 bytes"));
    assert!(fields(101).unwrap_err().contains("1 to 100 names"));
    assert!(fields(50_000).unwrap_err().contains("shorter than 65536 bytes"));
    let program = format!("{}.", " ".repeat(70_000));
    assert!(Pick::parse(&json!(program).into()).unwrap_err().contains("shorter than"));
}

#[test]
fn a_program_that_fails_says_why_and_what_the_data_is() {
    let pick = Pick::parse(&json!(".items | keys | .x").into()).unwrap();
    let error = pick.run(&structured(&orders()), 100, &StopFlag::never()).unwrap_err();
    assert!(error.shape().unwrap().describe().contains("keys total, items"), "{error:?}");
}

#[test]
fn a_program_for_text_is_told_where_the_text_is_that_a_server_wraps() {
    let told = |data: &Value| {
        let pick = Pick::parse(&json!("split(\"\\n\") | length").into()).unwrap();
        let result = json!({"content": [{"type": "text", "text": data.to_string()}],
            "structuredContent": data});
        let error = pick.run(&result.into(), 100, &StopFlag::never()).unwrap_err();
        error.shape().unwrap().describe()
    };
    let wrapped = "JSON object whose only member is a text of 2 lines at `.content`: \
        begin with `.content | `";
    assert_eq!(told(&json!({"content": "one\ntwo"})), wrapped);
    // An odd key is a path that jq takes, too.
    assert!(told(&json!({"a b": "one"})).contains("at `.\"a b\"`"));
    assert_eq!(told(&json!({"content": 7})), "JSON object with keys content");
    assert_eq!(told(&json!({"content": "one", "n": 1})), "JSON object with keys content, n");
}

#[test]
fn a_name_that_no_program_has_is_told_before_anything_runs() {
    for program in ["nosuchfunction", ".items | map(nosuchfunction)", "$nosuchfunction"] {
        let error = Pick::parse(&json!(program).into()).unwrap_err();
        assert!(error.contains("nosuchfunction"), "{error}");
    }
}

#[test]
fn names_that_are_not_there_are_told_by_the_shape() {
    let pick = Pick::parse(&json!(".Items").into()).unwrap();
    let picked = pick.run(&structured(&orders()), 100, &StopFlag::never()).unwrap();
    assert!(picked.data_if_empty.unwrap().contains("keys total, items; 3 items at `.items`"));
}

#[test]
fn a_program_that_finds_nothing_is_told_what_it_was_run_over() {
    let told = |result: &Json, program: &str| {
        let pick = Pick::parse(&json!(program).into()).unwrap();
        pick.run(result, 100, &StopFlag::never()).unwrap().data_if_empty
    };
    let words = "Two monitors\n\"a\": `fine`";
    let found = told(&text(words), "[.. | objects]");
    assert_eq!(found.as_deref(), Some("text; it begins `Two monitors \"a\":  fine `"));
    assert_eq!(told(&structured(&orders()), "[.items[] | select(.id == 2)]"), None);
    let long = "é".repeat(5_000);
    assert!(told(&text(&long), "[]").unwrap().len() < 250);
}

#[test]
fn what_is_over_the_limit_or_endless_ends() {
    let run = |program: &str, stop: &StopFlag| {
        let pick = Pick::parse(&json!(program).into()).unwrap();
        pick.run(&structured(&orders()), 20, stop).unwrap_err()
    };
    assert!(matches!(run(".", &StopFlag::never()), PickError::TooLong { limit: 20, .. }));
    // The other bounds are those of views, which are tested there.
    let stopped = StopFlag::never();
    stopped.set();
    assert!(matches!(run("def f: f; f", &stopped), PickError::Program { .. }));
}

#[test]
fn an_image_has_nothing_to_pick_from() {
    let image = json!({"content": [{"type": "image", "data": "AA==", "mimeType": "image/png"}]});
    let pick = Pick::parse(&json!(".").into()).unwrap();
    assert_eq!(pick.run(&image.into(), 100, &StopFlag::never()), Err(PickError::NoData));
}

#[test]
fn a_program_that_fails_on_structured_content_is_tried_on_the_text_beside_it() {
    let file: Json = json!({"content": [{"type": "text", "text": "one\ntwo"}],
        "structuredContent": {"content": "one\ntwo"}})
    .into();
    check(&file, json!("split(\"\\n\") | length"), "2");
    check(&file, json!(".content | length"), "7");
    // Where both fail, the data that counts is told.
    let pick = Pick::parse(&json!(".content.x").into()).unwrap();
    let error = pick.run(&file, 10_000, &StopFlag::never()).unwrap_err();
    assert_eq!(error.shape().unwrap().keys, ["content"]);
}

#[test]
fn data_behind_a_few_words_is_data() {
    check(&text("Monitors: [{\"id\": 1}, {\"id\": 2}]"), json!("map(.id)"), "[1,2]");
    check(&text("see [1] and [2]"), json!("length"), "15");
}
