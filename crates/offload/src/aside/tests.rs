#![expect(clippy::disallowed_methods, reason = "a test supervises what it starts")]

use std::sync::mpsc;
use std::thread::ThreadId;
use std::time::Duration;

use super::*;

fn here() -> ThreadId {
    std::thread::current().id()
}

#[tokio::test]
async fn the_runtime_serves_others_while_a_future_is_polled() {
    let (answer, answered) = mpsc::channel();
    let heavy = aside("ann", async move { answered.recv().unwrap() });
    // On the one thread of this runtime: it runs although the poll waits for it.
    let other = async { answer.send(7).unwrap() };
    assert_eq!(tokio::join!(heavy, other), (7, ()));
}

#[tokio::test]
async fn every_poll_is_elsewhere_and_what_it_waits_for_wakes_it() {
    let serving = here();
    let (ask, asked) = tokio::sync::oneshot::channel();
    let heavy = aside("ann", async move {
        let before = here();
        let word: &str = asked.await.unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
        let spawned = tokio::spawn(async { here() }).await.unwrap();
        (before, word, here(), spawned)
    });
    let (_, (before, word, after, spawned)) =
        tokio::join!(async { ask.send("yes").unwrap() }, heavy);
    assert_eq!(word, "yes");
    assert_ne!(before, serving);
    assert_ne!(after, serving);
    assert_eq!(spawned, serving, "what it starts stays with the runtime");
}

#[tokio::test]
async fn a_future_that_wakes_itself_while_it_is_polled_is_polled_again() {
    let mut n_polls = 0;
    let restless = std::future::poll_fn(move |task| {
        n_polls += 1;
        task.waker().wake_by_ref();
        if n_polls < 100 { Poll::Pending } else { Poll::Ready(n_polls) }
    });
    assert_eq!(aside("ann", restless).await, 100);
}

#[tokio::test]
async fn polls_of_one_caller_leave_turns_to_others() {
    let (release, released) = mpsc::channel::<()>();
    let released = Arc::new(Mutex::new(released));
    let greedy = |_| {
        let released = Arc::clone(&released);
        tokio::spawn(aside("greedy", async move {
            released.lock().recv().ok();
        }))
    };
    let greedy: Vec<_> = (0..20).map(greedy).collect();
    tokio::task::yield_now().await;
    assert_eq!(aside("modest", async { 1 }).await, 1);
    drop(release);
    for done in greedy {
        done.await.unwrap();
    }
}

#[tokio::test]
async fn what_nobody_waits_for_is_dropped() {
    let (held, dropped) = mpsc::channel::<()>();
    let waiting = aside("ann", async move {
        std::future::pending::<()>().await;
        drop(held);
    });
    assert!(tokio::time::timeout(Duration::from_millis(20), waiting).await.is_err());
    let ended = tokio::task::spawn_blocking(move || dropped.recv().is_err()).await.unwrap();
    assert!(ended);
}

#[tokio::test]
async fn a_panic_is_the_callers() {
    let broken = tokio::spawn(aside("ann", async { panic!("broken") })).await;
    assert!(broken.unwrap_err().is_panic());
    assert_eq!(aside("ann", async { 1 }).await, 1);
}

#[tokio::test]
async fn one_within_another_needs_no_turn_of_its_own() {
    let nested = |n: usize| {
        let inner = aside("ann", async move {
            tokio::time::sleep(Duration::from_millis(1)).await;
            n
        });
        let middle = aside("ann", inner);
        tokio::spawn(aside("ann", middle))
    };
    let all = futures::future::join_all((0..50).map(nested));
    let done = tokio::time::timeout(Duration::from_secs(20), all).await.expect("nobody waits");
    assert_eq!(done.into_iter().map(Result::unwrap).sum::<usize>(), 49 * 50 / 2);
}

#[tokio::test]
#[expect(clippy::async_yields_async, reason = "what is inside is awaited later, outside")]
async fn one_that_began_within_another_goes_on_without_it() {
    let (wake, woken) = tokio::sync::oneshot::channel::<()>();
    let mut inner = Box::pin(aside("ann", async move {
        woken.await.unwrap();
        here()
    }));
    let outer = aside("ann", async move {
        let polled = std::future::poll_fn(|task| Poll::Ready(inner.as_mut().poll(task))).await;
        assert!(polled.is_pending());
        inner
    });
    let inner = outer.await;
    let (thread, ()) = tokio::join!(inner, async { wake.send(()).unwrap() });
    assert_ne!(thread, here());
}
