//! Servers over HTTP with server-sent events, as in 2024-11-05.

use mcp::connect::{ConnectError, Endpoint, Target, connect};

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
