//! Messages, and the state machine that serves a client.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mcp::message::{Frame, Message};
use serde_json::json;
use testkit::fuzz::Dictionary;
use tool::{FixedProvider, Json, Object, Reply};

use crate::{JSON, Target, text};

static MESSAGES: Dictionary = Dictionary {
    seeds: &[
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"b":1}}}"#,
        r#"{"jsonrpc":"2.0","id":"x","result":{"content":[{"type":"text","text":"a"}]}}"#,
        r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"no","data":{}}}"#,
        r#"[{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}]"#,
    ],
    words: JSON,
};

static CONVERSATION: Dictionary = Dictionary {
    seeds: &[concat!(
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","#,
        r#""capabilities":{},"clientInfo":{"name":"f","version":"1"}}}"#,
        "\n",
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        "\n",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
        "\n",
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}"#,
        "\n",
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#,
        "\n",
    )],
    words: &[
        "\n",
        "{",
        "[",
        "]",
        "}",
        "\"",
        "\"id\":1,",
        "\"id\":null,",
        "\"method\":\"ping\"",
        "\"method\":\"resources/subscribe\"",
        "\"method\":\"logging/setLevel\"",
        "\"params\":{},",
        "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}\n",
        "[1,1,1]\n",
    ],
};

pub(crate) const TARGETS: &[Target] = &[
    Target { name: "json", dictionary: &MESSAGES, check: read_json },
    Target { name: "json_scan", dictionary: &MESSAGES, check: scan },
    Target { name: "message", dictionary: &MESSAGES, check: message },
    Target { name: "serve", dictionary: &CONVERSATION, check: serve },
];

fn read_json(bytes: &[u8]) {
    let Ok(json) = Json::parse(bytes.to_vec()) else { return };
    let _ = (json.string_value(), json.to_value(), json.member("a"));
    if let Ok(object) = Object::parse(&json) {
        assert!(Object::parse(&object.to_json()).is_ok(), "an object is written as one");
    }
}

fn scan(bytes: &[u8]) {
    let text = text(bytes);
    let mut members = 0;
    let whole = tool::scan::scan_members(&text, |_, _| members += 1);
    if whole.is_some() {
        let known = serde_json::from_str::<serde::de::IgnoredAny>(&text);
        assert!(known.is_ok() || 0 < members, "what is scanned whole is JSON");
    }
    let _ = tool::scan::scan_value(&text);
}

fn message(bytes: &[u8]) {
    let bytes = Bytes::copy_from_slice(bytes);
    let _ = Message::parse(&bytes);
    let _ = Frame::parse(&bytes);
    let _ = mcp::message::excerpt(&bytes);
}

/// A client that says anything is served until its end of the pipe is closed.
fn serve(bytes: &[u8]) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .expect("a runtime can be made");
    let tools = vec![testkit::tool("a", "Answers.", &json!({"type": "object"}))];
    let answer = |_: &tool::Ask| Ok(Reply::Result(json!({"content": []}).into()));
    let provider = testkit::Scripted::new(testkit::listing(tools), answer);
    let source = Arc::new(FixedProvider(provider));
    let options = mcp::serve::stdio::Options::default();
    let reader = std::io::Cursor::new(bytes.to_vec());
    let serving = mcp::serve::stdio::serve(source, reader, tokio::io::sink(), options);
    runtime.block_on(async {
        let served = tokio::time::timeout(Duration::from_secs(600), serving).await;
        assert!(served.is_ok(), "a pipe that is closed is served to its end");
    });
}
