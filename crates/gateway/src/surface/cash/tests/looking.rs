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
    holds(&told, &["with `head`, `tail` (characters), `lines` or `grep`"]);
    assert!(!told.contains("`jq`"), "{told}");
    let data = answering(text(&rows().to_string())).await;
    holds(&kept(&data).await.0, &["`lines`, `jq` or `grep`"]);
}

/// What the same call picks with the program that the gated answer shows, with
/// `word` in the place that is left open.
async fn picked_as_told(opened: &Opened, told: &str, word: &str) -> String {
    let program = told.split("pick=\"").nth(1).unwrap().split("\"`").next().unwrap();
    let program = program.replace("\\\"", "\"").replace('…', word);
    let mut call: Value = serde_json::from_str(CALL).unwrap();
    call["pick"] = json!(program);
    opened.say("call", call).await
}

#[tokio::test(start_paused = true)]
async fn the_program_that_is_shown_counts_in_texts_and_in_data() {
    let lines: String = (0..3_000).map(|n| format!("line {n}\n")).collect();
    let data: Vec<Value> = (0..900).map(|n| json!({"kind": n % 3, "pad": "xxxxx"})).collect();
    let listed = json!(data).to_string();
    // A text, the same text once more as data, data, and data behind a few words.
    for (result, word, count) in [
        (text(&lines), "line 77", "11"),
        (
            json!({"content": [{"type": "text", "text": lines}],
                "structuredContent": {"content": lines}}),
            "line 77",
            "11",
        ),
        (text(&listed), "1", "300"),
        (text(&format!("Found: {listed}")), "1", "300"),
    ] {
        let opened = answering(result).await;
        let (told, _) = kept(&opened).await;
        let picked = picked_as_told(&opened, &told, word).await;
        assert_eq!(picked.lines().next(), Some(count), "{told}\n{picked}");
        assert!(catalog::tokens::count(&picked) < 40, "{picked}");
        assert_eq!(opened.records.records().len(), 2, "{picked}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_program_that_is_shown_counts_by_keys_that_are_no_words_of_jq() {
    for key in ["2024", "7up", "a b"] {
        let rows: Vec<Value> = (0..900).map(|n| json!({"2024": n % 3, "pad": "xxxxx"})).collect();
        let opened = answering(text(&json!({key: rows}).to_string())).await;
        let (told, _) = kept(&opened).await;
        let picked = picked_as_told(&opened, &told, "1").await;
        assert_eq!(picked.lines().next(), Some("300"), "{told}\n{picked}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_of_any_length_does_not_make_the_reply_long() {
    let key = "k".repeat(200_000);
    for data in [
        json!({&key: [1, 2, 3]}),
        json!({&key: "x".repeat(200_000), "b": 1}),
        json!([{&key: 1, "b": "x"}, {&key: 2, "b": "y"}]),
        json!({"a": {&key: {&key: [{&key: 1}, {&key: 2}]}}}),
    ] {
        let opened = answering(text(&data.to_string())).await;
        let (told, _) = kept(&opened).await;
        assert!(told.len() < 4_000, "{} characters: {:.3000}", told.len(), told);
    }
}

#[tokio::test(start_paused = true)]
async fn what_records_hold_is_named_one_level_deep() {
    let row = json!({"number": 1, "labels": [{"id": 7, "name": "bug"}], "user": {"login": "a"},
        "tags": ["x"], "body": "word ".repeat(20)});
    let opened = answering(text(&json!(vec![row; 200]).to_string())).await;
    let (told, _) = kept(&opened).await;
    holds(&told, &["each with number, labels[{id, name}], user{login}, tags[], body."]);
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
            parts.answers.gate = artifacts::gate::Config { limit, ..Default::default() };
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
        parts.answers.gate =
            artifacts::gate::Config { limit: 5_000, ceiling: Some(8_000), ..Default::default() };
    })
    .await;
    let (_, handle) = kept(&opened).await;
    let image = view(&json!({"handle": handle, "selector": {"type": "image"}}));
    let told = opened.say("call", image).await;
    holds(&told, &["!**Error:**", "of at most 6000 bytes; use `bytes`"]);
}

/// The one thread for long work, taken until it is let go.
struct Taken {
    release: std::sync::mpsc::Sender<()>,
    has_it: tokio::sync::oneshot::Receiver<()>,
}

fn take_thread() -> Taken {
    let (release, wait) = std::sync::mpsc::channel();
    let (begun, has_it) = tokio::sync::oneshot::channel();
    tokio::task::spawn_blocking(move || {
        begun.send(()).ok();
        wait.recv()
    });
    Taken { release, has_it }
}

/// Lets what waits for the thread have it once, and takes it again after that.
async fn next_turn(taken: Taken) -> Taken {
    let mut next = take_thread();
    drop(taken.release);
    (&mut next.has_it).await.unwrap();
    next
}

/// How often a call waited for the thread for long work, while somebody else was
/// answered each time.
async fn turns(opened: &Opened, call: Value) -> (usize, String) {
    let mut taken = take_thread();
    let mut calling = std::pin::pin!(opened.say("call", call));
    for n_turns in 0.. {
        for _ in 0..100 {
            if let std::task::Poll::Ready(told) = futures::poll!(&mut calling) {
                return (n_turns, told);
            }
            tokio::task::yield_now().await;
        }
        holds(&opened.say("help", json!({"namespace": "up"})).await, &["# up"]);
        taken = next_turn(taken).await;
    }
    unreachable!("it takes some turns")
}

#[test]
fn while_a_long_answer_is_looked_through_others_are_answered() {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().max_blocking_threads(1).build().unwrap();
    runtime.block_on(async {
        let long = answering(text(&"a long line\n".repeat(30_000))).await;
        let call: Value = serde_json::from_str(CALL).unwrap();
        // Secrets are looked for, it is measured, read for what is told of it, and
        // copied to where it is kept.
        let (n_turns, told) = turns(&long, call.clone()).await;
        holds(&told, &["**Gated:**", "30,000 lines"]);
        assert!(4 <= n_turns, "{n_turns}");
        // What was kept is measured again for who wants all of it.
        let mut whole = call;
        whole["kwargs"] = json!({"sizelimit": 1_000_000});
        let (n_turns, told) = turns(&long, whole).await;
        assert!(told.starts_with("a long line"), "{}", &told[..100]);
        assert!(1 <= n_turns, "{n_turns}");
    });
}
