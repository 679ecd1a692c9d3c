use proptest::prelude::*;
use serde_json::Value;
use tool::{Json, Prompt, Resource, Tool};

use super::*;

fn vectors(name: &str) -> Value {
    let text = match name {
        "tool" => include_str!("../../tests/vectors/contextweaver_tool_id.json"),
        _ => include_str!("../../tests/vectors/contextweaver_primitive_id.json"),
    };
    serde_json::from_str(text).unwrap()
}

fn list<'a>(vectors: &'a Value, key: &str) -> &'a [Value] {
    let cases = vectors[key].as_array().unwrap();
    assert!(!cases.is_empty());
    cases
}

#[test]
fn tool_definitions_get_the_ids_of_the_vectors() {
    let vectors = vectors("tool");
    for case in list(&vectors, "mcp_tool_to_item") {
        let Ok(tool) = Tool::parse(case["tool"].clone().into()) else {
            assert!(case["expect"]["error"].is_string(), "{case}");
            continue;
        };
        let expect = &case["expect"];
        let strict = strict_tool(&tool.name, &tool);
        let missing_description =
            expect["message"].as_str().is_some_and(|m| m.contains("['description']"));
        match expect["tool_id"].as_str() {
            Some(id) => {
                assert_eq!(strict.as_ref().unwrap().to_string(), id);
                assert_eq!(tool_hash(&tool.name, &tool.input_schema), expect["hash8"]);
                assert_eq!(canonical_shape(&tool.input_schema), expect["canonical_shape"]);
            }
            // A description is optional in MCP, so its absence costs no tool.
            None if missing_description => assert!(strict.is_ok()),
            None => assert!(strict.is_err(), "{case}"),
        }
        // Nothing is dropped for its name.
        let derived = of_tool(&tool.name, &tool);
        assert_eq!(derived.because.is_some(), strict.is_err());
        assert_eq!(derived.id.to_string().parse::<PrimitiveId>().unwrap(), derived.id);
    }
}

#[test]
fn namespaces_and_names_come_from_the_separators() {
    for case in list(&vectors("tool"), "infer_namespace") {
        let name = case["name"].as_str().unwrap();
        assert_eq!(namespace_of(name), case["namespace"], "{name}");
        assert_eq!(short_name(name), case["derived_name"], "{name}");
    }
}

#[test]
fn ids_parse_and_print_as_inverses() {
    for case in list(&vectors("tool"), "parse_tool_id") {
        let text = case["input"].as_str().unwrap();
        let parsed = text.parse::<ToolId>();
        // The grammar knows no line feed; the reference lets one pass.
        if case["error"].is_string() || text.ends_with('\n') {
            assert!(parsed.is_err(), "{text:?}");
            continue;
        }
        let id = parsed.unwrap();
        assert_eq!(id.to_string(), case["roundtrip"]);
        assert_eq!(id.namespace(), case["parts"]["namespace"]);
        assert_eq!(id.name(), case["parts"]["name"]);
        assert_eq!(id.version(), case["parts"]["version"].as_str());
        assert_eq!(id.hash8(), case["parts"]["hash8"].as_str());
    }
}

#[test]
fn primitive_ids_parse_and_print_as_inverses() {
    for case in list(&vectors("primitive"), "parse_primitive_id") {
        let text = case["input"].as_str().unwrap();
        match text.parse::<PrimitiveId>() {
            Ok(id) => assert_eq!(id.to_string(), case["roundtrip"]),
            Err(error) => assert!(case["error"].is_string(), "{text}: {error}"),
        }
    }
}

