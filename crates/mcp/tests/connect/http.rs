//! Servers over Streamable HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use mcp::connect::{ConnectError, Endpoint, Era, Options, Target, Upstream, connect};
use mcp::peer::Patience;
use mcp::revision::Revision;
use serde_json::json;
use tool::{Context, Event, Failure, Kind, Object, Provider, Sent as HasLeft};

use crate::support::{Listener, call, call_in, client, event_where, options, other, result};
use crate::web::{Seen, Sent, Web};

const OPENED: &str = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"web","version":"1"}}"#;
const TOOLS: &str = r#"{"tools":[{"name":"t","inputSchema":{"x":1e400}}]}"#;
const MODERN_TOOLS: &str = r#"{"resultType":"complete","tools":[{"name":"t","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}},{"name":"bad","inputSchema":{"type":"object","properties":{"a":{"type":"object","x-mcp-header":"A"}}}}]}"#;
const DISCOVERED: &str =
    r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}"#;

/// An older server with sessions: everything but calls.
fn legacy(seen: &Seen) -> Sent {
    match (seen.verb.as_str(), seen.method()) {
        ("GET", _) => Sent::Plain(405, vec![], String::new()),
        ("DELETE", _) => Sent::Plain(204, vec![], String::new()),
        (_, "initialize") => Sent::Plain(
            200,
            vec![
                ("content-type", "application/json".to_owned()),
                ("mcp-session-id", "session-1".to_owned()),
            ],
            seen.answer(OPENED),
        ),
        (_, "tools/list") => Sent::Json(200, seen.answer(TOOLS)),
        (_, "server/discover") => Sent::Plain(400, vec![], "Bad Request".to_owned()),
        (_, method) if method.starts_with("notifications/") => {
            Sent::Plain(202, vec![], String::new())
        }
        _ => Sent::Plain(500, vec![], "unexpected".to_owned()),
    }
}

