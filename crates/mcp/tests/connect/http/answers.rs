//! Questions that a server asks over Streamable HTTP, and their answers.

use super::*;

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
    let context = crate::support::silent_human();
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
    let timeouts = Timeouts::same(Duration::from_millis(300));
    let options = Options { timeouts, ..options() };
    let upstream = connect(&target(&web.url), &options, &client()).await.unwrap();
    result(call_in(&upstream, "t", json!({}), &crate::support::slow_human()).await);
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
    assert!(told.contains("the answer did not reach it: connection lost: HTTP 404"), "{told}");
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
