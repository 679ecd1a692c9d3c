//! `gatelet selection`: what a model may choose, and what it chose.

use serde_json::Value;

use crate::kit::{Home, shell, shell_with};

fn vectors() -> Value {
    let text = include_str!("../../../catalog/tests/vectors/contextweaver_selection.json");
    serde_json::from_str(text).unwrap()
}

fn ids(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect()
}

#[test]
fn choices_are_judged_as_in_the_vectors() {
    let (home, vectors) = (Home::new(), vectors());
    let candidates = ids(&vectors["candidates"]);
    let judged = |selected: &str, candidates: &[&str], strict: bool, expected: &Value| {
        let mut words = vec!["selection", "check"];
        words.extend(strict.then_some("--strict"));
        words.push(selected);
        words.extend(candidates);
        let ended = shell(&home, &words);
        assert_eq!(ended.json(), *expected, "{selected:?}");
        let rejected = expected["status"] == "rejected";
        assert_eq!(ended.code, i32::from(rejected), "{selected:?}");
    };
    for case in vectors["validate"].as_array().unwrap() {
        let Some(selected) = case["selected"].as_str() else { continue };
        judged(selected, &candidates, false, &case["out"]);
        judged(selected, &candidates, true, &case["out_no_repair"]);
    }
    let case = &vectors["ambiguous_case"];
    judged(case["selected"].as_str().unwrap(), &ids(&case["candidates"]), false, &case["out"]);
}

#[test]
fn schemas_are_those_of_the_vectors() {
    let (home, vectors) = (Home::new(), vectors());
    let candidates = ids(&vectors["candidates"]);
    for (provider, expected) in vectors["schemas"].as_object().unwrap() {
        let mut words =
            vec!["selection", "schema", "--provider", provider, "--property", "tool_id"];
        words.extend(&candidates);
        assert_eq!(shell(&home, &words).json(), *expected, "{provider}");
    }
    let words = ["selection", "schema", "--provider", "openai", "--name", "pick", "x", "x"];
    assert_eq!(shell(&home, &words).json(), vectors["custom"]);
}

#[test]
fn candidates_can_be_piped_in_and_none_are_an_error() {
    let home = Home::new();
    let cards = "demo:read_file#595f336e Read a file.\n  (path: string)\ndemo:b@1 B.\n";
    let made = shell_with(&home, &["selection", "schema"], cards).json();
    let listed = &made["properties"]["selection"]["enum"];
    assert_eq!(*listed, serde_json::json!(["demo:read_file#595f336e", "demo:b@1"]));
    let none = shell_with(&home, &["selection", "schema"], "");
    assert_eq!(none.code, 2, "{none:?}");
    assert!(none.err.contains("at least one candidate"), "{none:?}");
    let odd = shell(&home, &["selection", "schema", "--provider", "nobody", "x"]);
    assert_eq!(odd.code, 2, "{odd:?}");
    assert!(odd.err.contains("json_schema"), "{odd:?}");
}