fn modern(seen: &Seen) -> Sent {
    match seen.method() {
        "server/discover" => Sent::Json(200, seen.answer(DISCOVERED)),
        "tools/list" => Sent::Json(200, seen.answer(MODERN_TOOLS)),
        _ => Sent::Json(200, seen.answer(r#"{"resultType":"complete","content":[]}"#)),
    }
}

fn target(url: &str) -> Target {
    let headers = [("authorization".to_owned(), "Bearer secret".to_owned())].into();
    Target::Http(Endpoint { url: url.to_owned(), headers, ..Endpoint::default() })
}

async fn reach(web: &Web) -> Arc<Upstream> {
    connect(&target(&web.url), &options(), &client()).await.unwrap()
}

async fn refusal(url: &str) -> ConnectError {
    match connect(&target(url), &options(), &client()).await {
        Ok(_) => panic!("it was opened"),
        Err(error) => error,
    }
}

/// A legacy server whose calls do what the test wants.
async fn calls(script: impl Fn(&Seen) -> Sent + Send + Sync + 'static) -> Web {
    Web::serve(move |seen| match seen.method() {
        "tools/call" => script(seen),
        _ => legacy(seen),
    })
    .await
}

fn event(text: &str) -> String {
    format!("data: {text}")
}

#[tokio::test]
async fn a_session_is_opened_used_and_ended() {
    let odd = r#"{"content":[],"n":1e400,"n":2}"#;
    let web = calls(move |seen| Sent::Json(200, seen.answer(odd))).await;
    let upstream = reach(&web).await;
    assert_eq!(upstream.revision(), Revision::V2025_11_25);
    assert_eq!(
        upstream.listing().tools[0].raw.as_str(),
        r#"{"name":"t","inputSchema":{"x":1e400}}"#
    );
    assert_eq!(result(call(&upstream, "t", json!({})).await).as_str(), odd);
    upstream.close().await;
    let seen = web.seen();
    let request = web.asked("tools/call").remove(0);
    assert_eq!(request.header("mcp-session-id"), Some("session-1"));
    assert_eq!(request.header("mcp-protocol-version"), Some("2025-11-25"));
    assert_eq!(request.header("accept"), Some("application/json, text/event-stream"));
    assert!(seen.iter().all(|seen| seen.header("authorization") == Some("Bearer secret")));
    assert_eq!(web.asked("notifications/initialized").len(), 1);
    let last = seen.last().unwrap();
    assert_eq!((last.verb.as_str(), last.header("mcp-session-id")), ("DELETE", Some("session-1")));
}

#[tokio::test]
async fn what_comes_on_a_calls_stream_belongs_to_that_call() {
    let web = calls(|seen| {
        let token = &seen.body["params"]["_meta"]["progressToken"];
        assert!(token.is_null(), "nobody asked for progress");
        Sent::Events(vec![
            event(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"data":1e400}}"#),
            ": a comment".to_owned(),
            event(r#"{"jsonrpc":"2.0","method":"notifications/vendor","params":{}}"#),
            event(&seen.answer("{}")),
        ])
    })
    .await;
    let upstream = reach(&web).await;
    let [one, two] = [Listener::answering("{}"), Listener::answering("{}")];
    let (context_one, context_two) = (one.context(""), two.context(""));
    let answers = futures::future::join(
        call_in(&upstream, "t", json!({}), &context_one),
        call_in(&upstream, "t", json!({}), &context_two),
    );
    let (first, second) = answers.await;
    result(first);
    result(second);
    let notes = [r#"notifications/message {"data":1e400}"#, "notifications/vendor {}"];
    assert_eq!(
        (one.notes(), two.notes()),
        (notes.map(str::to_owned).into(), notes.map(str::to_owned).into())
    );
}

#[tokio::test]
async fn a_question_on_a_stream_is_answered_with_a_post() {
    let web = Web::serve(move |seen| match seen.method() {
        "tools/call" => Sent::Open(vec![event(
            r#"{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":{}}"#,
        )]),
        "" if seen.body["id"] == "q" => Sent::Plain(202, vec![], String::new()),
        _ => legacy(seen),
    })
    .await;
    let upstream = reach(&web).await;
    let listener = Listener::answering(r#"{"n":12345678901234567890123}"#);
    let context = listener.context("s");
    let asking = call_in(&upstream, "t", json!({}), &context);
    let answered = async {
        while !web.seen().iter().any(|seen| seen.body["id"] == "q") {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        answer = asking => panic!("{answer:?}"),
        () = answered => {}
    }
    let answer = web.seen().into_iter().find(|seen| seen.body["id"] == "q").unwrap();
    assert_eq!(answer.body["result"]["n"].to_string(), "12345678901234567890123");
    assert_eq!(answer.header("mcp-session-id"), Some("session-1"));
}

#[tokio::test]
async fn a_stream_that_breaks_is_resumed_where_it_was() {
    let id = Arc::new(std::sync::Mutex::new(json!(null)));
    let asked = Arc::clone(&id);
    let web = Web::serve(move |seen| match (seen.verb.as_str(), seen.header("last-event-id")) {
        ("POST", _) if seen.method() == "tools/call" => {
            *asked.lock().unwrap() = seen.body["id"].clone();
            Sent::Events(vec!["id: e1\nretry: 10\ndata:".to_owned()])
        }
        ("GET", Some("e1")) => {
            let id = asked.lock().unwrap().clone();
            Sent::Events(vec![event(&format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"late":1}}}}"#
            ))])
        }
        _ => legacy(seen),
    })
    .await;
    let upstream = reach(&web).await;
    assert_eq!(result(call(&upstream, "t", json!({})).await).as_str(), r#"{"late":1}"#);
}

#[tokio::test]
async fn a_stream_that_breaks_without_a_place_to_resume_is_lost() {
    let web = calls(|_| Sent::Events(vec![event("")])).await;
    let upstream = reach(&web).await;
    let answer = call(&upstream, "t", json!({})).await;
    assert!(matches!(answer, Err(Failure::Lost { sent: HasLeft::Perhaps, .. })), "{answer:?}");
}

#[tokio::test]
async fn a_session_that_was_forgotten_is_opened_again_once() {
    let n_opened = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&n_opened);
    let web = Web::serve(move |seen| match seen.method() {
        "initialize" => {
            let n = counter.fetch_add(1, Ordering::SeqCst);
            let headers = vec![
                ("content-type", "application/json".to_owned()),
                ("mcp-session-id", format!("session-{n}")),
            ];
            Sent::Plain(200, headers, seen.answer(OPENED))
        }
        "tools/call" if seen.header("mcp-session-id") == Some("session-0") => {
            let error = r#"{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}"#;
            Sent::Json(404, error.to_owned())
        }
        "tools/call" => Sent::Json(200, seen.answer("{}")),
        _ => legacy(seen),
    })
    .await;
    let upstream = reach(&web).await;
    let arguments = json!({});
    let calls = (0..5).map(|_| call(&upstream, "t", arguments.clone()));
    for answer in futures::future::join_all(calls).await {
        result(answer);
    }
    assert_eq!(n_opened.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn refusals_are_told_apart() {
    type Case = (u16, Vec<(&'static str, String)>, fn(&Failure) -> bool);
    let cases: [Case; 6] = [
        (401, vec![("www-authenticate", "Bearer".to_owned())], |failure| {
            *failure == Failure::Unauthorized { reason: "HTTP 401 Unauthorized: Bearer".to_owned() }
        }),
        (403, vec![], |failure| matches!(failure, Failure::Forbidden { .. })),
        (429, vec![("retry-after", "7".to_owned())], |failure| {
            *failure == Failure::RateLimited { retry_after: Some(Duration::from_secs(7)) }
        }),
        (503, vec![], |failure| failure.sent() == HasLeft::No),
        (502, vec![], |failure| failure.sent() == HasLeft::Perhaps),
        (302, vec![("location", "http://evil.example/".to_owned())], |failure| {
            failure.to_string().contains("it redirects to http://evil.example/")
        }),
    ];
    for (status, headers, fits) in cases {
        let web = calls(move |_| Sent::Plain(status, headers.clone(), String::new())).await;
        let upstream = reach(&web).await;
        let failure = call(&upstream, "t", json!({})).await.unwrap_err();
        assert!(fits(&failure), "{status}: {failure:?}");
    }
}

#[tokio::test]
async fn an_error_with_a_bad_status_is_still_the_servers_answer() {
    let web = calls(|seen| {
        let id = &seen.body["id"];
        Sent::Json(400, format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32602,"message":"no","x":1e400}}}}"#))
    })
    .await;
    let answer = call(&*reach(&web).await, "t", json!({})).await;
    let Ok(tool::Reply::Error(error)) = answer else { panic!("{answer:?}") };
    assert_eq!(error.raw.as_str(), r#"{"code":-32602,"message":"no","x":1e400}"#);
}

#[tokio::test]
async fn nonsense_instead_of_an_answer_is_unusable() {
    for body in ["", "<html>", "[]", r#"{"jsonrpc":"2.0","id":999999,"result":{}}"#] {
        let web = calls(move |_| Sent::Json(200, body.to_owned())).await;
        let answer = call(&*reach(&web).await, "t", json!({})).await;
        assert!(matches!(answer, Err(Failure::Unusable { .. })), "{body}: {answer:?}");
    }
}

#[tokio::test]
async fn a_call_that_hangs_runs_out_of_patience_and_is_cancelled() {
    let web = calls(|_| Sent::Open(vec![])).await;
    let patience = Patience::of(Duration::from_millis(200));
    let options = Options { patience, ..options() };
    let upstream = connect(&target(&web.url), &options, &client()).await.unwrap();
    let answer = call(&upstream, "t", json!({})).await;
    assert_eq!(answer, Err(Failure::Timeout { after: Duration::from_millis(200) }));
    while web.asked("notifications/cancelled").is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let asked = web.asked("tools/call").remove(0).body["id"].clone();
    assert_eq!(web.asked("notifications/cancelled")[0].body["params"]["requestId"], asked);
}

#[tokio::test]
async fn a_standing_stream_tells_of_changes() {
    let web = Web::serve(|seen| match seen.verb.as_str() {
        "GET" => Sent::Open(vec![event(
            r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#,
        )]),
        _ => legacy(seen),
    })
    .await;
    let upstream = reach(&web).await;
    let mut events = upstream.events();
    event_where(&mut events, |event| *event == Event::Changed(Kind::Tools)).await;
    assert_eq!(web.asked("tools/list").len(), 2);
}

/// The answer to `initialize` with the id of a session.
fn opened(seen: &Seen, n: u32) -> Sent {
    let headers = vec![
        ("content-type", "application/json".to_owned()),
        ("mcp-session-id", format!("session-{n}")),
    ];
    Sent::Plain(200, headers, seen.answer(OPENED))
}

/// Waits until the server has seen a request like this.
async fn until_seen(web: &Web, wanted: impl Fn(&Seen) -> bool) {
    let seen = async {
        while !web.seen().iter().any(&wanted) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), seen).await.expect("it never came");
}

#[tokio::test]
async fn a_session_that_cannot_be_opened_again_now_is_opened_by_the_next_call() {
    let counter = AtomicU32::new(0);
    let web = Web::serve(move |seen| match (seen.method(), seen.header("mcp-session-id")) {
        ("initialize", _) => match counter.fetch_add(1, Ordering::SeqCst) {
            1 => Sent::Plain(503, vec![], "busy".to_owned()),
            n => opened(seen, n),
        },
        ("tools/call", Some("session-2")) => Sent::Json(200, seen.answer("{}")),
        ("tools/call", Some(_)) => Sent::Plain(404, vec![], String::new()),
        ("tools/call", None) => Sent::Plain(400, vec![], "no session".to_owned()),
        _ => legacy(seen),
    })
    .await;
    let upstream = reach(&web).await;
    let answer = call(&upstream, "t", json!({})).await;
    assert!(matches!(answer, Err(Failure::Unavailable { .. })), "{answer:?}");
    assert_eq!(result(call(&upstream, "t", json!({})).await).as_str(), "{}");
}

#[tokio::test]
async fn a_new_session_has_its_standing_stream_and_its_subscriptions() {
    let (n_opened, restarted) = (AtomicU32::new(0), Arc::new(AtomicU32::new(0)));
    let switch = Arc::clone(&restarted);
    let web = Web::serve(move |seen| {
        let forgotten = switch.load(Ordering::SeqCst) == 1
            && seen.header("mcp-session-id") == Some("session-0");
        match (seen.verb.as_str(), seen.method(), seen.header("mcp-session-id")) {
            (_, "initialize", _) => opened(seen, n_opened.fetch_add(1, Ordering::SeqCst)),
            _ if forgotten => Sent::Plain(404, vec![], String::new()),
            ("GET", _, Some("session-0")) => Sent::Events(vec!["retry: 10\ndata:".to_owned()]),
            ("GET", _, _) => Sent::Open(vec![event(
                r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a://b"}}"#,
            )]),
            (_, "resources/subscribe", _) => Sent::Json(200, seen.answer("{}")),
            _ => legacy(seen),
        }
    })
    .await;
    let upstream = reach(&web).await;
    let mut events = upstream.events();
    let watch = crate::support::other("resources/subscribe", json!({"uri": "a://b"}));
    result(upstream.ask(watch, &Context::anonymous()).await);
    restarted.store(1, Ordering::SeqCst);
    // Nobody calls: what the server has to say comes all the same.
    event_where(&mut events, |event| matches!(event, Event::Updated { .. })).await;
    until_seen(&web, |seen| {
        seen.method() == "resources/subscribe"
            && seen.header("mcp-session-id") == Some("session-1")
            && seen.body["params"]["uri"] == "a://b"
    })
    .await;
    until_seen(&web, |seen| {
        seen.method() == "tools/list" && seen.header("mcp-session-id") == Some("session-1")
    })
    .await;
    assert_eq!(web.asked("initialize").len(), 2);
}

#[tokio::test]
async fn a_standing_stream_of_a_forgotten_session_is_left_for_the_new_one() {
    let n_opened = AtomicU32::new(0);
    let web = Web::serve(move |seen| {
        match (seen.verb.as_str(), seen.method(), seen.header("mcp-session-id")) {
            (_, "initialize", _) => opened(seen, n_opened.fetch_add(1, Ordering::SeqCst)),
            ("GET", _, _) => Sent::Open(vec![]),
            (_, "tools/call", Some("session-0")) => Sent::Plain(404, vec![], String::new()),
            (_, "tools/call", _) => Sent::Json(200, seen.answer("{}")),
            _ => legacy(seen),
        }
    })
    .await;
    let upstream = reach(&web).await;
    result(call(&upstream, "t", json!({})).await);
    until_seen(&web, |seen| {
        seen.verb == "GET" && seen.header("mcp-session-id") == Some("session-1")
    })
    .await;
}

#[tokio::test]
async fn a_server_that_knows_no_standing_stream_keeps_its_session() {
    let web = Web::serve(|seen| match seen.verb.as_str() {
        "GET" => Sent::Plain(404, vec![], String::new()),
        _ => legacy(seen),
    })
    .await;
    reach(&web).await;
    assert_eq!(web.asked("initialize").len(), 1);
}

#[tokio::test]
async fn calls_under_way_end_by_themselves_when_nobody_takes_new_ones() {
    let go = Arc::new(tokio::sync::Notify::new());
    let held = Arc::clone(&go);
    let web = Web::serve(move |seen| match (seen.method(), legacy(seen)) {
        ("tools/call", _) => Sent::Held(Arc::clone(&held), seen.answer(r#"{"late":1}"#)),
        // No connection is kept, so every question wants a new one.
        (_, Sent::Json(status, body)) => {
            let kind = ("content-type", "application/json".to_owned());
            Sent::Plain(status, vec![kind, ("connection", "close".to_owned())], body)
        }
        (_, Sent::Plain(status, mut headers, body)) => {
            headers.push(("connection", "close".to_owned()));
            Sent::Plain(status, headers, body)
        }
        (_, other) => other,
    })
    .await;
    let upstream = reach(&web).await;
    let mut events = upstream.events();
    let early = tokio::spawn({
        let upstream = Arc::clone(&upstream);
        async move { call(&upstream, "t", json!({})).await }
    });
    until_seen(&web, |seen| seen.method() == "tools/call").await;
    web.shut().await;
    let late = call(&upstream, "t", json!({})).await;
    assert!(matches!(late, Err(Failure::Unavailable { .. })), "{late:?}");
    // Whoever keeps it knows, and opens another.
    event_where(&mut events, |event| matches!(event, Event::Gone { .. })).await;
    go.notify_one();
    assert_eq!(result(early.await.unwrap()).as_str(), r#"{"late":1}"#);
}

#[tokio::test]
async fn a_list_that_can_no_longer_be_read_is_reported() {
    let n_read = AtomicU32::new(0);
    let web = Web::serve(move |seen| match (seen.verb.as_str(), seen.method()) {
        ("GET", _) => Sent::Open(vec![event(
            r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#,
        )]),
        (_, "tools/list") if 0 < n_read.fetch_add(1, Ordering::SeqCst) => {
            Sent::Plain(500, vec![], "broken".to_owned())
        }
        _ => legacy(seen),
    })
    .await;
    let upstream = reach(&web).await;
    let mut events = upstream.events();
    event_where(&mut events, |event| *event == Event::Changed(Kind::Tools)).await;
    let listing = upstream.listing();
    assert_eq!(listing.tools.len(), 1, "what was there stays");
    assert_eq!(listing.findings[0].code, "unread-list");
}

#[tokio::test]
async fn a_modern_server_gets_headers_and_no_session() {
    let web = Web::serve(modern).await;
    let upstream = reach(&web).await;
    assert_eq!(upstream.revision(), Revision::V2026_07_28);
    result(call(&upstream, "t", json!({"region": "Zürich"})).await);
    let request = web.asked("tools/call").remove(0);
    assert_eq!(request.header("mcp-protocol-version"), Some("2026-07-28"));
    assert_eq!(request.header("mcp-method"), Some("tools/call"));
    assert_eq!(request.header("mcp-name"), Some("t"));
    assert_eq!(request.header("mcp-param-region"), Some("=?base64?WsO8cmljaA==?="));
    assert_eq!(request.header("mcp-session-id"), None);
    assert_eq!(
        request.body["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"],
        "2026-07-28"
    );
    upstream.close().await;
    assert!(web.seen().iter().all(|seen| seen.verb == "POST"));
}

#[tokio::test]
async fn a_tool_whose_header_annotations_are_wrong_is_left_out_and_reported() {
    let web = Web::serve(modern).await;
    let listing = reach(&web).await.listing();
    let names: Vec<_> = listing.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["t"]);
    assert_eq!(listing.findings[0].code, "header-annotation");
}

#[tokio::test]
async fn a_server_that_is_not_there_or_wants_credentials_says_so() {
    let web = Web::serve(|_| Sent::Plain(401, vec![], String::new())).await;
    assert!(matches!(refusal(&web.url).await, ConnectError::Unauthorized { .. }));
    let error = refusal("http://127.0.0.1:1/mcp").await;
    assert!(error.to_string().contains("Connection refused"), "{error}");
    for url in ["ftp://x/", "no url"] {
        let error = refusal(url).await;
        assert!(matches!(error, ConnectError::BadTarget { .. }), "{error}");
    }
}

#[tokio::test]
async fn a_pinned_revision_spares_the_probe() {
    let web = Web::serve(legacy).await;
    let options = Options { era: Era::Pinned(Revision::V2025_11_25), ..options() };
    connect(&target(&web.url), &options, &client()).await.unwrap();
    assert!(web.asked("server/discover").is_empty());
}

#[tokio::test]
async fn a_server_that_goes_away_is_gone_and_calls_say_so() {
    let web = calls(|seen| Sent::Json(200, seen.answer("{}"))).await;
    let upstream = reach(&web).await;
    let mut events = upstream.events();
    web.stop().await;
    let answer = call(&upstream, "t", json!({})).await;
    assert!(
        matches!(answer, Err(Failure::Unavailable { .. } | Failure::Lost { .. })),
        "{answer:?}"
    );
    // The kept connection may break first; the next call finds nobody.
    let answer = call(&upstream, "t", json!({})).await;
    assert_eq!(answer.map_err(|failure| failure.sent()), Err(HasLeft::No));
    event_where(&mut events, |event| matches!(event, Event::Gone { .. })).await;
}

#[tokio::test]
async fn a_closed_upstream_answers_nothing() {
    let web = calls(|seen| Sent::Json(200, seen.answer("{}"))).await;
    let upstream = reach(&web).await;
    upstream.close().await;
    let answer = upstream.ask(crate::support::other("x/y", json!({})), &Context::anonymous()).await;
    assert_eq!(answer.map_err(|failure| failure.sent()), Err(HasLeft::No));
}

/// A server that another takes the place of when `swapped` is set.
async fn replaced(
    first: fn(&Seen) -> Sent,
    second: fn(&Seen) -> Sent,
) -> (Web, Arc<std::sync::atomic::AtomicBool>) {
    let swapped = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let now = Arc::clone(&swapped);
    let script =
        move |seen: &Seen| if now.load(Ordering::SeqCst) { second(seen) } else { first(seen) };
    (Web::serve(script).await, swapped)
}

fn modern_only(seen: &Seen) -> Sent {
    if seen.body["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"].is_string() {
        return modern(seen);
    }
    let id = &seen.body["id"];
    let error = r#"{"code":-32022,"message":"no","data":{"supported":["2026-07-28"]}}"#;
    Sent::Json(400, format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#))
}

fn sessions_only(seen: &Seen) -> Sent {
    if seen.header("mcp-session-id").is_some() || seen.method() == "initialize" {
        return legacy(seen);
    }
    let error = r#"{"code":-32001,"message":"Session not found"}"#;
    Sent::Json(404, format!(r#"{{"jsonrpc":"2.0","id":null,"error":{error}}}"#))
}

#[tokio::test]
async fn a_server_that_was_replaced_by_one_of_another_revision_is_given_up_and_found_again() {
    for (first, second, revision) in [
        (legacy as fn(&Seen) -> Sent, modern_only as fn(&Seen) -> Sent, Revision::LATEST),
        (modern, sessions_only, Revision::V2025_11_25),
    ] {
        let (web, swapped) = replaced(first, second).await;
        let upstream = reach(&web).await;
        let era = Era::Remembered(upstream.revision());
        swapped.store(true, Ordering::SeqCst);
        let failure = call(&upstream, "t", json!({})).await.unwrap_err();
        assert_eq!(failure.sent(), HasLeft::No, "{failure}");
        assert!(upstream.gone().is_some(), "{failure}");
        let options = Options { era, ..options() };
        let again = connect(&target(&web.url), &options, &client()).await.unwrap();
        assert_eq!(again.revision(), revision);
    }
}

#[tokio::test]
async fn a_list_that_is_refused_at_first_is_read_a_moment_later() {
    let n_asked = AtomicU32::new(0);
    let web = Web::serve(move |seen| match seen.method() {
        "tools/list" if n_asked.fetch_add(1, Ordering::SeqCst) < 2 => {
            let id = &seen.body["id"];
            let error = r#"{"code":-32603,"message":"starting up"}"#;
            Sent::Json(200, format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#))
        }
        _ => legacy(seen),
    })
    .await;
    let upstream = reach(&web).await;
    let mut events = upstream.events();
    assert_eq!(upstream.listing().unread, [Kind::Tools]);
    event_where(&mut events, |event| matches!(event, Event::Changed(Kind::Tools))).await;
    let listing = upstream.listing();
    assert_eq!((listing.tools.len(), listing.unread.len()), (1, 0));
    assert!(listing.findings.is_empty(), "{:?}", listing.findings);
}

#[tokio::test]
async fn what_came_instead_of_an_answer_is_said() {
    for (headers, body, word) in [
        (vec![("content-type", "text/html".to_owned())], "<html>login", "`text/html`"),
        (vec![("content-encoding", "gzip".to_owned())], "\u{1f}", "`gzip`"),
    ] {
        let web = calls(move |_| Sent::Plain(200, headers.clone(), body.to_owned())).await;
        let told = call(&*reach(&web).await, "t", json!({})).await.unwrap_err().to_string();
        assert!(told.contains(word), "{told}");
    }
}

#[tokio::test]
async fn a_redirect_that_would_lose_the_question_is_not_followed() {
    let web = calls(|_| Sent::Plain(301, vec![("location", "/moved".to_owned())], String::new()));
    let web = web.await;
    let told = call(&*reach(&web).await, "t", json!({})).await.unwrap_err().to_string();
    assert!(told.contains("it redirects to /moved"), "{told}");
}

#[tokio::test]
async fn a_404_to_the_very_question_is_the_servers_own_answer() {
    let web = calls(|seen| {
        let id = &seen.body["id"];
        let error = r#"{"code":-32601,"message":"no such method"}"#;
        Sent::Json(404, format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#))
    })
    .await;
    let answer = call(&*reach(&web).await, "t", json!({})).await;
    let Ok(tool::Reply::Error(error)) = answer else { panic!("{answer:?}") };
    assert_eq!(error.code, -32601);
    assert_eq!(web.asked("initialize").len(), 1);
}

#[tokio::test]
async fn a_question_that_the_server_takes_back_is_not_answered() {
    let (tell, told) = tokio::sync::mpsc::unbounded_channel();
    let told = Arc::new(tokio::sync::Mutex::new(told));
    let say = tell.clone();
    let web = calls(move |seen| {
        let asks = r#"{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":{}}"#;
        let back =
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q"}}"#;
        for text in [asks, back, &seen.answer("{}")] {
            say.send(event(text)).unwrap();
        }
        Sent::Live(Arc::clone(&told))
    })
    .await;
    let upstream = reach(&web).await;
    let context = crate::support::slow_human();
    result(call_in(&upstream, "t", json!({}), &context).await);
    upstream.close().await;
    assert!(web.seen().iter().all(|seen| seen.body["id"] != "q"));
    drop(tell);
}

#[tokio::test]
async fn time_in_which_the_client_is_asked_is_not_the_servers_over_http() {
    let (tell, told) = tokio::sync::mpsc::unbounded_channel();
    let told = Arc::new(tokio::sync::Mutex::new(told));
    let asking = std::sync::Mutex::new(String::new());
    let web = Web::serve(move |seen| match seen.method() {
        "tools/call" => {
            *asking.lock().unwrap() = seen.answer("{}");
            let asks =
                r#"{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":{}}"#;
            tell.send(event(asks)).unwrap();
            Sent::Live(Arc::clone(&told))
        }
        "" if seen.body["id"] == "q" => {
            tell.send(event(&asking.lock().unwrap())).unwrap();
            Sent::Plain(202, vec![], String::new())
        }
        _ => legacy(seen),
    })
    .await;
    let patience = Patience::of(Duration::from_millis(300));
    let options = Options { patience, ..options() };
    let upstream = connect(&target(&web.url), &options, &client()).await.unwrap();
    result(call_in(&upstream, "t", json!({}), &crate::support::slow_human()).await);
}

#[tokio::test]
async fn an_older_server_is_told_how_much_a_modern_question_wants_logged() {
    let opened = OPENED.replace(r#""tools":"#, r#""logging":{},"tools":"#);
    let web = Web::serve(move |seen| match seen.method() {
        "initialize" => Sent::Json(200, seen.answer(&opened)),
        "tools/call" | "logging/setLevel" => Sent::Json(200, seen.answer("{}")),
        _ => legacy(seen),
    })
    .await;
    let upstream = reach(&web).await;
    for level in ["info", "debug", "info"] {
        let mut call = tool::Call::new("t", json!({}).into());
        let about = json!({"io.modelcontextprotocol/logLevel": level});
        call.rest.set("_meta", about.into());
        result(upstream.ask(tool::Ask::Call(call), &Context::anonymous()).await);
    }
    let told: Vec<_> = web.asked("logging/setLevel");
    let told: Vec<_> = told.iter().map(|seen| &seen.body["params"]["level"]).collect();
    assert_eq!(told, ["info", "debug"]);
    assert!(web.asked("tools/call").iter().all(|seen| seen.body["params"]["_meta"].is_null()));
}

/// A server whose calls ask something, and are answered when `take` says that
/// the answer to their question has arrived.
async fn asking(take: impl Fn(&Seen) -> Sent + Send + Sync + 'static) -> Web {
    type Calls = std::collections::HashMap<String, tokio::sync::mpsc::UnboundedSender<String>>;
    let calls = std::sync::Mutex::new(Calls::new());
    Web::serve(move |seen| {
        let id = &seen.body["id"];
        match (seen.verb.as_str(), seen.method()) {
            (_, "tools/call") => {
                let (tell, told) = tokio::sync::mpsc::unbounded_channel();
                let question = json!({"jsonrpc": "2.0", "id": format!("q{id}"), "method": "sampling/createMessage", "params": seen.body["params"]["arguments"]});
                tell.send(event(&question.to_string())).unwrap();
                calls.lock().unwrap().insert(format!("q{id}"), tell);
                Sent::Live(Arc::new(tokio::sync::Mutex::new(told)))
            }
            ("POST", "") => {
                let taken = take(seen);
                if let Sent::Plain(202, ..) | Sent::Held(..) = taken {
                    let question = id.as_str().unwrap();
                    let answer = json!({"jsonrpc": "2.0", "id": question[1..].parse::<u64>().unwrap(), "result": {"content": []}});
                    calls.lock().unwrap()[question].send(event(&answer.to_string())).ok();
                }
                taken
            }
            _ => legacy(seen),
        }
    })
    .await
}

#[tokio::test]
async fn an_answer_that_meets_a_server_that_is_away_for_a_moment_goes_again() {
    let away: [fn() -> Sent; 6] = [
        || Sent::Plain(502, vec![], String::new()),
        || Sent::Plain(503, vec![], String::new()),
        || Sent::Plain(504, vec![], String::new()),
        || Sent::Plain(429, vec![("retry-after", "0".to_owned())], String::new()),
        || Sent::Plain(401, vec![], String::new()),
        || Sent::Nothing,
    ];
    for away in away {
        let n_sent = AtomicU32::new(0);
        let web = asking(move |_| match n_sent.fetch_add(1, Ordering::SeqCst) {
            0 => away(),
            _ => Sent::Plain(202, vec![], String::new()),
        })
        .await;
        let upstream = reach(&web).await;
        let context = Listener::answering(r#"{"n":1}"#).context("s");
        result(call_in(&upstream, "t", json!({}), &context).await);
        let answers = web.seen().into_iter().filter(|seen| seen.body["result"]["n"] == 1);
        assert_eq!(answers.count(), 2);
    }
}

#[tokio::test]
async fn a_call_whose_server_does_not_take_the_answer_it_asked_for_fails() {
    let web = asking(|_| Sent::Plain(404, vec![], "no such session".to_owned())).await;
    let upstream = reach(&web).await;
    let context = Listener::answering("{}").context("s");
    let failure = call_in(&upstream, "t", json!({}), &context).await.unwrap_err();
    assert_eq!(failure.sent(), HasLeft::Perhaps);
    let told = failure.to_string();
    assert!(told.contains("the answer did not reach it: unavailable: HTTP 404"), "{told}");
}

#[tokio::test]
async fn the_word_that_a_session_is_open_goes_again_too() {
    let n_sent = AtomicU32::new(0);
    let web = Web::serve(move |seen| match seen.method() {
        "notifications/initialized" if n_sent.fetch_add(1, Ordering::SeqCst) == 0 => {
            Sent::Plain(503, vec![], String::new())
        }
        _ => legacy(seen),
    })
    .await;
    reach(&web).await;
    let methods: Vec<_> = web.seen().iter().map(|seen| seen.method().to_owned()).collect();
    let word = "notifications/initialized";
    let expected = ["server/discover", "initialize", word, word, "tools/list"];
    assert_eq!(
        methods.into_iter().filter(|method| !method.is_empty()).collect::<Vec<_>>(),
        expected
    );
}

#[tokio::test]
async fn a_server_that_takes_one_answer_slowly_keeps_no_other_waiting() {
    let go = Arc::new(tokio::sync::Notify::new());
    let slow = Arc::clone(&go);
    let web = asking(move |seen| match seen.body["result"]["slow"].as_bool() {
        Some(true) => Sent::Held(Arc::clone(&slow), String::new()),
        _ => Sent::Plain(202, vec![], String::new()),
    })
    .await;
    let upstream = reach(&web).await;
    let [one, other] = [r#"{"slow":true}"#, "{}"].map(Listener::answering);
    let (one, other) = (one.context("one"), other.context("other"));
    result(call_in(&upstream, "t", json!({}), &one).await);
    // Nobody has heard yet that the first answer was taken.
    let second = call_in(&upstream, "t", json!({}), &other);
    let second = tokio::time::timeout(Duration::from_secs(15), second).await;
    result(second.expect("the second answer waits for the first"));
    go.notify_one();
}

#[tokio::test]
async fn a_server_that_wants_no_pause_between_empty_streams_gets_some() {
    let since = std::sync::OnceLock::new();
    let opened = Arc::new(std::sync::Mutex::new(Vec::new()));
    let book = Arc::clone(&opened);
    let web = Web::serve(move |seen| match seen.verb.as_str() {
        "GET" => {
            let since = since.get_or_init(tokio::time::Instant::now);
            book.lock().unwrap().push(since.elapsed());
            Sent::Events(vec!["retry: 0\n\n: nothing".to_owned()])
        }
        _ => legacy(seen),
    })
    .await;
    let _upstream = reach(&web).await;
    let third = async {
        while opened.lock().unwrap().len() < 3 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), third).await.unwrap();
    let opened = opened.lock().unwrap();
    assert!(Duration::from_millis(700) < opened[2], "{opened:?}");
}

#[tokio::test]
async fn a_connection_is_kept_for_who_asks_often_and_not_for_long() {
    let web = calls(|seen| Sent::Json(200, seen.answer("{}"))).await;
    let upstream = reach(&web).await;
    for _ in 0..20 {
        result(call(&upstream, "t", json!({})).await);
    }
    let visits = || web.asked("tools/call").into_iter().map(|seen| seen.visit);
    let before: std::collections::BTreeSet<_> = visits().collect();
    assert!(before.len() < 20, "{before:?}");
    tokio::time::sleep(Duration::from_millis(2100)).await;
    result(call(&upstream, "t", json!({})).await);
    let last = visits().next_back().unwrap();
    assert!(!before.contains(&last), "a server may have closed it by now");
}

#[tokio::test]
async fn a_question_that_is_cut_off_goes_again_where_that_does_no_harm() {
    let n_read = AtomicU32::new(0);
    let web = Web::serve(move |seen| match seen.method() {
        "resources/read" => match n_read.fetch_add(1, Ordering::SeqCst) {
            0 => Sent::Nothing,
            _ => Sent::Json(200, seen.answer(r#"{"contents":[]}"#)),
        },
        "tools/call" => Sent::Nothing,
        _ => legacy(seen),
    })
    .await;
    let upstream = reach(&web).await;
    let read = tool::Ask::Read(tool::Read { uri: "test://a".to_owned(), rest: Object::new() });
    result(upstream.ask(read, &Context::anonymous()).await);
    assert_eq!(web.asked("resources/read").len(), 2);
    let failure = call(&upstream, "t", json!({})).await.unwrap_err();
    assert_eq!(failure.sent(), HasLeft::Perhaps, "{failure}");
    assert_eq!(web.asked("tools/call").len(), 1, "it may have run");
}

#[tokio::test]
async fn an_older_server_is_asked_again_who_it_is_on_a_session_of_its_own() {
    let counter = AtomicU32::new(1);
    let web = Web::serve(move |seen| match seen.method() {
        "initialize" => opened(seen, counter.fetch_add(1, Ordering::SeqCst)),
        "tools/call" => Sent::Json(200, seen.answer("{}")),
        _ => legacy(seen),
    })
    .await;
    let upstream = reach(&web).await;
    let ask = other("server/discover", json!({}));
    let told = result(upstream.ask(ask, &Context::anonymous()).await);
    assert_eq!(told.as_str(), OPENED);
    let ended = web.seen().into_iter().find(|seen| seen.verb == "DELETE").unwrap();
    assert_eq!(ended.header("mcp-session-id"), Some("session-2"));
    result(call(&upstream, "t", json!({})).await);
    let session = web.asked("tools/call")[0].header("mcp-session-id").unwrap().to_owned();
    assert_eq!(session, "session-1", "the session is what it was");
}

#[tokio::test]
async fn a_modern_server_is_asked_again_who_it_is() {
    let web = Web::serve(modern).await;
    let upstream = reach(&web).await;
    let ask = other("server/discover", json!({}));
    result(upstream.ask(ask, &Context::anonymous()).await);
    assert_eq!(web.asked("server/discover").len(), 2);
}
