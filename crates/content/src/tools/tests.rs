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
