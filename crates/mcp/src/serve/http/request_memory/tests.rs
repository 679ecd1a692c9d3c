use proptest::prelude::*;

use super::*;

#[test]
fn values_are_counted_and_not_what_is_in_strings() {
    assert_eq!(count_values(br#"{"a":[1,2,{"b":null}]}"#), 8);
    assert_eq!(count_values(br#""a,b,c,\",{[:\\""#), 1);
    assert_eq!(count_values(br#"["\"#), 2);
    assert_eq!(count_values(b""), 1);
}

proptest! {
    #[test]
    fn no_value_escapes_the_count(value in any::<i32>().prop_map(serde_json::Value::from).prop_recursive(
        4, 64, 8,
        |inner| prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(serde_json::Value::from),
            prop::collection::btree_map(".*", inner, 0..8)
                .prop_map(serde_json::Value::from_iter),
        ],
    )) {
        fn count(value: &serde_json::Value) -> usize {
            match value {
                serde_json::Value::Array(items) => 1 + items.iter().map(count).sum::<usize>(),
                serde_json::Value::Object(members) => 1 + members.values().map(count).sum::<usize>(),
                serde_json::Value::Null
                | serde_json::Value::Bool(_)
                | serde_json::Value::Number(_)
                | serde_json::Value::String(_) => 1,
            }
        }
        prop_assert!(count(&value) <= count_values(value.to_string().as_bytes()));
    }
}
