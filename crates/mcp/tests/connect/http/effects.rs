//! How often a call runs, whatever the server answers.

use tool::Reply;

use super::*;

/// What a server may send with a status.
const BODIES: [&str; 5] = ["empty", "error", "session", "result", "html"];

fn body(seen: &Seen, kind: &str) -> (&'static str, String) {
    let id = &seen.body["id"];
    let json = "application/json";
    match kind {
        "error" => (
            json,
            format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32000,"message":"no"}}}}"#),
        ),
        "session" => (
            json,
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32000,"message":"the browser session was closed"}}}}"#
            ),
        ),
        "result" => (json, seen.answer(r#"{"content":[]}"#)),
        "html" => ("text/html", "<html>no such session</html>".to_owned()),
        _ => (json, String::new()),
    }
}

/// Answers a call as its arguments want it.
fn as_wanted(seen: &Seen) -> Sent {
    let wanted = &seen.body["params"]["arguments"];
    let status = u16::try_from(wanted["status"].as_u64().unwrap()).unwrap();
    let (kind, mut body) = body(seen, wanted["body"].as_str().unwrap());
    if matches!(status, 101 | 204 | 205 | 304) {
        body.clear();
    }
    let mut headers = vec![("content-type", kind.to_owned()), ("connection", "close".to_owned())];
    if let Some(to) = wanted["location"].as_str() {
        headers.push(("location", to.to_owned()));
    }
    if let Some(challenge) = wanted["challenge"].as_str() {
        headers.push(("www-authenticate", challenge.to_owned()));
    }
    if status == 429 {
        headers.push(("retry-after", "0".to_owned()));
    }
    Sent::Plain(status, headers, body)
}

/// Makes one call, again and again for as long as it is known not to have run,
/// as the most eager retrying would. The last outcome.
async fn eagerly(
    upstream: &Arc<Upstream>,
    arguments: &serde_json::Value,
) -> Result<Reply, Failure> {
    let mut outcome = call(upstream, "t", arguments.clone()).await;
    for _ in 0..5 {
        match &outcome {
            Err(failure) if failure.sent() == HasLeft::No => {
                outcome = call(upstream, "t", arguments.clone()).await;
            }
            Ok(_) | Err(_) => break,
        }
    }
    outcome
}

async fn check(script: fn(&Seen) -> Sent, locations: &[&str]) {
    let web = Web::serve(move |seen| match seen.method() {
        "tools/call" => as_wanted(seen),
        _ => script(seen),
    })
    .await;
    let mut upstream = reach(&web).await;
    for status in std::iter::once(101).chain(200..600) {
        let is_redirect = (300..400).contains(&status);
        let locations = if is_redirect { locations } else { &locations[..1] };
        for (kind, location) in
            BODIES.iter().flat_map(|kind| locations.iter().map(move |location| (kind, location)))
        {
            let what = format!("HTTP {status} with {kind}, {location}");
            let mut arguments = json!({"status": status, "body": kind, "mark": what});
            if is_redirect {
                arguments["location"] = json!(location);
            }
            let outcome = eagerly(&upstream, &arguments).await;
            let ran = web.take_asked("tools/call").into_iter();
            let ran = ran.filter(|seen| seen.body["params"]["arguments"]["mark"] == what).count();
            assert_eq!(ran, 1, "{what}: {outcome:?}");
            if let Err(failure) = &outcome {
                assert_eq!(failure.sent(), HasLeft::Perhaps, "{what}");
            }
            let is_answer = match *kind {
                "result" => ![101, 204, 205, 304].contains(&status),
                // In a response that denies access it explains the status.
                "error" | "session" => ![101, 204, 205, 304, 401, 403].contains(&status),
                _ => false,
            };
            assert!(!is_answer || outcome.is_ok(), "it answered: {what}: {outcome:?}");
            if upstream.gone().is_some() {
                upstream = reach(&web).await;
            }
        }
    }
}

const LOCATIONS: [&str; 3] = ["/moved", "http://127.0.0.1:1/elsewhere", "javascript:alert(1)"];

