//! Servers over HTTP with server-sent events, as in 2024-11-05.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use http::HeaderValue;
use mcp::connect::{
    ConnectError, Credential, Endpoint, Options, Refusal, Target, Upstream, connect,
};
use serde_json::json;
use tool::{CredentialHealth, Failure};

use crate::support::{Listener, call, call_in, client, options};
use crate::web::{Seen, Sent, Web};

async fn refusal(endpoint: &'static str) -> ConnectError {
    let web =
        Web::serve(move |_| Sent::Open(vec![format!("event: endpoint\ndata: {endpoint}")])).await;
    let target = Target::Sse(Endpoint { url: web.url.clone(), ..Endpoint::default() });
    match connect(&target, &options(), &client()).await {
        Ok(_) => panic!("it was opened"),
        Err(error) => error,
    }
}

#[tokio::test]
async fn a_server_cannot_send_our_messages_to_somebody_else() {
    for endpoint in ["http://evil.example/messages", "//evil.example/x", "https://127.0.0.1/x"] {
        let error = refusal(endpoint).await;
        assert!(error.to_string().ends_with("is on another server"), "{error}");
    }
}

#[tokio::test]
async fn what_is_no_event_stream_is_refused() {
    let web = Web::serve(|_| Sent::Json(200, "{}".to_owned())).await;
    let target = Target::Sse(Endpoint { url: web.url.clone(), ..Endpoint::default() });
    let error = connect(&target, &options(), &client()).await.err().unwrap();
    assert!(matches!(error, ConnectError::Unreachable { .. }), "{error}");
}

/// Has one token, then another, then none.
pub(crate) struct Two;

#[async_trait]
impl Credential for Two {
    async fn present(&self) -> Result<Option<HeaderValue>, Failure> {
        Ok(Some(HeaderValue::from_static("Bearer old")))
    }

    async fn refused(&self, _: Option<&HeaderValue>, _: &Refusal) -> Result<HeaderValue, Failure> {
        Ok(HeaderValue::from_static("Bearer new"))
    }

    fn refused_again(&self, shown: Option<&HeaderValue>, _: &Refusal) -> Failure {
        let reason = format!("{shown:?} is no good");
        Failure::Unauthorized { reason, sent: tool::Sent::No }
    }

    fn accepted(&self) {}

    fn credential_health(&self) -> CredentialHealth {
        CredentialHealth::Fine
    }
}

/// What was shown to a server that takes `good`, and how it ended.
async fn shown(good: &'static str) -> (Vec<String>, ConnectError) {
    let web = Web::serve(move |seen| match seen.header("authorization") {
        Some(token) if token == good => Sent::Json(200, "{}".to_owned()),
        Some(_) | None => {
            Sent::Plain(401, vec![("WWW-Authenticate", "Bearer".to_owned())], String::new())
        }
    })
    .await;
    let target = Target::Sse(Endpoint { url: web.url.clone(), ..Endpoint::default() });
    let options = Options { credential: Some(Arc::new(Two)), ..options() };
    let error = connect(&target, &options, &client()).await.err().unwrap();
    let seen = web.seen();
    let tokens = seen.iter().filter_map(|seen| seen.header("authorization"));
    (tokens.map(str::to_owned).collect(), error)
}

#[tokio::test]
async fn a_refused_token_is_replaced_once() {
    let (tokens, error) = shown("Bearer new").await;
    assert_eq!(tokens, ["Bearer old", "Bearer new"]);
    assert!(
        matches!(error, ConnectError::Unreachable { .. }),
        "it got as far as the page: {error}"
    );
    let (tokens, error) = shown("Bearer none").await;
    assert_eq!(tokens, ["Bearer old", "Bearer new"]);
    assert!(matches!(error, ConnectError::Unauthorized { .. }), "{error}");
}

const OPENED: &str = r#"{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"old","version":"1"}}"#;

/// A server of the first revision, whose answers come on the stream. `script`
/// says how a message is taken, where that is not the usual way.
async fn older(script: impl Fn(&Seen) -> Option<Sent> + Send + Sync + 'static) -> Web {
    let (tell, told) = tokio::sync::mpsc::unbounded_channel();
    tell.send("event: endpoint\ndata: /mcp".to_owned()).unwrap();
    let told = Arc::new(tokio::sync::Mutex::new(told));
    Web::serve(move |seen| {
        if seen.verb == "GET" {
            return Sent::Live(Arc::clone(&told));
        }
        let result = match seen.method() {
            "initialize" => OPENED,
            "tools/list" => r#"{"tools":[]}"#,
            _ => r#"{"content":[]}"#,
        };
        let taken = script(seen);
        let refused = matches!(taken, Some(Sent::Plain(400.., _, _)));
        if seen.body.get("id").is_some() && !refused {
            tell.send(format!("data: {}", seen.answer(result))).unwrap();
        }
        taken.unwrap_or(Sent::Plain(202, vec![], String::new()))
    })
    .await
}

