use futures::FutureExt;
use tool::{Client, Reply};

use super::*;
use crate::serve::channel::Route;

fn key(subject: &str, name: &str) -> CallKey {
    CallKey {
        subject: subject.into(),
        method: "tools/call".into(),
        name: name.into(),
        arguments: arguments("{}"),
    }
}

fn arguments(text: &str) -> Option<Json> {
    Some(Json::parse(text.to_owned()).unwrap())
}

fn entry() -> ParkedCall {
    let client = Arc::new(Client::named("c", "2026-07-28"));
    let call = std::future::pending::<Reply>().boxed();
    ParkedCall {
        call,
        channel: ClientChannel::new(
            Route::Stateless { client, peer: None, can_park: true },
            None,
            None,
        ),
    }
}

fn park(calls: usize) -> Arc<ParkedCalls> {
    Arc::new(ParkedCalls::new(Limits { calls, time: Duration::from_secs(60) }, 0))
}

#[tokio::test(start_paused = true)]
async fn a_state_is_good_once_for_its_caller_and_its_call() {
    let park = park(4);
    let state = park.park(&key("ann", "t"), entry());
    assert_eq!(ParkedCalls::owner(&state), StateOwner::Ours);
    assert_eq!(park.resume(&state, &key("bob", "t")).err(), Some(ResumeError::Forged));
    assert_eq!(park.resume(&state, &key("ann", "u")).err(), Some(ResumeError::Forged));
    let other = CallKey { arguments: arguments(r#"{"function":"u"}"#), ..key("ann", "t") };
    assert_eq!(park.resume(&state, &other).err(), Some(ResumeError::Forged));
    assert!(park.resume(&state, &key("ann", "t")).is_ok());
    assert_eq!(park.resume(&state, &key("ann", "t")).err(), Some(ResumeError::Gone));
}

#[tokio::test(start_paused = true)]
async fn a_state_that_was_changed_is_refused() {
    let park = park(4);
    let state = park.park(&key("", "t"), entry());
    for changed in
        [format!("{state}A"), state[..state.len() - 1].to_owned(), STATE_PREFIX.to_owned()]
    {
        assert_eq!(
            park.resume(&changed, &key("", "t")).err(),
            Some(ResumeError::Forged),
            "{changed}"
        );
    }
    let elsewhere = Arc::new(ParkedCalls::new(Limits::default(), 0)).park(&key("", "t"), entry());
    assert_eq!(park.resume(&elsewhere, &key("", "t")).err(), Some(ResumeError::Forged));
}

#[tokio::test(start_paused = true)]
async fn what_waits_too_long_is_dropped() {
    let park = park(4);
    let state = park.park(&key("", "t"), entry());
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert!(park.parked.lock().calls.is_empty() && park.parked.lock().order.is_empty());
    assert_eq!(park.resume(&state, &key("", "t")).err(), Some(ResumeError::Gone));
}

#[tokio::test(start_paused = true)]
async fn the_oldest_gives_way_when_there_are_too_many() {
    let park = park(2);
    let states: Vec<_> = (0..3).map(|_| park.park(&key("", "t"), entry())).collect();
    let kept = states.iter().map(|state| park.resume(state, &key("", "t")).is_ok());
    assert_eq!(kept.collect::<Vec<_>>(), [false, true, true]);
}

#[tokio::test(start_paused = true)]
async fn one_caller_with_many_parked_calls_takes_nobody_elses_place() {
    let park = park(4);
    let ann = park.park(&key("ann", "t"), entry());
    let bob: Vec<_> = (0..20).map(|_| park.park(&key("bob", "t"), entry())).collect();
    assert!(park.resume(&ann, &key("ann", "t")).is_ok());
    let kept = bob.iter().filter(|state| park.resume(state, &key("bob", "t")).is_ok()).count();
    assert_eq!(kept, 3);
    assert!(park.parked.lock().order.is_empty(), "nothing is kept of what is gone");
}

#[test]
fn arguments_are_the_same_in_any_order() {
    let of = |text: &str| canonical(&arguments(text).unwrap());
    assert_eq!(
        of(r#"{"a":{"x":1,"y":[{"z":1,"b":2}]}}"#),
        of(r#"{"a":{"y":[{"b":2, "z":1}],"x":1}}"#)
    );
    assert_ne!(of(r#"{"function":"ask"}"#), of(r#"{"function":"slow"}"#));
    let deep = r#"{"a":"#.repeat(50_000) + "1" + &"}".repeat(50_000);
    assert_eq!(of(&deep), deep, "what is nested without end is taken as it is");
}

#[test]
fn a_state_of_another_gate_is_told_from_ours_however_many_gates_it_passed() {
    let theirs = "gatelet.c3RhdGU";
    let (once, twice) = (
        ParkedCalls::mark_foreign(theirs),
        ParkedCalls::mark_foreign(&ParkedCalls::mark_foreign(theirs)).into_owned(),
    );
    assert_eq!(ParkedCalls::owner(&once), StateOwner::Provider(theirs));
    assert_eq!(ParkedCalls::owner(&twice), StateOwner::Provider(&once));
    assert_eq!(
        (ParkedCalls::mark_foreign("x"), ParkedCalls::owner("x")),
        ("x".into(), StateOwner::Provider("x"))
    );
}
