//! What a server answers comes out as it went in.

use serde_json::json;
use tool::{Ask, Context, Json, Provider, Reply};

use crate::support::{call, open, result};

/// Results that break typed models.
const ODD_RESULTS: [&str; 13] = [
    "{}",
    "null",
    "[]",
    "42",
    r#"{"content":[{"type":"hologram","frames":[1,2]}]}"#,
    r#"{"content":[],"isError":null}"#,
    r#"{"content":[],"n":123456789012345678901234567890,"f":1e400,"g":-0.0,"h":1.10}"#,
    r#"{"content":[],"content":[{"type":"text","text":"twice"}]}"#,
    r#"{"tools":[],"messages":[],"contents":[],"content":[]}"#,
    r#"{"_meta":5}"#,
    r#"{"_meta":{"":null,"a/b":[{ }]},"content":[{"type":"text","text":"\ud83d\ude00 \u0000 \ud800"}]}"#,
    r#"{ "spaced" : [ 1 , 2 ] , "content":[{"type":"text","annotations":{"audience":["robots"],"x":1}}] }"#,
    r#"{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}},"requestState":"opaque"}"#,
];

#[tokio::test]
async fn odd_results_come_through_byte_for_byte() {
    let upstream = open("plain").await;
    for odd in ODD_RESULTS {
        let answer = call(&upstream, "say", json!({"result": odd})).await;
        assert_eq!(result(answer).as_str(), odd);
    }
}

#[tokio::test]
async fn odd_errors_come_through_byte_for_byte() {
    let upstream = open("plain").await;
    for odd in [
        r#"{"code":-32000,"message":"m","data":{"big":1e400},"x":[ ]}"#,
        r#"{"code":"E_ODD","message":null}"#,
        "[]",
        "7",
    ] {
        let answer = call(&upstream, "fail", json!({"error": odd})).await;
        let Ok(Reply::Error(error)) = answer else { panic!("{odd}: {answer:?}") };
        assert_eq!(error.raw.as_str(), odd);
    }
}

#[tokio::test]
async fn odd_params_reach_the_server_byte_for_byte() {
    let upstream = open("plain").await;
    let params = r#"{"name":"params","arguments":{"a": 1e400,"a":[ 1.0 ],"":{}},"_meta":{"v":{ }},"task":{"ttl":1},"odd":null}"#;
    let ask = Ask::parse("tools/call", &Json::parse(params).unwrap()).unwrap();
    let answer = upstream.ask(ask, &Context::anonymous()).await;
    assert_eq!(result(answer).as_str(), params);
}

#[tokio::test]
async fn definitions_and_identity_are_kept_whole() {
    let upstream = open("plain").await;
    let listing = upstream.listing();
    assert_eq!(
        listing.tools[1].raw.as_str(),
        r#"{"name":"odd","inputSchema":{"type":"object","x":1e400},"execution":{"taskSupport":"optional"},"x-vendor":[1 ,2],"annotations":{"audience":["robots"]}}"#
    );
    assert_eq!(listing.server.raw.as_str(), r#"{"name":"scripted","version":"1","x":1e400}"#);
    assert_eq!(listing.server.capabilities.member("x-odd").unwrap().as_str(), r#"{"n":1e400}"#);
    assert_eq!(listing.server.instructions.as_deref(), Some("be odd"));
    assert_eq!((listing.resources.len(), listing.prompts.len()), (1, 1));
    assert!(listing.findings.is_empty(), "{:?}", listing.findings);
}

#[tokio::test]
async fn every_page_of_a_list_is_read() {
    let upstream = open("pages").await;
    let names: Vec<_> = upstream.listing().tools.iter().map(|tool| tool.name.clone()).collect();
    assert_eq!(names, ["tool_0", "tool_1", "tool_2"]);
}

#[tokio::test]
async fn methods_that_nobody_here_knows_pass_through() {
    let upstream = open("plain").await;
    let params = json!({"taskId": "7", "n": 1});
    let ask = crate::support::other("echo/params", params.clone());
    let answer = upstream.ask(ask, &Context::anonymous()).await;
    assert_eq!(result(answer).to_value().unwrap(), params);
}

#[tokio::test]
async fn a_hundred_questions_at_once_get_each_its_own_answer() {
    let upstream = open("plain").await;
    let asks = (0..100).map(|n| {
        let upstream = &upstream;
        async move {
            let said = format!(r#"{{"n":{n}}}"#);
            assert_eq!(result(call(upstream, "say", json!({"result": said})).await).as_str(), said);
        }
    });
    futures::future::join_all(asks).await;
}
