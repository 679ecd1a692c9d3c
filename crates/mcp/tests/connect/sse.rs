//! Servers over HTTP with server-sent events, as in 2024-11-05.

use std::sync::Arc;

use async_trait::async_trait;
use http::HeaderValue;
use mcp::connect::{ConnectError, Credential, Endpoint, Options, Refusal, Target, connect};
use tool::{Failure, Standing};

use crate::support::{client, options};
use crate::web::{Sent, Web};

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
struct Two;

#[async_trait]
impl Credential for Two {
    async fn present(&self) -> Result<Option<HeaderValue>, Failure> {
        Ok(Some(HeaderValue::from_static("Bearer old")))
    }

    async fn refused(&self, _: Option<&HeaderValue>, _: &Refusal) -> Result<HeaderValue, Failure> {
        Ok(HeaderValue::from_static("Bearer new"))
    }

    fn refused_again(&self, shown: Option<&HeaderValue>, _: &Refusal) -> Failure {
        Failure::Unauthorized { reason: format!("{shown:?} is no good") }
    }

    fn accepted(&self) {}

    fn standing(&self) -> Standing {
        Standing::Fine
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
