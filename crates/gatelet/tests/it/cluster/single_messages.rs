//! What flows beside the calls of an upstream that another replica runs: progress,
//! questions to the client, and the cancelling of a call.

use std::io::Write;

use serde_json::{Value, json};

use super::Cluster;
use super::sessions::{OldClient, stream};
use crate::kit::{Site, eventually};

/// A cluster with an upstream that talks while it works and runs at one replica.
struct Talkative {
    cluster: Cluster,
    /// The replica that does not run it.
    elsewhere: usize,
    _script: tempfile::NamedTempFile,
}

fn talkative() -> Talkative {
    let mut script = tempfile::NamedTempFile::new().unwrap();
    script.write_all(include_bytes!("talkative.py")).unwrap();
    let config = format!(
        "[[upstream]]\nlabel = \"lone\"\ncommand = \"python3\"\nargs = [{:?}]\nsingle = true\n\n",
        script.path()
    );
    let cluster = Cluster::start(2, &config);
    let by = cluster.at(0).told(None, "call", &act("progress"));
    let process = by.split("by ").nth(1).and_then(|rest| rest.split('.').next());
    let process: u32 = process.and_then(|id| id.parse().ok()).unwrap_or_else(|| panic!("{by}"));
    let is_owner = |gate: u32| super::single::is_descendant(process, gate);
    let elsewhere = cluster.replicas.iter().position(|(_, gate)| !is_owner(gate.id()));
    let elsewhere = elsewhere.expect("one replica runs it, and one does not");
    Talkative { cluster, elsewhere, _script: script }
}

fn act(kind: &str) -> Value {
    json!({"namespace": "lone", "function": "act", "kwargs": {"kind": kind}})
}

fn call(id: u64, kind: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
        "name": "call", "arguments": act(kind), "_meta": {"progressToken": "mine"}}})
}

fn message(line: &str) -> Option<Value> {
    serde_json::from_str(line.strip_prefix("data:")?.trim()).ok()
}

#[test]
fn progress_comes_from_the_replica_that_runs_the_upstream() {
    testkit::needs!(Valkey);
    let Talkative { cluster, elsewhere, _script } = talkative();
    let client = OldClient::open(&cluster, &json!({}), None);
    let lines = stream(cluster.at(elsewhere), &call(3, "progress"), &client.headers());
    let messages: Vec<Value> = lines.filter_map(|line| message(&line)).collect();
    let steps = messages.iter().filter(|message| message["method"] == "notifications/progress");
    let steps: Vec<_> =
        steps.map(|step| (&step["params"]["progressToken"], &step["params"]["progress"])).collect();
    let mine = json!("mine");
    assert_eq!(steps, [(&mine, &json!(0)), (&mine, &json!(1)), (&mine, &json!(2))]);
    assert!(messages.last().unwrap().to_string().contains("by "), "{messages:?}");
}

/// Has the upstream ask the client something, which is answered at the other replica.
#[track_caller]
fn check_question(kind: &str, method: &str, answer: &Value, heard: &str) {
    let Talkative { cluster, elsewhere, _script } = talkative();
    let capabilities = json!({"elicitation": {}, "sampling": {}});
    let client = OldClient::open(&cluster, &capabilities, None);
    let mut lines = stream(cluster.at(elsewhere), &call(4, kind), &client.headers());
    let mut seen = Vec::new();
    let question = lines.by_ref().filter_map(|line| {
        seen.push(line.clone());
        message(&line)
    });
    let question = question.into_iter().find(|message| message["method"] == method);
    let question = question.unwrap_or_else(|| panic!("no question in {seen:?}"));
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": answer});
    let other: &Site = cluster.at(1 - elsewhere);
    assert_eq!(other.post(&answer, &client.headers()).status, 202);
    let end = lines.filter_map(|line| message(&line)).last().expect("an answer");
    assert!(end.to_string().contains(heard), "{end}");
}

#[test]
fn the_user_is_asked_by_an_upstream_that_another_replica_runs() {
    testkit::needs!(Valkey);
    let answer = json!({"action": "accept", "content": {"name": "ann"}});
    check_question("elicit", "elicitation/create", &answer, "ann");
}

#[test]
fn the_model_is_asked_by_an_upstream_that_another_replica_runs() {
    testkit::needs!(Valkey);
    let answer = json!({"role": "assistant", "model": "m", "stopReason": "endTurn",
                        "content": {"type": "text", "text": "something"}});
    check_question("sample", "sampling/createMessage", &answer, "something");
}

#[test]
fn a_call_is_cancelled_at_an_upstream_that_another_replica_runs() {
    testkit::needs!(Valkey);
    let Talkative { cluster, elsewhere, _script } = talkative();
    let client = OldClient::open(&cluster, &json!({}), None);
    let mut lines = stream(cluster.at(elsewhere), &call(8, "never"), &client.headers());
    assert!(lines.any(|line| line.contains("text/event-stream")), "it takes a while");
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
                        "params": {"requestId": 8}});
    // By the replica that did not get the call either.
    assert_eq!(cluster.at(1 - elsewhere).post(&cancel, &client.headers()).status, 202);
    eventually("the upstream hears of it", || {
        cluster.at(elsewhere).told(None, "call", &act("was-cancelled")).contains("cancelled 1.")
    });
    assert!(lines.filter_map(|line| message(&line)).next().is_none(), "and nobody is answered");
}
