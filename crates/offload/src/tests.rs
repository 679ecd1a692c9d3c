#![expect(clippy::disallowed_methods, reason = "a test supervises what it starts")]

use std::sync::mpsc;

use super::*;

/// Works until it is told to stop.
fn until_stopped(stop: &StopFlag) {
    while !stop.is_set() {
        std::thread::yield_now();
    }
}

#[tokio::test]
async fn the_runtime_serves_others_while_work_is_done() {
    let (answer, answered) = mpsc::channel();
    let work = run(move |_| answered.recv().unwrap());
    // On the one thread of this runtime: it runs although the work waits for it.
    let other = async { answer.send(7).unwrap() };
    let (done, ()) = tokio::join!(work, other);
    assert_eq!(done, Ok(7));
}

#[tokio::test]
async fn work_that_nobody_waits_for_is_told_to_stop() {
    let (began, begun) = mpsc::channel();
    let (ended, end) = mpsc::channel();
    let work = tokio::spawn(run(move |stop| {
        began.send(()).unwrap();
        until_stopped(stop);
        ended.send(()).unwrap();
    }));
    tokio::task::spawn_blocking(move || begun.recv().unwrap()).await.unwrap();
    work.abort();
    assert!(work.await.unwrap_err().is_cancelled());
    tokio::task::spawn_blocking(move || end.recv().unwrap()).await.unwrap();
}

#[tokio::test]
async fn work_past_its_deadline_is_told_to_stop_and_its_turn_comes_back() {
    for _ in 0..2 * COMPUTATIONS.available_permits() {
        let late = run_within(Duration::from_millis(1), until_stopped).await;
        assert_eq!(late, Err(TooSlow));
    }
    assert_eq!(run(|_| 1).await, Ok(1));
}

#[tokio::test]
async fn programs_of_one_caller_leave_turns_to_others_and_to_everything_else() {
    let greedy: Vec<_> = (0..20).map(|_| tokio::spawn(evaluate("greedy", until_stopped))).collect();
    tokio::task::yield_now().await;
    assert_eq!(evaluate("modest", |_| 1).await, Ok(1));
    assert_eq!(run(|_| 2).await, Ok(2));
    greedy.iter().for_each(tokio::task::JoinHandle::abort);
    assert_eq!(evaluate("greedy", |_| 3).await, Ok(3), "its turns came back");
}

#[tokio::test]
async fn more_programs_of_a_caller_than_may_wait_are_refused() {
    let greedy: Vec<_> =
        (0..2 * MAX_WAITING).map(|_| tokio::spawn(evaluate("hoarder", until_stopped))).collect();
    // Not all of them have their turn at once.
    for _ in 0..2 * MAX_WAITING {
        tokio::task::yield_now().await;
    }
    assert_eq!(evaluate("hoarder", |_| 1).await, Err(TooSlow));
    greedy.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test]
async fn a_panic_is_the_callers() {
    let broken = tokio::spawn(run(|_| panic!("broken"))).await;
    assert!(broken.unwrap_err().is_panic());
    assert_eq!(run(|_| 1).await, Ok(1));
}
