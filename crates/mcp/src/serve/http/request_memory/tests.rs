use futures::FutureExt;
use proptest::prelude::*;

use super::*;

fn caller(name: &str) -> CallerKey {
    CallerKey::Subject(name.into())
}

/// Takes memory for a request, if there is room now.
fn take(memory: &RequestMemory, name: &str, n_bytes: usize) -> Option<RequestShare> {
    let mut share = memory.empty_share(caller(name));
    share.try_grow(n_bytes).then_some(share)
}

#[test]
fn a_caller_has_half_of_what_others_leave() {
    let memory = RequestMemory::new(1000);
    let ann: Vec<_> = std::iter::from_fn(|| take(&memory, "ann", 100)).collect();
    assert_eq!(ann.len(), 5);
    let bob: Vec<_> = std::iter::from_fn(|| take(&memory, "bob", 100)).collect();
    assert_eq!(bob.len(), 2);
    assert!(take(&memory, "cid", 100).is_some());
    drop(ann);
    assert!(take(&memory, "bob", 200).is_some());
    drop(bob);
    assert_eq!(memory.used(), 0);
    assert!(memory.0.used.lock().by_caller.is_empty());
}

#[tokio::test]
async fn one_request_may_have_everything_while_there_is_no_other() {
    let memory = RequestMemory::new(1000);
    let mut whole = memory.empty_share(caller("ann"));
    whole.grow(700).await.unwrap();
    whole.grow(5000).await.unwrap();
    assert_eq!(memory.used(), 1000);
    assert!(take(&memory, "bob", 1).is_none());
    drop(whole);
    let _small = take(&memory, "bob", 1).unwrap();
    assert!(take(&memory, "ann", 700).is_none());
}

#[tokio::test(start_paused = true)]
async fn who_finds_no_room_waits_for_some_and_not_for_ever() {
    let memory = RequestMemory::new(1000);
    let first = take(&memory, "ann", 500).unwrap();
    let mut next = memory.empty_share(caller("ann"));
    {
        let mut waiting = std::pin::pin!(next.grow(400));
        assert_eq!(waiting.as_mut().now_or_never(), None);
        drop(first);
        waiting.await.unwrap();
    }
    assert_eq!(memory.used(), 400);
    let mut third = memory.empty_share(caller("ann"));
    assert_eq!(third.grow(400).await, Err(NoRoom));
    drop((next, third));
    assert_eq!(memory.used(), 0);
}

#[test]
fn memory_is_held_as_long_as_any_part_of_the_request() {
    let memory = RequestMemory::new(1000);
    let held = take(&memory, "ann", 500).unwrap().hold(Bytes::from_static(b"0123456789"));
    let piece = held.slice(2..4);
    drop(held);
    assert_eq!(memory.used(), 500);
    drop(piece);
    assert_eq!(memory.used(), 0);
}

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
