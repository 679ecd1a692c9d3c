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
            let ran = web.asked("tools/call").into_iter();
            let ran = ran.filter(|seen| seen.body["params"]["arguments"]["mark"] == what).count();
            // 401 and 403 are never tried again by anybody, and tell a human
            // what to do.
            if ![401, 403].contains(&status) {
                assert_eq!(ran, 1, "{what}: {outcome:?}");
                if let Err(failure) = &outcome {
                    assert_eq!(failure.sent(), HasLeft::Perhaps, "{what}");
                }
                let has_body = ![101, 204, 205, 304].contains(&status);
                if has_body && matches!(*kind, "error" | "session" | "result") {
                    assert!(outcome.is_ok(), "the server answered: {what}: {outcome:?}");
                }
            }
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
