//! Event streams over Streamable HTTP: of calls, and those that stand.

use super::*;

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
    assert!(call(&upstream, "t", json!({})).await.is_err(), "it may have run");
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