async fn enter(web: &Web) -> Arc<Upstream> {
    let target = Target::Sse(Endpoint { url: web.url.clone(), ..Endpoint::default() });
    connect(&target, &options(), &client()).await.unwrap()
}

#[tokio::test]
async fn a_refused_message_fails_its_own_call_and_nothing_else() {
    let web = older(|seen| {
        let after = vec![("retry-after", "7".to_owned())];
        (seen.body["params"]["name"] == "busy").then(|| Sent::Plain(429, after, String::new()))
    })
    .await;
    let upstream = enter(&web).await;
    let refused = call(&upstream, "busy", json!({})).await;
    let retry_after = Some(std::time::Duration::from_secs(7));
    assert_eq!(refused, Err(Failure::RateLimited { retry_after, sent: tool::Sent::Perhaps }));
    assert!(call(&upstream, "t", json!({})).await.is_ok());
    assert_eq!(upstream.gone(), None);
}

/// A server that answers a call of `slow` at once, and takes it when told to.
async fn taking_its_time(go: &Arc<tokio::sync::Notify>) -> Web {
    let done = Arc::clone(go);
    older(move |seen| {
        let slow = seen.body["params"]["name"] == "slow";
        slow.then(|| Sent::Held(Arc::clone(&done), String::new()))
    })
    .await
}

#[tokio::test]
async fn a_message_that_is_taken_when_all_is_done_holds_nothing_up() {
    let go = Arc::new(tokio::sync::Notify::new());
    let web = taking_its_time(&go).await;
    let upstream = enter(&web).await;
    assert!(call(&upstream, "slow", json!({})).await.is_ok(), "its answer is on the stream");
    assert!(call(&upstream, "t", json!({})).await.is_ok());
    go.notify_one();
}

#[tokio::test]
async fn an_answer_that_meets_a_server_that_is_away_for_a_moment_goes_again() {
    let (tell, told) = tokio::sync::mpsc::unbounded_channel();
    tell.send("event: endpoint\ndata: /mcp".to_owned()).unwrap();
    let told = Arc::new(tokio::sync::Mutex::new(told));
    let n_sent = AtomicU32::new(0);
    let web = Web::serve(move |seen| {
        let taken = Sent::Plain(202, vec![], String::new());
        let say = |text: String| tell.send(format!("data: {text}")).unwrap();
        match (seen.verb.as_str(), seen.method()) {
            ("GET", _) => return Sent::Live(Arc::clone(&told)),
            (_, "initialize") => say(seen.answer(OPENED)),
            (_, "tools/list") => say(seen.answer(r#"{"tools":[]}"#)),
            (_, "tools/call") => {
                let id = &seen.body["id"];
                say(json!({"jsonrpc": "2.0", "id": format!("q{id}"), "method": "sampling/createMessage", "params": {}}).to_string());
            }
            (_, "") => {
                if n_sent.fetch_add(1, Ordering::SeqCst) == 0 {
                    return Sent::Plain(502, vec![], String::new());
                }
                let id: u64 = seen.body["id"].as_str().unwrap()[1..].parse().unwrap();
                say(json!({"jsonrpc": "2.0", "id": id, "result": {"content": []}}).to_string());
            }
            _ => {}
        }
        taken
    })
    .await;
    let upstream = enter(&web).await;
    let context = Listener::answering(r#"{"n":1}"#).context("s");
    assert!(call_in(&upstream, "t", json!({}), &context).await.is_ok());
    let answers = web.seen().into_iter().filter(|seen| seen.body["result"]["n"] == 1);
    assert_eq!(answers.count(), 2);
}

#[tokio::test]
async fn a_call_that_speaks_of_the_opening_holds_nothing_up() {
    let go = Arc::new(tokio::sync::Notify::new());
    let web = taking_its_time(&go).await;
    let upstream = enter(&web).await;
    let word = json!({"word": "notifications/initialized"});
    assert!(call(&upstream, "slow", word).await.is_ok(), "its answer is on the stream");
    let other = call(&upstream, "t", json!({}));
    let other = tokio::time::timeout(std::time::Duration::from_secs(15), other).await;
    assert!(other.expect("it waits for the first to be taken").is_ok());
    go.notify_one();
}

#[tokio::test]
async fn an_event_stream_is_known_by_its_type_in_any_case() {
    let kind = vec![("content-type", "Text/Event-Stream; charset=utf-8".to_owned())];
    let stream = "event: endpoint\ndata: //evil.example/x\n\n";
    let web = Web::serve(move |_| Sent::Plain(200, kind.clone(), stream.to_owned())).await;
    let target = Target::Sse(Endpoint { url: web.url.clone(), ..Endpoint::default() });
    let error = connect(&target, &options(), &client()).await.err().unwrap();
    assert!(error.to_string().ends_with("is on another server"), "it was read: {error}");
}
