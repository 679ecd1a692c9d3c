//! What passes besides questions and answers.

use mcp::connect::{KnownRevision, Options};
use mcp::peer::Timeouts;
use mcp::revision::Revision;
use serde_json::json;
use tool::{Ask, Call, Context, Event, Kind, Object, Provider};

use crate::support::{
    Listener, call, call_in, client, event_where, open, options, other, result, slow_human,
    try_open,
};

#[tokio::test]
async fn an_older_server_is_recognised_by_its_refusal_and_by_its_silence() {
    for (mode, revision) in [
        ("plain", Revision::V2025_11_25),
        ("old", Revision::V2024_11_05),
        ("silent", Revision::V2025_11_25),
    ] {
        let options = Options { probe_timeout: std::time::Duration::from_millis(200), ..options() };
        let upstream = try_open(mode, &options).await.unwrap();
        assert_eq!(upstream.revision(), revision, "{mode}");
        assert_eq!(upstream.listing().server.protocol, revision.as_str());
    }
}

#[tokio::test]
async fn a_server_that_dies_of_the_probe_is_started_again_without() {
    let upstream = open("fragile").await;
    assert_eq!(upstream.revision(), Revision::V2025_11_25);
}

#[tokio::test]
async fn a_remembered_or_pinned_revision_spares_the_probe() {
    for revision in [
        KnownRevision::Remembered(Revision::V2025_11_25),
        KnownRevision::Pinned(Revision::V2025_11_25),
    ] {
        // This one never answers the probe, and nobody waits for that.
        let options =
            Options { revision, probe_timeout: std::time::Duration::from_secs(3600), ..options() };
        let upstream = try_open("silent", &options).await.unwrap();
        assert_eq!(upstream.revision(), Revision::V2025_11_25);
    }
}

#[tokio::test]
async fn a_server_that_was_older_the_last_time_is_asked_again_when_it_refuses() {
    let revision = KnownRevision::Remembered(Revision::V2025_11_25);
    let upstream = try_open("modern", &Options { revision, ..options() }).await.unwrap();
    assert_eq!(upstream.revision(), Revision::V2026_07_28);
}

#[tokio::test]
async fn a_server_that_was_modern_the_last_time_is_asked_one_thing() {
    let revision = KnownRevision::Remembered(Revision::V2026_07_28);
    // However slow: the pause before the second question has no room here.
    let options = Options { revision, probe_timeout: std::time::Duration::ZERO, ..options() };
    let upstream = try_open("modern", &options).await.unwrap();
    assert_eq!(upstream.revision(), Revision::V2026_07_28);
    assert_eq!(upstream.n_invalid(), 0);
    // One that dies of the question now is started again without.
    let upstream = try_open("fragile", &options).await.unwrap();
    assert_eq!(upstream.revision(), Revision::V2025_11_25);
}

