use tool::clock::Fake;
use tool::{Context, Json};

use super::*;
use crate::artifact::PartIndex;

fn owner(session: &str) -> Owner {
    Owner::from_context(&Context { session: session.into(), ..Context::anonymous() })
}

fn artifact(handle: &str, session: &str, bytes: usize) -> Artifact {
    Artifact {
        handle: handle.to_owned(),
        owner: owner(session),
        made: 0,
        upstream: "u".to_owned(),
        tool: "t".to_owned(),
        id: String::new(),
        key: "k".to_owned(),
        result: Json::encode(&"x".repeat(bytes - 2)),
        raw: None,
        chars: bytes,
        parts: PartIndex::default(),
    }
}

fn memory(clock: &Arc<Fake>) -> Memory {
    let config = Config { ttl: Duration::from_secs(60), owner_bytes: 100, total_bytes: 150 };
    Memory::new(config, Arc::clone(clock) as Arc<dyn Clock>)
}

async fn handles(memory: &Memory, session: &str) -> Vec<String> {
    memory.list(&owner(session)).await.iter().map(|artifact| artifact.handle.clone()).collect()
}

#[tokio::test]
async fn nobody_reads_what_belongs_to_another() {
    let memory = memory(&Arc::default());
    memory.put(artifact("h", "one", 10)).await.unwrap();
    assert!(memory.get(&owner("one"), "h").await.unwrap().is_some());
    assert!(memory.get(&owner("two"), "h").await.unwrap().is_none());
    assert!(memory.find_by_call(&owner("two"), "k").await.unwrap().is_none());
    assert!(handles(&memory, "two").await.is_empty());
}

#[tokio::test]
async fn an_artifact_lives_for_its_time() {
    let clock = Arc::new(Fake::default());
    let memory = memory(&clock);
    memory.put(artifact("h", "one", 10)).await.unwrap();
    clock.advance(Duration::from_secs(59));
    assert!(memory.get(&owner("one"), "h").await.unwrap().is_some());
    clock.advance(Duration::from_secs(1));
    assert!(memory.get(&owner("one"), "h").await.unwrap().is_none());
}

#[tokio::test]
async fn the_least_recently_used_goes_first() {
    let memory = memory(&Arc::default());
    memory.put(artifact("a", "one", 40)).await.unwrap();
    memory.put(artifact("b", "one", 40)).await.unwrap();
    memory.get(&owner("one"), "a").await.unwrap();
    memory.put(artifact("c", "one", 40)).await.unwrap();
    let mut left = handles(&memory, "one").await;
    left.sort();
    assert_eq!(left, ["a", "c"]);
    memory.put(artifact("d", "two", 90)).await.unwrap();
    assert_eq!(handles(&memory, "one").await, ["c"]);
}

#[tokio::test]
async fn a_detached_artifact_can_be_read_but_answers_no_call() {
    let memory = memory(&Arc::default());
    memory.put(artifact("a", "one", 40)).await.unwrap();
    assert!(memory.find_by_call(&owner("one"), "k").await.unwrap().is_some());
    memory.forget_call(&owner("one"), "a").await;
    assert!(memory.find_by_call(&owner("one"), "k").await.unwrap().is_none());
    assert!(memory.get(&owner("one"), "a").await.unwrap().is_some());
}

#[tokio::test]
async fn a_newer_answer_to_a_call_replaces_the_older_one_whichever_was_read_last() {
    let memory = memory(&Arc::default());
    memory.put(artifact("a", "one", 40)).await.unwrap();
    memory.put(artifact("b", "one", 40)).await.unwrap();
    memory.get(&owner("one"), "a").await.unwrap();
    assert_eq!(memory.find_by_call(&owner("one"), "k").await.unwrap().unwrap().handle, "b");
    memory.forget_call(&owner("one"), "b").await;
    assert!(memory.find_by_call(&owner("one"), "k").await.unwrap().is_none());
}

#[tokio::test]
async fn what_is_longer_than_everything_that_may_be_kept_is_not_and_displaces_nothing() {
    let memory = memory(&Arc::default());
    memory.put(artifact("a", "one", 40)).await.unwrap();
    let refused = memory.put(artifact("b", "one", 101)).await;
    assert_eq!(refused, Err(TooLarge { bytes: 101, limit: 100 }));
    assert_eq!(handles(&memory, "one").await, ["a"]);
}

#[tokio::test]
async fn what_is_kept_for_the_operator_counts_as_well() {
    let memory = memory(&Arc::default());
    let both = |handle: &str, bytes| {
        let one = artifact(handle, "one", bytes);
        Artifact { raw: Some(one.result.clone()), ..one }
    };
    assert_eq!(memory.put(both("a", 51)).await, Err(TooLarge { bytes: 102, limit: 100 }));
    memory.put(both("b", 30)).await.unwrap();
    memory.put(both("c", 30)).await.unwrap();
    assert_eq!(handles(&memory, "one").await, ["c"]);
}