#[tokio::test(flavor = "multi_thread")]
async fn a_call_on_a_session_runs_once_whatever_the_server_answers() {
    check(legacy, &LOCATIONS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_without_a_session_runs_once_whatever_the_server_answers() {
    check(modern, &LOCATIONS).await;
}

#[tokio::test]
async fn a_server_that_moved_is_asked_at_its_new_address_from_then_on() {
    let moved = || Sent::Plain(307, vec![("location", "/mcp/".to_owned())], String::new());
    let web = Web::serve(move |seen| match (seen.path.as_str(), seen.method()) {
        ("/mcp/", "tools/call") => Sent::Json(200, seen.answer("{}")),
        ("/mcp/", _) => legacy(seen),
        _ => moved(),
    })
    .await;
    let upstream = reach(&web).await;
    result(call(&upstream, "t", json!({})).await);
    assert_eq!(web.asked("tools/call").len(), 1, "it goes to the right address at once");
}

#[tokio::test]
async fn a_call_that_a_server_redirects_is_not_made_a_second_time_but_the_next_one_arrives() {
    let web = Web::serve(|seen| match (seen.path.as_str(), seen.method()) {
        ("/new", "tools/call") => Sent::Json(200, seen.answer("{}")),
        (_, "tools/call") => Sent::Plain(308, vec![("location", "/new".to_owned())], String::new()),
        _ => legacy(seen),
    })
    .await;
    let upstream = reach(&web).await;
    let failure = call(&upstream, "t", json!({})).await.unwrap_err();
    assert_eq!(failure.sent(), HasLeft::Perhaps, "{failure}");
    assert_eq!(web.asked("tools/call").len(), 1);
    result(call(&upstream, "t", json!({})).await);
}

/// How a server may ask for credentials, and whether that says that the call did
/// not run: for 401, and for 403.
const CHALLENGES: [(Option<&str>, bool, bool); 7] = [
    (None, false, false),
    (Some("Basic realm=\"x\""), false, false),
    (Some("Bearerish x=y"), false, false),
    (Some("Bearer"), true, false),
    (Some("bearer realm=\"x\""), true, false),
    (Some("Bearer error=\"invalid_token\""), true, false),
    (Some("Bearer error=\"insufficient_scope\", scope=\"write\""), true, true),
];

/// No credentials, some that nobody can renew, and some that are renewed.
fn credentials() -> [Option<Arc<dyn mcp::connect::Credential>>; 3] {
    let fixed =
        mcp::connect::credential::FixedHeaders::new("look after the key", Arc::new(|| 1 << 50));
    [None, Some(Arc::new(fixed)), Some(Arc::new(crate::sse::Two))]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_call_goes_again_only_where_the_refusal_says_that_it_did_not_run() {
    for credential in credentials() {
        let web = Web::serve(move |seen| match seen.method() {
            "tools/call" => as_wanted(seen),
            _ => legacy(seen),
        })
        .await;
        let options = Options { credential, ..options() };
        for (status, kind, (challenge, unrun_401, unrun_403)) in [401, 403]
            .iter()
            .flat_map(|status| BODIES.map(|kind| (status, kind)))
            .flat_map(|(status, kind)| CHALLENGES.map(|challenge| (*status, kind, challenge)))
        {
            // A fresh one each time: who was refused too often is not asked.
            let upstream = connect(&target(&web.url), &options, &client()).await.unwrap();
            let what = format!("HTTP {status} with {kind}, {challenge:?}");
            let arguments =
                json!({"status": status, "body": kind, "mark": what, "challenge": challenge});
            let outcome = call(&upstream, "t", arguments).await;
            let says_unrun = if status == 401 { unrun_401 } else { unrun_403 };
            let arrived = web.asked("tools/call").into_iter();
            let arrived =
                arrived.filter(|seen| seen.body["params"]["arguments"]["mark"] == what).count();
            match outcome {
                Ok(_) => assert_eq!((arrived, kind), (1, "result"), "{what}"),
                Err(failure) if says_unrun => assert_eq!(failure.sent(), HasLeft::No, "{what}"),
                Err(failure) => {
                    assert_eq!((arrived, failure.sent()), (1, HasLeft::Perhaps), "{what}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_call_whose_token_was_refused_before_it_ran_runs_with_the_next_one() {
    let web = calls(|seen| match seen.header("authorization") {
        Some("Bearer new") => Sent::Json(200, seen.answer(r#"{"content":[]}"#)),
        _ => Sent::Plain(401, vec![("www-authenticate", "Bearer".to_owned())], String::new()),
    })
    .await;
    let options = Options { credential: Some(Arc::new(crate::sse::Two)), ..options() };
    let upstream = connect(&target(&web.url), &options, &client()).await.unwrap();
    result(call(&upstream, "t", json!({})).await);
}

/// A server that closes a kept connection without a word, as many do after a while,
/// and a call that comes before anybody has looked at that connection.
#[tokio::test]
async fn a_call_is_not_written_into_a_connection_that_was_closed_before() {
    for _ in 0..20 {
        let [close, closed] = [(); 2].map(|()| Arc::new(tokio::sync::Notify::new()));
        let steps = [Arc::clone(&close), Arc::clone(&closed)];
        let web = calls(move |seen| match seen.body["params"]["arguments"]["n"].as_u64() {
            Some(1) => Sent::Last(steps.clone(), seen.answer("{}")),
            _ => Sent::Json(200, seen.answer("{}")),
        })
        .await;
        let upstream = reach(&web).await;
        result(call(&upstream, "t", json!({"n": 1})).await);
        close.notify_one();
        closed.notified().await;
        let second = call(&upstream, "t", json!({"n": 2})).await;
        assert!(second.is_ok(), "{second:?}");
        assert_eq!(web.asked("tools/call").len(), 2);
    }
}
