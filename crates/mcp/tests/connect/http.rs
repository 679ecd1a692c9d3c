//! Servers over Streamable HTTP.

mod answers;
mod effects;
mod sessions;
mod streams;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use mcp::connect::{ConnectError, Endpoint, KnownRevision, Options, Target, Upstream, connect};
use mcp::peer::Timeouts;
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

/// Lets so much time pass at once, for whoever asks tokio what time it is.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
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
async fn refusals_are_told_apart() {
    type Case = (u16, Vec<(&'static str, String)>, fn(&Failure) -> bool);
    let cases: [Case; 6] = [
        (401, vec![("www-authenticate", "Bearer".to_owned())], |failure| {
            let reason = "HTTP 401 Unauthorized: Bearer".to_owned();
            *failure == Failure::Unauthorized { reason, sent: HasLeft::No }
        }),
        (403, vec![], |failure| {
            matches!(failure, Failure::Forbidden { sent: HasLeft::Perhaps, .. })
        }),
        (429, vec![("retry-after", "7".to_owned())], |failure| {
            let retry_after = Some(Duration::from_secs(7));
            *failure == Failure::RateLimited { retry_after, sent: HasLeft::Perhaps }
        }),
        (503, vec![], |failure| failure.sent() == HasLeft::Perhaps),
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
    let timeouts = Timeouts::same(Duration::from_millis(200));
    let options = Options { timeouts, ..options() };
    let upstream = connect(&target(&web.url), &options, &client()).await.unwrap();
    let answer = call(&upstream, "t", json!({})).await;
    assert_eq!(answer, Err(Failure::Timeout { after: Duration::from_millis(200) }));
    while web.asked("notifications/cancelled").is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let asked = web.asked("tools/call").remove(0).body["id"].clone();
    assert_eq!(web.asked("notifications/cancelled")[0].body["params"]["requestId"], asked);
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
    let options = Options { revision: KnownRevision::Pinned(Revision::V2025_11_25), ..options() };
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
    assert_eq!(upstream.listing().failed_lists, [Kind::Tools]);
    event_where(&mut events, |event| matches!(event, Event::Changed(Kind::Tools))).await;
    let listing = upstream.listing();
    assert_eq!((listing.tools.len(), listing.failed_lists.len()), (1, 0));
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
        call.other_params.set("_meta", about.into());
        result(upstream.ask(tool::Ask::Call(call), &Context::anonymous()).await);
    }
    let told: Vec<_> = web.asked("logging/setLevel");
    let told: Vec<_> = told.iter().map(|seen| &seen.body["params"]["level"]).collect();
    assert_eq!(told, ["info", "debug"]);
    assert!(web.asked("tools/call").iter().all(|seen| seen.body["params"]["_meta"].is_null()));
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
    pass(Duration::from_millis(2100)).await;
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
    let read = tool::Ask::ReadResource(tool::ReadResource {
        uri: "test://a".to_owned(),
        other_params: Object::new(),
    });
    result(upstream.ask(read, &Context::anonymous()).await);
    assert_eq!(web.asked("resources/read").len(), 2);
    let failure = call(&upstream, "t", json!({})).await.unwrap_err();
    assert_eq!(failure.sent(), HasLeft::Perhaps, "{failure}");
    assert_eq!(web.asked("tools/call").len(), 1, "it may have run");
}
