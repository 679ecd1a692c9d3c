use super::*;
use crate::models::{MODELS, is_sensitive};

fn contract() -> Value {
    serde_json::from_str(include_str!("../../tests/vectors/contract.json")).unwrap()
}

#[test]
fn the_tools_are_those_of_the_contract_in_its_order() {
    let names: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
    assert_eq!(json!(names), contract()["tools_list_page"]["order"]);
}

#[test]
fn every_schema_declares_exactly_the_arguments_of_the_contract() {
    let contract = contract();
    for tool in TOOLS {
        let schema = tool.json(&Limits::contract())["inputSchema"].clone();
        let mut declared: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
        let arguments = contract["tools"][tool.name]["args"].as_object().unwrap();
        let mut expected: Vec<&String> = arguments.keys().collect();
        declared.sort();
        expected.sort();
        assert_eq!(declared, expected, "{}", tool.name);
        for (name, rule) in arguments {
            let required = schema["required"].as_array().unwrap().contains(&json!(name));
            assert_eq!(required, rule["required"] == json!(true), "{}.{name}", tool.name);
        }
    }
}

#[test]
fn the_models_and_fields_are_the_corrected_ones() {
    let expected = &contract()["model_fields_fixed_2026_09"];
    let ours: serde_json::Map<String, Value> =
        MODELS.iter().map(|model| (model.name.to_owned(), json!(model.fields))).collect();
    assert_eq!(&Value::Object(ours), expected);
}

#[test]
fn no_model_lists_a_sensitive_field() {
    for model in MODELS {
        for field in model.fields {
            assert!(!is_sensitive(field), "{}.{field}", model.name);
        }
    }
}

/// Groups such as `(?i:` are newer than most validators.
#[test]
fn patterns_are_written_so_that_every_validator_reads_them() {
    fn patterns<'a>(schema: &'a Value, found: &mut Vec<&'a str>) {
        match schema {
            Value::Object(members) => {
                found.extend(members.get("pattern").and_then(Value::as_str));
                members.values().for_each(|member| patterns(member, found));
            }
            Value::Array(items) => items.iter().for_each(|item| patterns(item, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let tools: Vec<Value> = TOOLS.iter().map(|tool| tool.json(&Limits::contract())).collect();
    let mut found = Vec::new();
    tools.iter().for_each(|tool| patterns(tool, &mut found));
    assert!(found.contains(&"^([Aa][Ss][Cc]|[Dd][Ee][Ss][Cc])$"), "{found:?}");
    for pattern in found {
        assert!(!pattern.contains("(?"), "{pattern}");
    }
}
