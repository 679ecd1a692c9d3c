use serde_json::json;
use tool::Object;

use super::*;

fn contract(schema: Value) -> Contract {
    Contract::parse(&Json::from(schema))
}

fn orders() -> Contract {
    contract(json!({
        "type": "object",
        "properties": {
            "note": {"type": "string"},
            "customer_id": {"type": "string", "description": "Who."},
            "limit": {"type": "integer", "default": 10},
            "deep": {"type": "object"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "strict": {"type": "boolean"},
            "$filter": {"type": ["string", "null"]},
        },
        "required": ["customer_id"],
    }))
}

#[track_caller]
fn check_fold(contract: &Contract, given: &str, expected: &str) {
    let object = Object::parse(&Json::parse(given.to_owned()).unwrap()).unwrap();
    let NormalizedArguments { rewritten, problems } = contract.normalize(&object);
    let outcome = match rewritten {
        None => "unchanged".to_owned(),
        Some(folded) if problems.is_empty() => folded.to_json().to_string(),
        Some(_) => problems.iter().map(|p| p.to_string()).collect::<Vec<_>>().join("; "),
    };
    assert_eq!(outcome, expected);
}

#[track_caller]
fn check(contract: &Contract, arguments: &Value, expected: &[&str]) {
    let problems: Vec<String> = contract.check(arguments).iter().map(|p| p.to_string()).collect();
    assert_eq!(problems, expected);
}

#[test]
fn every_spelling_of_a_key_reaches_the_schemas_own() {
    for key in ["customerID", "CUSTOMERID", "customer-id", "customerid"] {
        check_fold(&orders(), &format!(r#"{{"{key}":"C"}}"#), r#"{"customer_id":"C"}"#);
    }
    check_fold(&orders(), r#"{"filter":"x"}"#, r#"{"$filter":"x"}"#);
}

#[test]
fn what_fits_already_is_not_written_anew() {
    check_fold(&orders(), r#"{"customer_id":"C", "unknown_Key":1e400}"#, "unchanged");
}

#[test]
fn deeper_keys_are_data() {
    check_fold(&orders(), r#"{"deep":{"customerID":"5"}}"#, "unchanged");
}

#[test]
fn text_becomes_what_the_schema_asks_for() {
    check_fold(&orders(), r#"{"limit":"5"}"#, r#"{"limit":5}"#);
    let large = "123456789012345678901234567890";
    check_fold(&orders(), &format!(r#"{{"limit":"{large}"}}"#), &format!(r#"{{"limit":{large}}}"#));
    check_fold(&orders(), r#"{"strict":"true"}"#, r#"{"strict":true}"#);
    check_fold(&orders(), r#"{"strict":" False "}"#, r#"{"strict":false}"#);
    check_fold(&orders(), r#"{"tags":"[\"a\"]"}"#, r#"{"tags":["a"]}"#);
    check_fold(&orders(), r#"{"deep":"{\"a\": 1}"}"#, r#"{"deep":{"a": 1}}"#);
}

#[test]
fn nothing_is_converted_that_says_something_else() {
    check_fold(&orders(), r#"{"limit":"five"}"#, "unchanged");
    check_fold(&orders(), r#"{"limit":"5.5"}"#, "unchanged");
    check_fold(&orders(), r#"{"note":"5"}"#, "unchanged");
    check_fold(&orders(), r#"{"customer_id":5}"#, "unchanged");
}

#[test]
fn two_spellings_of_one_key_must_agree() {
    let same = r#"{"customerid":"C","customer_id":"C"}"#;
    check_fold(&orders(), same, r#"{"customer_id":"C"}"#);
    check_fold(
        &orders(),
        r#"{"customerid":"C","customer_id":"D"}"#,
        "`customer_id` was given twice under different spellings with different values",
    );
}

#[test]
fn keys_that_collide_in_the_schema_need_the_exact_spelling() {
    let twins = contract(json!({"properties": {"user_id": {}, "userId": {}, "x": {}}}));
    check_fold(&twins, r#"{"userId":1,"user_id":2}"#, "unchanged");
    check_fold(
        &twins,
        r#"{"userid":1}"#,
        "`userid` could be any of `user_id`, `userId`: use the exact spelling",
    );
    assert!(twins.parameters.iter().filter(|p| p.is_ambiguous()).count() == 2);
}

#[test]
fn every_problem_is_told_at_once() {
    check(
        &orders(),
        &json!({"limit": "five", "strict": 1}),
        &[
            "`customer_id` is required",
            "`limit` must be integer, not string",
            "`strict` must be boolean, not number",
        ],
    );
}

#[test]
fn a_place_deep_inside_is_written_as_people_write_it() {
    let deep = contract(json!({"properties": {"items": {"items": {"required": ["q"]}}}}));
    check(&deep, &json!({"items": [{"q": 1}, {}]}), &["`items[1].q` is required"]);
}

#[test]
fn a_damaged_schema_constrains_nothing_and_says_why() {
    for schema in [json!({"type": "strnig"}), json!({"$ref": "https://example.com/x.json"})] {
        let damaged = contract(schema);
        check(&damaged, &json!({"a": 1}), &[]);
        assert!(damaged.schema_error().is_some());
    }
    assert_eq!(orders().schema_error(), None);
}

#[test]
fn kinds_are_a_few_characters() {
    let kinds = contract(json!({
        "$defs": {"Loop": {"anyOf": [{"$ref": "#/$defs/Loop"}, {"type": "string"}]}, "N": {"type": "number"}},
        "properties": {
            "a": {"enum": ["x", "y"]},
            "b": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "c": {"type": "array", "items": {"$ref": "#/$defs/N"}},
            "d": {"$ref": "#/$defs/Loop"},
            "e": {"type": ["integer", "null"]},
            "f": true,
            "g": {"enum": [1, 2, 3, 4, 5, 6]},
            "h": {"type": "array", "items": {"type": ["string", "integer"]}},
        },
    }));
    let found: Vec<&str> = kinds.parameters.iter().map(|p| p.kind.as_str()).collect();
    let expected = [
        r#""x"|"y""#,
        "string",
        "number[]",
        "string",
        "integer",
        "any",
        "1|2|3|4|…",
        "(string|integer)[]",
    ];
    assert_eq!(found, expected);
}

#[test]
fn numbers_of_any_size_can_be_checked() {
    let number =
        contract(json!({"properties": {"n": {"type": "integer"}, "x": {"type": "number"}}}));
    let arguments = Json::parse(r#"{"n":18446744073709551617,"x":1e400}"#).unwrap();
    assert_eq!(number.check(&arguments.to_value().unwrap()), []);
}

#[test]
fn a_misspelt_argument_is_told_with_what_was_probably_meant() {
    let told = |given: Value| -> Vec<String> {
        orders().check(&given).iter().map(ToString::to_string).collect()
    };
    assert_eq!(
        told(json!({"custmer_id": "C", "colour": 1})),
        [
            "`customer_id` is required",
            "`custmer_id` is not an argument; did you mean `customer_id`?",
            "`colour` is not an argument"
        ]
    );
    // What the schema tolerates is no problem by itself.
    assert!(told(json!({"customer_id": "C", "colour": 1})).is_empty());
}

#[test]
fn a_dialect_that_nobody_knows_is_read_as_the_newest() {
    for dialect in ["2020-12", "https://spec.openapis.org/oas/3.1/dialect/base"] {
        let number =
            json!({"$schema": dialect, "type": "object", "properties": {"n": {"type": "integer"}}});
        check(&contract(number), &json!({"n": "x"}), &["`n` must be integer, not string"]);
    }
}

#[test]
fn a_choice_that_nothing_fits_names_its_forms() {
    let contract = contract(json!({
        "properties": {
            "id": {"anyOf": [{"type": "integer"}, {"enum": ["all", "none"]}]},
            "at": {"$ref": "#/$defs/at"},
        },
        "$defs": {"at": {"oneOf": [
            {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]},
            {"type": "object", "properties": {"name": {"type": "string"}, "n": {}}, "required": ["name"]},
        ]}},
    }));
    check(&contract, &json!({"id": "some"}), &[r#"`id` must be integer or "all"|"none""#]);
    check(&contract, &json!({"at": {"y": 1}}), &["`at` must be {x: number} or {name: string, n?}"]);
    let both = json!({"at": {"x": 1, "name": "a"}});
    check(&contract, &both, &["`at` must fit only one of {x: number} or {name: string, n?}"]);
}

#[test]
fn a_choice_in_a_choice_is_told_by_what_each_asks_for() {
    let contract = contract(json!({
        "properties": {"at": {"anyOf": [{"$ref": "#/$defs/place"}, {"type": "string"}]}},
        "$defs": {"place": {
            "type": "object",
            "properties": {"x": {"type": "number"}, "name": {"type": "string"}},
            "anyOf": [{"required": ["x"]}, {"required": ["name"]}],
        }},
    }));
    let forms = "{x: number, name?: string} or {x?: number, name: string} or string";
    check(&contract, &json!({"at": {}}), &[&format!("`at` must be {forms}")]);
}

#[test]
fn what_is_wrong_is_told_in_short_and_that_there_is_more() {
    let long = "k".repeat(100_000);
    let required: Vec<String> = (0..20).map(|n| format!("r{n}")).collect();
    let contract = contract(json!({"required": required, "additionalProperties": false}));
    let problems = contract.check(&json!({long: 1, "line\nbreak": 2}));
    let told: Vec<String> = problems.iter().map(|problem| problem.to_string()).collect();
    assert!(told.join("\n").len() < 2_000, "{told:?}");
    assert_eq!(told.last().unwrap(), "there is more; these come first");
    assert!(!told.iter().any(|line| line.contains('\n')), "{told:?}");
}

#[track_caller]
fn check_parameters(schema: Value, expected: &str) {
    assert_eq!(crate::signature::one_line("f", &contract(schema), 200), expected);
}

#[test]
fn arguments_are_known_wherever_at_its_root_a_schema_names_them() {
    let a = json!({"properties": {"a": {"type": "string"}}, "required": ["a"]});
    let b = json!({"properties": {"a": {"type": "integer"}, "b": {"type": "boolean"}}, "required": ["a"]});
    check_parameters(json!({"allOf": [a, {"properties": {"c": {}}}]}), "f(a: string, c?: any)");
    check_parameters(json!({"oneOf": [a, b]}), "f(a: string|integer, b?: boolean)");
    check_parameters(json!({"anyOf": [a, {"properties": {"c": {}}}]}), "f(a?: string, c?: any)");
    check_parameters(json!({"required": ["z"]}), "f(z: any)");
    let shared = json!({
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
    });
    check_parameters(shared, "f(a?: string, b?: string)");
    let itself = json!({"allOf": [{"$ref": "#"}], "properties": {"a": {"type": "string"}}});
    check_parameters(itself, "f(a?: string)");
}

#[track_caller]
fn check_unchecked(contract: &Contract, why: &str) {
    assert_eq!(too_costly(&contract.schema.to_value().unwrap()).as_deref(), Some(why));
    // It breaks no rule, so it may be called.
    assert_eq!(contract.schema_error(), None);
}

/// A schema that refers to itself from `n` places of each kind.
fn knot(n: usize, n_properties: usize) -> Value {
    let refs = vec![json!({"$ref": "#"}); n];
    let mut properties: Value = (0..n_properties)
        .map(|at| (format!("p{at}"), json!({"type": "integer"})))
        .collect::<serde_json::Map<_, _>>()
        .into();
    properties["a"] = json!({"type": "string"});
    json!({"properties": properties, "allOf": refs, "anyOf": refs, "oneOf": refs})
}

#[test]
fn a_schema_that_refers_to_itself_everywhere_is_read_once_and_constrains_nothing() {
    let knot = contract(knot(16, 150));
    assert_eq!(knot.parameters.len(), 151);
    check(&knot, &json!({"a": 1}), &[]);
    check_unchecked(&knot, "it refers to itself without end");
}

/// Every part is the next one twice: 2 to the power of `n` in the end.
fn doubled(n: usize, leaf: &Value, twice: impl Fn(Value) -> Value) -> Value {
    let part = |at: usize| json!({"$ref": format!("#/$defs/d{at}")});
    let mut definitions: serde_json::Map<String, Value> =
        (0..n).map(|at| (format!("d{at}"), twice(part(at + 1)))).collect();
    definitions.insert(format!("d{n}"), leaf.clone());
    json!({"$defs": definitions, "$ref": "#/$defs/d0"})
}

#[test]
fn a_schema_that_doubles_at_every_step_is_not_tried() {
    let all =
        contract(doubled(40, &json!({"type": "string"}), |next| json!({"allOf": [next, next]})));
    check(&all, &json!({}), &[]);
    check_unchecked(&all, "it has too many alternatives");
    // A few steps are many honest schemas.
    let few =
        contract(doubled(3, &json!({"type": "string"}), |next| json!({"anyOf": [next, next]})));
    assert_eq!(few.schema_error(), None);
    assert!(!few.check(&json!({})).is_empty());
    // Members that nobody gave cost nothing.
    let members = |next: Value| json!({"properties": {"a": next, "b": next}});
    let deep = contract(doubled(40, &json!({"type": "string"}), members));
    assert_eq!(deep.schema_error(), None);
    check(&deep, &json!({"a": {"b": 1}}), &[]);
}

#[test]
fn a_chain_of_references_without_end_is_not_followed() {
    let chain = contract(doubled(5_000, &json!({}), |next| json!({"properties": {"a": next}})));
    check(&chain, &json!({"a": 1}), &[]);
    check_unchecked(&chain, "it is nested too deep");
}

#[test]
fn a_value_that_would_keep_a_recursive_schema_busy_is_left_to_the_upstream() {
    let below = json!({"properties": {"a": {"$ref": "#"}}});
    let tree = contract(json!({"oneOf": [{"type": "string"}, below, below]}));
    let nested = |n: usize| (0..n).fold(json!(1), |value, _| json!({"a": value}));
    assert_eq!(tree.schema_error(), None);
    assert!(!tree.check(&nested(3)).is_empty());
    check(&tree, &nested(60), &[]);
}

#[test]
fn a_recursive_schema_checks_however_much_it_is_given() {
    let tree = contract(json!({
        "type": "object",
        "properties": {"name": {"type": "string"}, "below": {"type": "array", "items": {"$ref": "#"}}},
    }));
    let leaf = json!({"name": "x", "below": []});
    let mut below = vec![json!({"below": vec![leaf; 100]}); 200];
    check(&tree, &json!({"below": below}), &[]);
    below.push(json!({"name": 1}));
    check(&tree, &json!({"below": below}), &["`below[200].name` must be string, not number"]);
}

#[test]
fn a_reference_may_be_written_with_percent_signs() {
    let schema = json!({
        "$defs": {"Page<T>": {"type": "string"}},
        "properties": {"a": {"$ref": "#/$defs/Page%3CT%3E"}},
    });
    check(&contract(schema), &json!({"a": 1}), &["`a` must be string, not number"]);
}
