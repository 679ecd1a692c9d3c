//! Servers that are broken, or worse.

use std::time::Duration;

use mcp::connect::{ConnectError, ListLimits, Options};
use mcp::peer::{Limits, Timeouts};
use serde_json::json;
use tool::{Context, Event, Failure, Provider, Sent};

use crate::support::{call, event_where, open, options, refused, result, try_open};

/// Options under which a server that hangs is given up soon.
fn hasty() -> Options {
    Options {
        opening_timeout: Duration::from_millis(1500),
        probe_timeout: Duration::from_millis(200),
        ..options()
    }
}

#[tokio::test]
async fn garbage_between_messages_is_counted_and_does_no_harm() {
    let upstream = open("plain").await;
    let line = "npm WARN\n\u{0}\u{1}{{{\n[[[\n{\"jsonrpc\":\"2.0\"}\n{\"id\":ID,\"result\":\"ok\"}";
    let answer = call(&upstream, "raw", json!({"line": line})).await;
    assert_eq!(result(answer).as_str(), "\"ok\"");
    assert_eq!(upstream.n_invalid(), 4);
}

#[tokio::test]
async fn a_damaged_answer_fails_its_call_and_the_next_one_works() {
    let upstream = open("plain").await;
    let answer = call(&upstream, "raw", json!({"line": r#"{"id":ID,"result":{"a":]}}"#})).await;
    assert!(matches!(answer, Err(Failure::Unusable { .. })), "{answer:?}");
    result(call(&upstream, "say", json!({"result": "{}"})).await);
}

#[tokio::test]
async fn half_a_message_and_death_fail_the_call_and_end_the_upstream() {
    let upstream = open("plain").await;
    let mut events = upstream.events();
    let answer = call(&upstream, "half", json!({})).await;
    assert!(answer.is_err(), "{answer:?}");
    event_where(&mut events, |event| matches!(event, Event::Gone { .. })).await;
    assert!(futures::StreamExt::next(&mut events).await.is_none(), "the events go on");
}

#[tokio::test]
async fn a_server_that_dies_fails_what_is_under_way_and_says_why() {
    let upstream = open("plain").await;
    let mut events = upstream.events();
    let hanging = call(&upstream, "hang", json!({}));
    let dying = call(&upstream, "die", json!({}));
    let (hanging, dying) = futures::future::join(hanging, dying).await;
    for answer in [hanging, dying] {
        assert!(matches!(answer, Err(Failure::Lost { sent: Sent::Perhaps, .. })), "{answer:?}");
    }
    let gone = event_where(&mut events, |event| matches!(event, Event::Gone { .. })).await;
    let Event::Gone { reason } = gone else { panic!() };
    assert_eq!(reason, "the other side closed the connection (exit code 0)");
    let late = call(&upstream, "say", json!({"result": "{}"})).await;
    assert_eq!(late.map_err(|failure| failure.sent()), Err(Sent::No));
}

#[tokio::test]
async fn fifty_megabytes_come_through() {
    let upstream = open("plain").await;
    let answer = result(call(&upstream, "huge", json!({"bytes": 50 << 20})).await);
    assert_eq!(answer.as_str().len(), (50 << 20) + r#"{"text":""}"#.len());
}

#[tokio::test]
async fn an_answer_over_the_limit_fails_its_call_and_the_next_one_works() {
    let options = Options { limits: Limits { line: 100_000, ..options().limits }, ..options() };
    let upstream = try_open("plain", &options).await.unwrap();
    let answer = call(&upstream, "huge", json!({"bytes": 1_000_000})).await;
    let Err(Failure::Unusable { reason }) = answer else { panic!("{answer:?}") };
    assert!(reason.ends_with("is over the limit of 100000"), "{reason}");
    result(call(&upstream, "say", json!({"result": "{}"})).await);
}

#[tokio::test]
async fn twenty_thousand_tools_are_listed() {
    let upstream = open("many").await;
    assert_eq!(upstream.listing().tools.len(), 20_000);
}

#[tokio::test]
async fn a_list_is_cut_at_the_limit_and_that_is_said() {
    let list_limits = ListLimits { pages: 1000, items: 100, bytes: 64 << 20 };
    let upstream = try_open("many", &Options { list_limits, ..options() }).await.unwrap();
    let listing = upstream.listing();
    assert_eq!(listing.tools.len(), 100);
    assert!(listing.findings[0].message.ends_with("it has more items than are kept"));
}

#[tokio::test]
async fn pages_that_go_round_or_never_end_are_left() {
    for (mode, said) in [
        ("circle", "its pages go round in a circle"),
        ("endless", "it has more pages than are read"),
    ] {
        let list_limits = ListLimits { pages: 50, items: 1000, bytes: 64 << 20 };
        let upstream = try_open(mode, &Options { list_limits, ..options() }).await.unwrap();
        let listing = upstream.listing();
        assert!(listing.tools.len() <= 50);
        assert!(listing.findings[0].message.ends_with(said), "{:?}", listing.findings);
    }
}

#[tokio::test]
async fn a_blank_cursor_is_the_end() {
    let upstream = open("blank").await;
    let listing = upstream.listing();
    assert_eq!((listing.tools.len(), listing.findings.len()), (1, 0), "{:?}", listing.findings);
}

#[tokio::test]
async fn tools_of_one_name_stay_and_are_reported() {
    let listing = open("duplicates").await.listing();
    assert_eq!(listing.tools.len(), 3);
    let codes: Vec<_> = listing.findings.iter().map(|finding| finding.code.as_str()).collect();
    assert_eq!(codes, ["duplicate-name"]);
}

#[tokio::test]
async fn definitions_that_make_no_sense_are_reported_and_the_others_stay() {
    let listing = open("damaged").await.listing();
    assert_eq!(listing.tools.len(), 1);
    assert_eq!(listing.findings.len(), 2);
}

#[tokio::test]
async fn schemas_that_are_deep_or_invalid_are_kept_as_they_are() {
    let listing = open("deep").await.listing();
    let names: Vec<_> = listing.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["deep", "invalid", "ok"]);
}

#[tokio::test]
async fn answers_to_questions_never_asked_are_ignored() {
    let upstream = open("plain").await;
    let line = "{\"id\":9999,\"result\":{}}\n{\"id\":null,\"error\":{}}\n{\"id\":ID,\"result\":1}";
    assert_eq!(result(call(&upstream, "raw", json!({"line": line})).await).as_str(), "1");
    assert_eq!(upstream.n_invalid(), 2);
}

#[tokio::test]
async fn a_flood_of_notifications_is_survived() {
    let upstream = open("plain").await;
    let mut events = upstream.events();
    let flood = json!({"method": "notifications/x", "params": "{}", "times": 100_000});
    result(call(&upstream, "tell", flood).await);
    let changes =
        json!({"method": "notifications/tools/list_changed", "params": "{}", "times": 100_000});
    result(call(&upstream, "tell", changes).await);
    // Whoever was too slow is told to look at everything again.
    event_where(&mut events, |event| matches!(event, Event::Changed(_))).await;
    result(call(&upstream, "say", json!({"result": "{}"})).await);
}

#[tokio::test]
async fn a_server_that_hangs_at_any_step_is_given_up() {
    for step in ["initialize", "tools/list", "resources/list", "prompts/list"] {
        let error = refused(&format!("hang-{step}"), &hasty()).await;
        assert!(matches!(error, ConnectError::Silent { .. }), "{step}: {error}");
        assert!(error.to_string().contains(&format!("`{step}`")), "{step}: {error}");
    }
}

#[tokio::test]
async fn a_call_that_hangs_runs_out_of_patience_and_is_cancelled() {
    let timeouts = Timeouts::same(Duration::from_millis(300));
    let upstream = try_open("plain", &Options { timeouts, ..options() }).await.unwrap();
    let answer = call(&upstream, "hang", json!({})).await;
    assert_eq!(answer, Err(Failure::Timeout { after: Duration::from_millis(300) }));
    let cancelled = result(call(&upstream, "cancelled", json!({})).await);
    assert_eq!(cancelled.parse_as::<Vec<u64>>().unwrap().len(), 1);
}

#[tokio::test]
async fn the_callers_own_limit_counts_too() {
    let upstream = open("plain").await;
    let timeouts = Some(Duration::from_millis(50));
    let context = Context { timeout: timeouts, ..Context::anonymous() };
    let answer = crate::support::call_in(&upstream, "hang", json!({}), &context).await;
    assert_eq!(answer, Err(Failure::Timeout { after: Duration::from_millis(50) }));
}

#[tokio::test]
async fn a_program_that_ends_at_once_says_why() {
    let error = refused("exit", &options()).await;
    let said = "it ended before the session was open: \
                the other side closed the connection (exit code 3): Error: no API key";
    assert_eq!(error.to_string(), said);
}

#[tokio::test]
async fn a_program_that_is_not_there_says_so() {
    let target = mcp::connect::Target::Stdio(mcp::connect::Program {
        command: "/no/such/program".into(),
        ..Default::default()
    });
    for launcher in [None, options().launcher] {
        let options = Options { launcher, ..options() };
        let opened = mcp::connect::connect(&target, &options, &crate::support::client()).await;
        let Err(error) = opened else { panic!("it was opened") };
        assert!(error.to_string().contains("No such file or directory"), "{error}");
    }
}

#[tokio::test]
async fn a_server_that_is_stopped_is_given_up_after_a_few_calls() {
    let timeouts = mcp::peer::Timeouts::same(std::time::Duration::from_millis(200));
    let options = Options { timeouts, grace: std::time::Duration::from_millis(100), ..options() };
    let upstream = crate::support::try_open("plain", &options).await.unwrap();
    let [child] = Vec::from_iter(crate::processes::children_of(std::process::id()))[..] else {
        panic!("not one child")
    };
    let child = i32::try_from(child).ok().and_then(rustix::process::Pid::from_raw).unwrap();
    rustix::process::kill_process(child, rustix::process::Signal::STOP).unwrap();
    for n_calls in 1.. {
        if upstream.gone().is_some() {
            break;
        }
        assert!(n_calls < 10, "it is still taken for available");
        assert!(crate::support::call(&upstream, "say", serde_json::json!({})).await.is_err());
    }
    let why = upstream.gone().unwrap();
    assert!(why.contains("not answered in time"), "{why}");
}
