use futures::FutureExt;
use futures::future::join_all;
use proptest::prelude::*;

use super::*;

fn reserve(memory: &MemoryBudget, n_bytes: usize) -> Result<Reservation, OutOfMemory> {
    let mut reserved = memory.reserve_for(n_bytes);
    reserved.try_grow(n_bytes).map(|()| reserved)
}

/// Reads a message of `n_bytes` in steps, as one that may come to `at_most`.
async fn read(memory: &MemoryBudget, n_bytes: usize, at_most: usize) -> Result<Bytes, OutOfMemory> {
    let mut reserved = memory.reserve_for(at_most);
    for so_far in (0..=n_bytes).step_by(10).chain([n_bytes]) {
        reserved.grow(so_far).await?;
        tokio::task::yield_now().await;
    }
    Ok(reserved.hold(vec![0; n_bytes]))
}

#[test]
fn what_is_held_is_given_back_with_its_last_slice() {
    let memory = MemoryBudget::new(1000);
    let held = reserve(&memory, 700).unwrap().hold(vec![0; 600]);
    assert_eq!(memory.used(), 600, "what is not needed is given back at once");
    assert_eq!(
        reserve(&memory, 500).unwrap_err(),
        OutOfMemory { wanted: 500, used: 600, limit: 1000 }
    );
    let piece = held.slice(10..20);
    drop(held);
    assert_eq!(memory.used(), 600);
    drop(piece);
    assert_eq!(memory.used(), 0);
}

#[tokio::test(start_paused = true)]
async fn messages_that_fit_one_by_one_all_come_however_they_are_interleaved() {
    let memory = MemoryBudget::new(500);
    let all = join_all((0..20).map(|_| read(&memory, 400, 640).map(|read| read.unwrap().len())));
    assert_eq!(all.await, [400; 20]);
    assert_eq!(memory.used(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_never_fits_is_refused_at_once() {
    let memory = MemoryBudget::new(500);
    let began = Instant::now();
    read(&memory, 600, 640).await.unwrap_err();
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_ever_for_what_others_keep() {
    let memory = MemoryBudget::new(500);
    let kept = reserve(&memory, 400).unwrap().hold(vec![0; 400]);
    read(&memory, 400, 640).await.unwrap_err();
    drop(kept);
    assert_eq!(memory.0.state.lock().waiting.len(), 0);
    read(&memory, 400, 640).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_message_that_stops_in_the_middle_is_given_up_when_others_wait() {
    let memory = MemoryBudget::new(500);
    let mut stopped = memory.reserve_for(640);
    stopped.try_grow(300).unwrap();
    tokio::time::advance(MAX_READ * 2).await;
    assert_eq!(stopped.overdue().now_or_never(), None, "nobody needs its memory");
    let give_up = async {
        stopped.overdue().await;
        drop(stopped);
    };
    let (read, ()) = tokio::join!(read(&memory, 400, 640), give_up);
    assert_eq!(read.unwrap().len(), 400);
}

#[tokio::test]
async fn new_messages_begin_in_the_order_in_which_they_came() {
    let memory = MemoryBudget::new(500);
    let first = reserve(&memory, 400).unwrap();
    let mut long = memory.reserve_for(300);
    assert_eq!(long.grow(300).now_or_never(), None);
    reserve(&memory, 50).expect_err("there is room for it, and it is not its turn");
    drop(first);
    reserve(&memory, 50).expect_err("it is still not its turn");
    assert_eq!(long.grow(300).now_or_never(), Some(Ok(())));
    reserve(&memory, 50).unwrap();
}

proptest! {
    #[test]
    fn the_bound_holds_and_whoever_began_can_always_finish(
        steps in prop::collection::vec((0_usize..4, 0_usize..400), 0..60),
    ) {
        let memory = MemoryBudget::new(1000);
        let new = || memory.reserve_for(400);
        let mut parts: Vec<Reservation> = (0..4).map(|_| new()).collect();
        for (at, n_bytes) in steps {
            match n_bytes.is_multiple_of(5) {
                true => parts[at] = new(),
                false => drop(parts[at].try_grow(n_bytes)),
            }
            let sum: usize = parts.iter().map(|part| part.n_bytes).sum();
            prop_assert_eq!(memory.used(), sum);
            prop_assert!(sum <= 1000);
        }
        // In whatever state they are: one after the other comes to its end.
        while !parts.is_empty() {
            let done = parts.iter_mut().position(|part| part.try_grow(400).is_ok());
            prop_assert!(done.is_some(), "they wait for each other");
            parts.remove(done.unwrap_or_default());
        }
        prop_assert_eq!(memory.used(), 0);
    }
}
