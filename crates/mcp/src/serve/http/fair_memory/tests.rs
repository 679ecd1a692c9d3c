use futures::FutureExt;

use super::*;

const MAX_WAIT: Duration = Duration::from_secs(5);

fn caller(name: &str) -> CallerKey {
    CallerKey::Subject(name.into())
}

/// Takes memory for a request, if there is room now.
fn take(memory: &FairMemory, name: &str, n_bytes: usize) -> Option<MemoryShare> {
    let mut share = memory.empty_share(caller(name));
    share.try_grow(n_bytes).then_some(share)
}

#[test]
fn a_caller_has_half_of_what_others_leave() {
    let memory = FairMemory::new(1000);
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
    let memory = FairMemory::new(1000);
    let mut whole = memory.empty_share(caller("ann"));
    whole.grow(700, MAX_WAIT).await.unwrap();
    whole.grow(5000, MAX_WAIT).await.unwrap();
    assert_eq!(memory.used(), 1000);
    assert!(take(&memory, "bob", 1).is_none());
    drop(whole);
    let _small = take(&memory, "bob", 1).unwrap();
    assert!(take(&memory, "ann", 700).is_none());
}

#[tokio::test(start_paused = true)]
async fn who_finds_no_room_waits_for_some_and_not_for_ever() {
    let memory = FairMemory::new(1000);
    let first = take(&memory, "ann", 500).unwrap();
    let mut next = memory.empty_share(caller("ann"));
    {
        let mut waiting = std::pin::pin!(next.grow(400, MAX_WAIT));
        assert_eq!(waiting.as_mut().now_or_never(), None);
        drop(first);
        waiting.await.unwrap();
    }
    assert_eq!(memory.used(), 400);
    let mut third = memory.empty_share(caller("ann"));
    assert_eq!(third.grow(400, MAX_WAIT).await, Err(NoRoom));
    drop((next, third));
    assert_eq!(memory.used(), 0);
}

#[test]
fn memory_is_held_as_long_as_any_part_of_the_request() {
    let memory = FairMemory::new(1000);
    let held = take(&memory, "ann", 500).unwrap().hold(Bytes::from_static(b"0123456789"));
    let piece = held.slice(2..4);
    drop(held);
    assert_eq!(memory.used(), 500);
    drop(piece);
    assert_eq!(memory.used(), 0);
}