#[test]
fn resources_and_prompts_get_the_ids_of_the_vectors() {
    let vectors = vectors("primitive");
    for case in list(&vectors, "resource_to_item") {
        let Ok(resource) = Resource::parse(case["resource"].clone().into()) else {
            assert!(case["expect"]["error"].is_string(), "{case}");
            continue;
        };
        let derived = of_resource(&resource);
        match case["expect"]["id"].as_str() {
            Some(id) => assert_eq!(derived.id.to_string(), id),
            None => assert!(derived.because.is_some(), "{case}"),
        }
    }
    for case in list(&vectors, "prompt_to_item") {
        let Ok(prompt) = Prompt::parse(case["prompt"].clone().into()) else {
            assert!(case["expect"]["error"].is_string(), "{case}");
            continue;
        };
        let derived = of_prompt(&prompt.name, &prompt);
        match case["expect"]["id"].as_str() {
            Some(id) => assert_eq!((derived.id.to_string(), derived.because), (id.into(), None)),
            None => assert!(derived.because.is_some(), "{case}"),
        }
    }
}

#[test]
fn resource_and_prompt_hashes_cover_the_domain_too() {
    for case in list(&vectors("primitive"), "hash8") {
        let hash = match case["kind"].as_str().unwrap() {
            "resource" => resource_hash(case["uri"].as_str().unwrap()),
            _ => {
                let arguments = case["args"].as_array().cloned().unwrap_or_default();
                let names: Vec<&str> = arguments.iter().map(|a| a.as_str().unwrap()).collect();
                prompt_hash(case["name"].as_str().unwrap(), &names)
            }
        };
        assert_eq!(hash, case["hash8"], "{case}");
    }
}

#[test]
fn equal_ids_are_numbered_in_order() {
    for case in list(&vectors("primitive"), "resolve_collisions") {
        let ids: Vec<&str> =
            case["ids"].as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect();
        for (at, id) in disambiguate(ids).iter().enumerate() {
            assert_eq!(*id, case["assigned"][at.to_string()]);
        }
    }
}

#[test]
fn the_examples_of_the_specification_hold() {
    #[track_caller]
    fn check(definition: &str, expected: &str) {
        let tool = Tool::parse(Json::parse(definition.to_owned()).unwrap()).unwrap();
        assert_eq!(of_tool(&tool.name, &tool).id.to_string(), expected);
    }
    check(
        r#"{"name":"github.create_issue","_meta":{"version":"1.4.0"}}"#,
        "github:create_issue@1.4.0",
    );
    check(
        r#"{"name":"slack_send_message","inputSchema":{"properties":{"channel":{},"text":{}},"required":["channel","text"]}}"#,
        "slack:slack_send_message#283a5dcf",
    );
    check(r#"{"name":"weather.get","_meta":{"version":"2024-05"}}"#, "weather:get@2024-05");
}

#[test]
fn an_upstreams_name_goes_before_its_tools_names_once() {
    assert_eq!(qualify("demo", "read_file"), "demo.read_file");
    assert_eq!(qualify("demo", "demo.read_file"), "demo.read_file");
    assert_eq!(qualify("", "read_file"), "read_file");
}

#[test]
fn odd_schemas_still_have_a_shape() {
    for schema in [r#"{"properties":[]}"#, r#"{"required":"x"}"#, "[]", "7", "null"] {
        let schema = Json::parse(schema.to_owned()).unwrap();
        assert_eq!(canonical_shape(&schema), r#"{"properties":[],"required":[]}"#);
    }
}

proptest! {
    #[test]
    fn every_name_gets_a_legal_id(name in ".{1,300}", version in proptest::option::of(".{0,40}")) {
        let raw = serde_json::json!({"name": name, "_meta": {"version": version}});
        let tool = Tool::parse(raw.into()).unwrap();
        let id = of_tool(&tool.name, &tool).id.to_string();
        prop_assert_eq!(id.parse::<PrimitiveId>().unwrap().to_string(), id);
        let prompt = Prompt::parse(serde_json::json!({"name": name}).into()).unwrap();
        let id = of_prompt(&prompt.name, &prompt).id.to_string();
        prop_assert_eq!(id.parse::<PrimitiveId>().unwrap().to_string(), id);
        let resource = Resource::parse(serde_json::json!({"uri": name}).into()).unwrap();
        let id = of_resource(&resource).id.to_string();
        prop_assert_eq!(id.parse::<PrimitiveId>().unwrap().to_string(), id);
    }
}
