//! Several calls in one, on both surfaces of meta-tools.

use super::*;

fn several(calls: &Value) -> Value {
    json!({"tool_id": "calls", "calls": calls})
}

#[tokio::test(start_paused = true)]
async fn several_calls_are_answered_in_order_each_with_its_own_error() {
    for surface in [Surface::Gateway, Surface::Proxy] {
        let opened = open_on(surface, |_, _| {}).await;
        let calls = json!([
            {"tool_id": "demo:read_file", "args": {"path": "a"}},
            {"tool_id": "demo:boom"},
            {"tool_id": "demo:read_file", "args": {}},
            {"tool_id": "demo:big", "pick": ".items | length"},
            {"tool_id": "demo:nothing_like_it"},
            {"tool_id": "demo:read_file", "args": {"path": "b"}, "odd": 1},
            {"tool_id": "calls", "calls": []},
            {"tool_id": "demo:read_file", "args": {"path": "b", "n": {"$ref": "3 | tonumber"}}},
        ]);
        let told = opened.say("tool_execute", several(&calls)).await;
        for expected in [
            "[0] demo:read_file:\nhello",
            "[1] demo:boom (error):",
            "[2] demo:read_file (error):",
            "[3] demo:big:\n3000",
            "[4] demo:nothing_like_it (error):",
            "`odd` is not an argument",
            "cannot stand in one of `calls`",
            "[7] demo:read_file:\nhello",
        ] {
            assert!(told.contains(expected), "{surface:?}: {expected} is not in\n{told}");
        }
        assert!(!told.starts_with('!'), "one failing does not hide the others");
        let asked = opened.provider.asked();
        let last = asked.last().unwrap();
        assert!(format!("{last:?}").contains("3000"), "{last:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn all_answers_together_keep_to_the_limit_and_what_is_kept_is_not_run_again() {
    let opened = open().await;
    let big = json!({"tool_id": "demo:big"});
    let told = opened.say("tool_execute", several(&json!([big, big, big]))).await;
    assert!(told.chars().count() < 10_000, "{}", told.chars().count());
    assert_eq!(
        told.matches("\\\"handle\\\"").count() + told.matches("\"handle\"").count(),
        3,
        "{told}"
    );
    assert_eq!(opened.provider.asked().len(), 3);
    // A short one leaves its room to a longer one.
    let part = json!({"tool_id": "demo:big", "pick": "[.items[:700][].id]"});
    let short = json!({"tool_id": "demo:read_file", "args": {"path": "a"}});
    let told = opened.say("tool_execute", several(&json!([short, short, short, part]))).await;
    assert!(told.contains("[3] demo:big:\n[0,1,2"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_none_is_told() {
    let opened = open().await;
    for calls in [json!([]), json!("x"), json!([1]), json!({})] {
        let error = opened.error("tool_execute", several(&calls)).await;
        assert!(error.to_string().contains("must be a list of calls such as"), "{error}");
    }
    let many: Vec<Value> = (0..51).map(|_| json!({"tool_id": "demo:big"})).collect();
    let error = opened.error("tool_execute", several(&json!(many))).await;
    assert!(error.to_string().contains("at most 50"), "{error}");
    assert!(opened.provider.asked().is_empty());
}
