//! How an upstream fails is told before it becomes a result: what it was, and
//! whether trying again is any use.

use serde_json::{Value, json};

use crate::kit::{Fake, Home, SECRET, Served, eventually, program, text, tool, upstream};

/// One way to fail: the label of the upstream that fails so, the code, whether
/// the same call may succeed later, and whether this one may have run.
type Way = (&'static str, &'static str, bool, bool);

const WAYS: &[Way] = &[
    ("unauthorised", "AUTH_FAILED", false, true),
    ("forbidden", "PERMISSION_DENIED", false, true),
    ("limited", "RATE_LIMITED", true, true),
    ("broken", "UPSTREAM_ERROR", false, true),
    ("overloaded", "UPSTREAM_UNAVAILABLE", true, true),
    ("gone", "UPSTREAM_UNAVAILABLE", true, false),
    ("slow", "UPSTREAM_TIMEOUT", true, true),
    ("crashing", "UPSTREAM_UNAVAILABLE", true, true),
    ("hung", "UPSTREAM_TIMEOUT", true, true),
];

/// A gate with an upstream for every way to fail, and one that works.
fn gate(controls: &str) -> (Home, Served, Fake) {
    let (fake, gone) = (Fake::start(), Fake::start());
    let stdio = |label: &str, deed: &str| {
        let section = upstream(label, &tool("py/bin/python"), &["-c", &program(deed)]);
        section.trim_end().to_owned() + "\ncall_timeout = \"1s\"\n\n"
    };
    let config = [
        fake.upstream("unauthorised", "401"),
        fake.upstream("forbidden", "403"),
        fake.upstream("limited", "429"),
        fake.upstream("broken", "500"),
        fake.upstream("overloaded", "503"),
        fake.upstream("slow", "slow"),
        fake.upstream("fine", "mcp"),
        gone.upstream("gone", "mcp"),
        stdio("crashing", "sys.stderr.write('out of luck\\n'); os._exit(3)"),
        stdio("hung", "time.sleep(600)"),
        controls.to_owned(),
    ];
    let home = Home::with(&config.concat());
    let served = Served::start(&home);
    let gateway = served.at("gateway");
    eventually("every upstream is listed", || {
        let root = text(&gateway.call("tool_browse", &json!({"path": "/"})));
        !root.contains("unavailable")
            && WAYS.iter().all(|(label, ..)| root.contains(&format!("/{label} ")))
    });
    gone.stop();
    (home, served, fake)
}

/// The error that `tool_execute` answers with.
fn failed(served: &Served, label: &str) -> Value {
    let call = json!({"tool_id": format!("{label}:act"), "args": {}});
    let answer = served.at("gateway").call("tool_execute", &call);
    assert_eq!(answer["isError"], true, "{label}: {answer}");
    let said = text(&answer);
    assert!(!said.contains(SECRET), "{label} tells a secret: {said}");
    serde_json::from_str(&said).unwrap_or_else(|_| panic!("{label}: {said}"))
}

#[test]
fn every_way_to_fail_has_its_code_on_the_gateway_surface() {
    testkit::needs!(Tools);
    let (_home, served, _fake) = gate("");
    for (label, code, retryable, may_have_run) in WAYS {
        let error = failed(&served, label);
        assert_eq!(error["error"], *code, "{label}: {error}");
        assert_eq!(error["retryable"], *retryable, "{label}: {error}");
        let ran = error["details"]["may_have_run"] == true;
        assert_eq!(ran, *may_have_run, "{label}: {error}");
        let path = error["path"].as_str().unwrap();
        assert!(path.starts_with(&format!("{label}:act#")), "{label}: {error}");
    }
    assert_eq!(failed(&served, "limited")["details"]["retry_after"], 7.0);
    // The one that works still does.
    let call = json!({"tool_id": "fine:act", "args": {}});
    assert!(text(&served.at("gateway").call("tool_execute", &call)).contains("acted"));
}

#[test]
fn every_way_to_fail_is_told_in_words_and_in_code_on_the_cash_surface() {
    testkit::needs!(Tools);
    let (_home, served, _fake) = gate("");
    for (label, code, retryable, may_have_run) in WAYS {
        let call = json!({"namespace": label, "function": "act"});
        let answer = served.at("cash").call("call", &call);
        assert_eq!(answer["isError"], true, "{label}: {answer}");
        let said = text(&answer);
        assert!(said.starts_with("**Error:** ") && !said.contains(SECRET), "{label}: {said}");
        assert!(said.contains(&format!("`{label}`")), "{label}: {said}");
        assert_eq!(said.contains("may have run"), *may_have_run, "{said}");
        let told = &answer["_meta"]["cash/error"];
        assert_eq!(told["code"], *code, "{label}: {answer}");
        assert_eq!(told["retryable"], *retryable, "{label}: {answer}");
        assert_eq!(told["mayHaveRun"], *may_have_run, "{label}: {answer}");
    }
    let call = json!({"namespace": "fine", "function": "act"});
    assert!(text(&served.at("cash").call("call", &call)).contains("acted"));
}

#[test]
fn only_what_cannot_have_run_is_tried_again() {
    testkit::needs!(Tools);
    let retry = "[controls.retry]\nattempts = 3\nbase_delay = \"10ms\"\n\n[records]\nfile = \"calls.jsonl\"\n";
    let (home, served, _fake) = gate(retry);
    for (label, ..) in WAYS {
        failed(&served, label);
    }
    assert!(served.terminate().success());
    let lines = home.read("calls.jsonl");
    let events: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (label, code, retryable, may_have_run) in WAYS {
        let of =
            |event: &&Value| event["namespace"] == *label && event["event"] == "execute.failed";
        let found: Vec<&Value> = events.iter().filter(of).collect();
        let [event] = found[..] else { panic!("{label}: not one record in {lines}") };
        assert_eq!(event["attributes"]["error_code"], *code, "{event}");
        // Too many calls are not answered with more of them at once.
        let again = *retryable && !*may_have_run && *code != "RATE_LIMITED";
        let attempts = event["attributes"]["attempts"].as_u64().unwrap();
        assert_eq!(attempts, if again { 3 } else { 1 }, "{label}: {event}");
    }
}
