//! Sessions over Streamable HTTP, and servers that forget them or are others by now.

use super::*;

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
        let failure = answer.unwrap_err();
        assert_eq!(failure.sent(), HasLeft::Perhaps, "{failure}");
    }
    assert_eq!(web.asked("tools/call").len(), 5, "none is sent again");
    result(call(&upstream, "t", json!({})).await);
    assert_eq!(n_opened.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn what_does_no_harm_goes_again_on_the_session_that_is_opened_for_it() {
    let n_opened = AtomicU32::new(0);
    let web = Web::serve(move |seen| match (seen.method(), seen.header("mcp-session-id")) {
        ("initialize", _) => opened(seen, n_opened.fetch_add(1, Ordering::SeqCst)),
        ("resources/read", Some("session-0")) => Sent::Plain(404, vec![], String::new()),
        ("resources/read", _) => Sent::Json(200, seen.answer(r#"{"contents":[]}"#)),
        _ => legacy(seen),
    })
    .await;
    let upstream = reach(&web).await;
    let reads = (0..5).map(|_| {
        let read = tool::ReadResource { uri: "test://a".to_owned(), other_params: Object::new() };
        let upstream = &upstream;
        async move { upstream.ask(tool::Ask::ReadResource(read), &Context::anonymous()).await }
    });
    for answer in futures::future::join_all(reads).await {
        result(answer);
    }
    assert_eq!(web.asked("initialize").len(), 2);
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
    assert_eq!(answer.map_err(|failure| failure.sent()), Err(HasLeft::Perhaps));
    assert_eq!(result(call(&upstream, "t", json!({})).await).as_str(), "{}");
    assert_eq!(web.asked("tools/call").len(), 2, "the second is sent once, on the new session");
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
        let known = KnownRevision::Remembered(upstream.revision());
        swapped.store(true, Ordering::SeqCst);
        // Who answers the very question has answered it; who does not may
        // have run it.
        let answer = call(&upstream, "t", json!({})).await;
        match &answer {
            Ok(reply) => assert!(matches!(reply, tool::Reply::Error(_)), "{reply:?}"),
            Err(failure) => assert_eq!(failure.sent(), HasLeft::Perhaps, "{failure}"),
        }
        assert!(upstream.gone().is_some(), "{answer:?}");
        let options = Options { revision: known, ..options() };
        let again = connect(&target(&web.url), &options, &client()).await.unwrap();
        assert_eq!(again.revision(), revision);
    }
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

#[tokio::test]
async fn a_session_is_deleted_when_everything_ends_though_somebody_holds_it() {
    let web = calls(|_| Sent::Open(vec![])).await;
    let options = options();
    let upstream = connect(&target(&web.url), &options, &client()).await.unwrap();
    let under_way = tokio::spawn({
        let upstream = Arc::clone(&upstream);
        async move { call(&upstream, "t", json!({})).await }
    });
    until_seen(&web, |seen| seen.method() == "tools/call").await;
    assert!(options.shutdown.end_all(Duration::from_secs(10)).await);
    let last = web.seen().pop().unwrap();
    assert_eq!((last.verb.as_str(), last.header("mcp-session-id")), ("DELETE", Some("session-1")));
    let failure = under_way.await.unwrap().unwrap_err();
    assert_eq!(failure.sent(), HasLeft::Perhaps, "{failure}");
    assert!(upstream.gone().is_some());
}
