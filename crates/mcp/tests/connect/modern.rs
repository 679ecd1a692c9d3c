//! A modern server, which has no session.

use mcp::connect::{KnownRevision, Options};
use mcp::revision::Revision;
use serde_json::{Value, json};
use tool::{Context, Event, Kind, Provider};

use crate::support::{
    Listener, call, call_in, event_where, open, options, other, result, try_open,
};

#[tokio::test]
async fn a_modern_server_is_recognised_and_names_itself() {
    let upstream = open("modern").await;
    assert_eq!(upstream.revision(), Revision::V2026_07_28);
    let listing = upstream.listing();
    assert_eq!((listing.server.name.as_str(), listing.server.version.as_str()), ("scripted", "2"));
    assert_eq!(listing.server.protocol, "2026-07-28");
    let lifetime = tool::Lifetime { milliseconds: 5, is_public: false };
    assert_eq!(listing.lifetimes.tools, Some(lifetime));
}

#[tokio::test]
async fn an_era_that_was_remembered_wrongly_is_found_out() {
    let revision = KnownRevision::Remembered(Revision::V2026_07_28);
    let upstream = try_open("plain", &Options { revision, ..options() }).await.unwrap();
    assert_eq!(upstream.revision(), Revision::V2025_11_25);
}

#[tokio::test]
async fn every_question_carries_what_its_own_client_can_do() {
    let upstream = open("modern").await;
    let listener = Listener::answering("{}");
    let params = result(call_in(&upstream, "params", json!({}), &listener.context("s")).await);
    let meta = params.to_value().unwrap()["_meta"].clone();
    assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], json!({"sampling": {}}));
    assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "test");
    // Another client, other capabilities, on the same upstream.
    let params = result(call(&upstream, "params", json!({})).await);
    let capabilities =
        &params.to_value().unwrap()["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    assert_eq!(*capabilities, json!({}));
}

#[tokio::test]
async fn what_is_asked_of_the_client_comes_back_as_the_answer_it_is() {
    let upstream = open("modern").await;
    let asked = r#"{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}},"requestState":"s"}"#;
    let answer = call(&upstream, "say", json!({"result": asked})).await;
    assert_eq!(result(answer).as_str(), asked);
}

#[tokio::test]
async fn changes_are_listened_to() {
    let upstream = open("modern").await;
    let mut events = upstream.events();
    result(call(&upstream, "change", json!({"add": 1})).await);
    event_where(&mut events, |event| *event == Event::Changed(Kind::Tools)).await;
    assert_eq!(upstream.listing().tools.last().unwrap().name, "added_0");
}

#[tokio::test]
async fn a_subscription_becomes_a_stream_that_is_listened_to() {
    let upstream = open("modern").await;
    let mut events = upstream.events();
    let context = Context::anonymous();
    let uri = json!({"uri": "a://b"});
    let answer = upstream.ask(other("resources/subscribe", uri.clone()), &context).await;
    assert_eq!(result(answer).as_str(), "{}");
    result(call(&upstream, "update", json!({})).await);
    let event = event_where(&mut events, |event| matches!(event, Event::Updated { .. })).await;
    let Event::Updated { notification, .. } = event else { panic!() };
    // Our own number for the stream is of no use to anybody else.
    assert_eq!(notification.params.to_json().as_str(), r#"{"uri":"a://b"}"#);
    let answer = upstream.ask(other("resources/unsubscribe", uri), &context).await;
    assert_eq!(result(answer).as_str(), "{}");
    // The old stream is closed twice: once for each change of what is wanted.
    let n_cancelled = async || {
        let cancelled = result(call(&upstream, "cancelled", json!({})).await);
        cancelled.parse_as::<Vec<Value>>().unwrap().len()
    };
    while n_cancelled().await < 2 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_ping_needs_no_journey() {
    let upstream = open("modern").await;
    let answer = upstream.ask(other("ping", json!({})), &Context::anonymous()).await;
    assert_eq!(result(answer).as_str(), "{}");
}
