//! Looking at what is kept.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::*;

const CALL: &str = r#"{"namespace": "up", "function": "f"}"#;

/// The gated answer of the one function there is, and its handle.
async fn kept(opened: &Opened) -> (String, String) {
    let told = opened.say("call", serde_json::from_str(CALL).unwrap()).await;
    let handle = told.split("kept as `").nth(1).unwrap().split('`').next().unwrap().to_owned();
    (told, handle)
}

fn view(kwargs: &Value) -> Value {
    json!({"namespace": "gatelet", "function": "view", "kwargs": kwargs})
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

#[tokio::test(start_paused = true)]
async fn jq_is_offered_only_where_there_is_json() {
    let plain = answering(text(&"a line\n".repeat(3_000))).await;
    let (told, _) = kept(&plain).await;
    holds(&told, &["with `head`, `tail`, `lines`, or `grep`"]);
    assert!(!told.contains("jq"), "{told}");
    let data = answering(text(&rows().to_string())).await;
    holds(&kept(&data).await.0, &["`grep` or `jq`"]);
}

#[tokio::test(start_paused = true)]
async fn a_kept_image_is_seen_by_its_handle() {
    let data = BASE64.encode([7_u8; 12_000]);
    let image = json!({"type": "image", "data": data, "mimeType": "image/png"});
    let opened = answering(json!({"content": [image]})).await;
    let (told, handle) = kept(&opened).await;
    holds(&told, &[&format!(r#"{{"handle": "{handle}", "selector": {{"type": "image"}}}}"#)]);
    assert!(!told.contains("jq") && !told.contains("grep"), "{told}");
    let call = view(&json!({"handle": handle, "selector": {"type": "image"}}));
    let reply = opened.ask("call", call).await;
    let result = reply.tool_result().unwrap();
    assert_eq!(result.content[0].member_as::<String>("data").as_deref(), Some(data.as_str()));
    let bytes = json!({"type": "bytes", "start": 0, "length": 3});
    let told = opened.say("call", view(&json!({"handle": handle, "selector": bytes}))).await;
    holds(&told, &["BwcH", "base64 of bytes 0-3 of 12000"]);
    let kept = opened.say("call", view(&json!({}))).await;
    assert_eq!(kept.matches("characters").count(), 1, "nothing is kept twice: {kept}");
}

#[tokio::test(start_paused = true)]
async fn a_mixed_result_names_its_parts() {
    let opened = answering(json!({
        "content": [
            {"type": "text", "text": "word ".repeat(3_000)},
            {"type": "image", "data": "iVBORw==", "mimeType": "image/png"},
            {"type": "resource_link", "uri": "a://c", "name": "see"},
        ],
        "structuredContent": {"ok": true},
    }))
    .await;
    let (told, handle) = kept(&opened).await;
    holds(
        &told,
        &[
            "Its parts, each with a handle: ",
            &format!("`{handle}` (text/plain, 15,000 bytes)"),
            &format!("`{handle}/1` (image: image/png, 4 bytes)"),
            &format!("`{handle}/2` (see: text/uri-list, 5 bytes)"),
            &format!("`{handle}/3` (structuredContent: application/json, 11 bytes)"),
        ],
    );
    let image = view(&json!({"handle": handle, "selector": {"type": "image"}}));
    let result = opened.ask("call", image).await.tool_result().unwrap();
    assert_eq!(result.content[0].member_as::<String>("type").as_deref(), Some("image"));
}

#[tokio::test(start_paused = true)]
async fn a_view_fits_the_gate_however_small_that_is() {
    let long: String = (0..3_000).map(|n| format!("line {n}\n")).collect();
    for limit in [1, 60, 300, 2_000] {
        let result = Json::from(text(&long));
        let provider = Scripted::new(listing(vec![tool("f", "F.", &json!({}))]), move |_| {
            Ok(Reply::Result(result.clone()))
        });
        let opened = open(vec![Upstream::new("up", Scripts::of(provider))], |parts| {
            parts.gate = artifacts::gate::Config { limit, ceiling: None, gated_is_error: false };
        })
        .await;
        let (_, handle) = kept(&opened).await;
        for part in [
            json!({}),
            json!({"head": 5_000}),
            json!({"tail": 5_000}),
            json!({"lines": "1-2000"}),
            json!({"grep": "line"}),
        ] {
            let mut kwargs = part;
            kwargs["handle"] = json!(handle);
            let told = opened.say("call", view(&kwargs)).await;
            assert!(!told.contains("**Gated:**"), "{limit}: {told}");
            assert!(told.chars().count() <= limit.max(150), "{limit}: {told}");
        }
        let mut wanted = view(&json!({"handle": handle, "head": 5_000}));
        wanted["sizelimit"] = json!(80);
        let told = opened.say("call", wanted).await;
        assert!(!told.contains("**Gated:**") && told.chars().count() <= 150, "{told}");
        let kept = opened.say("call", view(&json!({}))).await;
        assert_eq!(kept.matches("characters").count(), 1, "nothing is kept twice: {kept}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_image_is_larger_than_the_operator_allows() {
    let data = BASE64.encode([7_u8; 12_000]);
    let image = json!({"type": "image", "data": data, "mimeType": "image/png"});
    let result = Json::from(json!({"content": [image]}));
    let provider = Scripted::new(listing(vec![tool("f", "F.", &json!({}))]), move |_| {
        Ok(Reply::Result(result.clone()))
    });
    let opened = open(vec![Upstream::new("up", Scripts::of(provider))], |parts| {
        parts.gate =
            artifacts::gate::Config { limit: 5_000, ceiling: Some(8_000), gated_is_error: false };
    })
    .await;
    let (_, handle) = kept(&opened).await;
    let image = view(&json!({"handle": handle, "selector": {"type": "image"}}));
    let told = opened.say("call", image).await;
    holds(&told, &["!**Error:**", "of at most 6000 bytes; use `bytes`"]);
}