#[tokio::test]
async fn time_in_which_the_client_is_asked_is_not_the_servers() {
    let timeouts = Timeouts::same(std::time::Duration::from_millis(300));
    let upstream = try_open("plain", &Options { timeouts, ..options() }).await.unwrap();
    let context = slow_human();
    let ask = json!({"method": "sampling/createMessage", "params": "{}"});
    let answer = call_in(&upstream, "ask", ask, &context).await;
    assert_eq!(result(answer).as_str(), r#"{"result":{"late":true}}"#);
}

#[tokio::test]
async fn a_server_that_does_not_speak_the_pinned_revision_is_refused() {
    let options = Options { revision: KnownRevision::Pinned(Revision::V2025_06_18), ..options() };
    let error = crate::support::refused("old", &options).await;
    assert_eq!(error.to_string(), "it speaks `2024-11-05`, which is no revision spoken here");
}

#[tokio::test]
async fn progress_comes_back_under_the_clients_own_token() {
    let upstream = open("plain").await;
    let listener = Listener::answering("{}");
    let mut rest = Object::new();
    rest.push("_meta", json!({"progressToken": "mine"}).into());
    let ask = Ask::Call(Call { name: "progress".to_owned(), arguments: None, other_params: rest });
    result(upstream.ask(ask, &listener.context("s")).await);
    let progress = |n| {
        format!(r#"notifications/progress {{"progressToken":"mine","progress":{n},"x":1e400}}"#)
    };
    assert_eq!(listener.notes(), [progress(1), progress(2)]);
}

#[tokio::test]
async fn who_asked_for_no_progress_gets_none() {
    let upstream = open("plain").await;
    let listener = Listener::answering("{}");
    result(call_in(&upstream, "progress", json!({}), &listener.context("s")).await);
    assert!(listener.notes().is_empty());
}

#[tokio::test]
async fn a_dropped_call_is_cancelled_at_the_server() {
    let upstream = open("plain").await;
    let hanging = call(&upstream, "hang", json!({}));
    let poke = call(&upstream, "say", json!({"result": "{}"}));
    // The second answer shows that the first question is there.
    tokio::select! {
        biased;
        _ = hanging => panic!("it never answers"),
        answer = poke => { result(answer); }
    }
    let cancelled = result(call(&upstream, "cancelled", json!({})).await);
    assert_eq!(cancelled.parse_as::<Vec<u64>>().unwrap().len(), 1);
}

#[tokio::test]
async fn a_question_of_the_server_reaches_the_client_whose_call_caused_it() {
    let upstream = open("plain").await;
    let listener = Listener::answering(r#"{"role":"assistant","n":1e400}"#);
    let ask =
        json!({"method": "sampling/createMessage", "params": r#"{"messages":[ ],"n":1e400}"#});
    let answer = call_in(&upstream, "ask", ask, &listener.context("s")).await;
    assert_eq!(result(answer).as_str(), r#"{"result":{"role":"assistant","n":1e400}}"#);
    assert_eq!(listener.notes(), [r#"sampling/createMessage? {"messages":[ ],"n":1e400}"#]);
}

#[tokio::test]
async fn a_question_that_the_client_cannot_answer_is_refused_cleanly() {
    let upstream = open("plain").await;
    let listener = Listener::answering("{}");
    let ask = json!({"method": "elicitation/create", "params": "{}"});
    let answer = result(call_in(&upstream, "ask", ask, &listener.context("s")).await);
    let error = answer.member("error").unwrap();
    assert_eq!(error.member_as::<i64>("code"), Some(-32601));
    let said: String = error.member_as("message").unwrap();
    assert_eq!(said, "the client does not support elicitation");
    assert!(listener.notes().is_empty());
}

#[tokio::test]
async fn a_question_with_two_clients_calling_reaches_neither() {
    let upstream = open("plain").await;
    let [one, two] = [Listener::answering("{}"), Listener::answering("{}")];
    let (context_one, context_two) = (one.context("1"), two.context("2"));
    let hanging = call_in(&upstream, "hang", json!({}), &context_one);
    let ask = json!({"method": "sampling/createMessage", "params": "{}"});
    let asking = call_in(&upstream, "ask", ask, &context_two);
    let answer = tokio::select! {
        biased;
        _ = hanging => panic!("it never answers"),
        answer = asking => result(answer),
    };
    assert!(answer.as_str().contains("nothing says which one is asked"), "{answer}");
    assert!(one.notes().is_empty() && two.notes().is_empty());
}

#[tokio::test]
async fn a_server_that_hears_of_new_roots_asks_the_client_whose_they_are() {
    let upstream = open("plain").await;
    let listener = Listener::answering(r#"{"roots":[{"uri":"file:///new"}]}"#);
    let able = tool::Client { capabilities: json!({"roots": {}}).into(), ..client() };
    let context = Context { client: std::sync::Arc::new(able), ..listener.context("s") };
    let news = upstream.ask(other("notifications/roots/list_changed", json!({})), &context);
    let answered = async {
        while listener.notes().is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        loop {
            let roots = result(call(&upstream, "roots", json!({})).await);
            if !roots.is_null() {
                return roots;
            }
        }
    };
    let roots = tokio::select! {
        told = news => panic!("it is still asked for its roots: {told:?}"),
        roots = answered => roots,
    };
    assert_eq!(roots.as_str(), r#"{"roots":[{"uri":"file:///new"}]}"#);
    assert_eq!(listener.notes(), ["roots/list? {}"]);
}

#[tokio::test]
async fn a_question_outside_of_any_call_goes_home() {
    let home = Listener::answering(r#"{"roots":[]}"#);
    let options = Options { fallback_client: home.clone(), ..options() };
    let upstream = try_open("plain", &options).await.unwrap();
    // It asks, and hangs up on the call that made it ask.
    let line = r#"{"id":ID,"result":1}
{"jsonrpc":"2.0","id":"later","method":"sampling/createMessage","params":{}}"#;
    result(call(&upstream, "raw", json!({"line": line})).await);
    for _ in 0..200 {
        if !home.notes().is_empty() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(home.notes(), ["sampling/createMessage? {}"]);
}

#[tokio::test]
async fn a_ping_is_answered() {
    let upstream = open("plain").await;
    let answer = call(&upstream, "ask", json!({"method": "ping", "params": "{}"})).await;
    assert_eq!(result(answer).as_str(), r#"{"result":{}}"#);
}

#[tokio::test]
async fn a_changed_list_is_read_again_before_it_is_told() {
    let upstream = open("plain").await;
    let mut events = upstream.events();
    result(call(&upstream, "change", json!({"add": 1})).await);
    event_where(&mut events, |event| *event == Event::Changed(Kind::Tools)).await;
    assert_eq!(upstream.listing().tools.last().unwrap().name, "added_0");
}

#[tokio::test]
async fn the_last_change_of_a_burst_is_never_lost() {
    let upstream = open("plain").await;
    let before = upstream.listing().tools.len();
    let mut events = upstream.events();
    for _ in 0..30 {
        result(call(&upstream, "change", json!({"add": 1})).await);
        tokio::time::sleep(std::time::Duration::from_millis(7)).await;
    }
    while upstream.listing().tools.len() < before + 30 {
        event_where(&mut events, |event| *event == Event::Changed(Kind::Tools)).await;
    }
}

#[tokio::test]
async fn logs_reach_the_caller_and_unknown_notifications_become_events() {
    let upstream = open("plain").await;
    let listener = Listener::answering("{}");
    let mut events = upstream.events();
    let tell = |method| json!({"method": method, "params": r#"{"data":1e400}"#});
    let log = tell("notifications/message");
    result(call_in(&upstream, "tell", log, &listener.context("s")).await);
    assert_eq!(listener.notes(), [r#"notifications/message {"data":1e400}"#]);
    result(call(&upstream, "tell", tell("notifications/vendor/odd")).await);
    let event = event_where(&mut events, |event| matches!(event, Event::Notification(_))).await;
    let Event::Notification(note) = event else { panic!() };
    assert_eq!(note.method, "notifications/vendor/odd");
    assert_eq!(note.params.to_json().as_str(), r#"{"data":1e400}"#);
}

#[tokio::test]
async fn a_log_line_with_two_clients_calling_reaches_nobody() {
    let upstream = open("plain").await;
    let [one, two] = [Listener::answering("{}"), Listener::answering("{}")];
    let (context_one, context_two) = (one.context("1"), two.context("2"));
    let mut events = upstream.events();
    let hanging = call_in(&upstream, "hang", json!({}), &context_one);
    let log = json!({"method": "notifications/message", "params": r#"{"data":"of two's call"}"#});
    let telling = call_in(&upstream, "tell", log, &context_two);
    tokio::select! {
        biased;
        _ = hanging => panic!("it never answers"),
        answer = telling => { result(answer); }
    }
    assert!(one.notes().is_empty() && two.notes().is_empty());
    // What is told next comes first: nothing was told before it.
    let odd = json!({"method": "notifications/vendor/odd", "params": "{}"});
    result(call(&upstream, "tell", odd).await);
    let Event::Notification(note) = event_where(&mut events, |_| true).await else { panic!() };
    assert_eq!(note.method, "notifications/vendor/odd");
}

#[tokio::test]
async fn an_update_of_a_resource_becomes_an_event() {
    let upstream = open("plain").await;
    let mut events = upstream.events();
    let subscribe = other("resources/subscribe", json!({"uri": "a://b"}));
    result(upstream.ask(subscribe, &Context::anonymous()).await);
    result(call(&upstream, "update", json!({})).await);
    let event = event_where(&mut events, |event| matches!(event, Event::Updated { .. })).await;
    let Event::Updated { uri, notification } = event else { panic!() };
    assert_eq!(
        (uri.as_str(), notification.params.to_json().as_str()),
        ("a://b", r#"{"uri":"a://b"}"#)
    );
}

#[tokio::test]
async fn the_session_is_opened_with_the_clients_own_capabilities() {
    let upstream = open("plain").await;
    let opening = result(call(&upstream, "opening", json!({})).await);
    assert_eq!(opening.member("capabilities").unwrap().as_str(), r#"{"sampling":{}}"#);
    assert_eq!(opening.member("clientInfo").unwrap().as_str(), r#"{"name":"test","version":""}"#);
    assert_eq!(opening.member_as::<String>("protocolVersion").as_deref(), Some("2025-11-25"));
}
