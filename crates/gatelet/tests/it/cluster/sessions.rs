//! Sessions, questions and parked calls that any replica carries on.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::{ASK, Cluster, act};
use crate::kit::{PATIENCE, Site, eventually};

/// A client of an older revision, whose requests go to one replica after another.
pub(super) struct OldClient<'a> {
    cluster: &'a Cluster,
    session: String,
    next: AtomicUsize,
    key: Option<String>,
}

const INITIALIZE: &str = "initialize";

impl OldClient<'_> {
    pub(super) fn open<'a>(
        cluster: &'a Cluster,
        capabilities: &Value,
        key: Option<&str>,
    ) -> OldClient<'a> {
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": capabilities,
                            "clientInfo": {"name": "old", "version": "1"}});
        let message = json!({"jsonrpc": "2.0", "id": 0, "method": INITIALIZE, "params": params});
        let headers: Vec<(&str, &str)> = key.map(|key| ("X-Api-Key", key)).into_iter().collect();
        let answer = cluster.at(0).post(&message, &headers);
        let session = answer.header("mcp-session-id").expect("a session").to_owned();
        OldClient { cluster, session, next: AtomicUsize::new(1), key: key.map(str::to_owned) }
    }

    pub(super) fn headers(&self) -> Vec<(&str, &str)> {
        let mut headers =
            vec![("Mcp-Session-Id", self.session.as_str()), ("MCP-Protocol-Version", "2025-06-18")];
        headers.extend(self.key.as_deref().map(|key| ("X-Api-Key", key)));
        headers
    }

    /// The next replica in turn.
    fn turn(&self) -> &Site {
        let n = self.next.fetch_add(1, Ordering::Relaxed);
        self.cluster.at(n % self.cluster.replicas.len())
    }

    /// Makes a numbered call, and gives the body of the answer.
    pub(super) fn act(&self, n: u64) -> String {
        self.ask("tools/call", &json!({"name": "call", "arguments": act(n)})).body
    }

    fn ask(&self, method: &str, params: &Value) -> crate::kit::Answer {
        let message = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        self.turn().post(&message, &self.headers())
    }
}

#[test]
fn a_session_is_carried_on_by_every_replica_for_its_caller_alone() {
    testkit::needs!(Valkey);
    let cluster = Cluster::start(3, "");
    let client = OldClient::open(&cluster, &json!({}), None);
    for n in 0..6 {
        let call = json!({"name": "call", "arguments": act(n)});
        let answer = client.ask("tools/call", &call);
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert!(answer.body.contains("acted"), "{}", answer.body);
    }
    assert_eq!(cluster.deeds().len(), 6, "each call ran once");
    let stranger =
        OldClient { session: "0".repeat(32), ..OldClient::open(&cluster, &json!({}), None) };
    assert_eq!(stranger.ask("tools/list", &json!({})).status, 404);
    let fresh = OldClient::open(&cluster, &json!({}), None);
    let ended = cluster.at(0).send("DELETE", &fresh.headers(), "");
    assert_eq!(ended.status, 204);
    assert_eq!(fresh.ask("tools/list", &json!({})).status, 404, "it ended everywhere");
}

#[test]
fn a_session_survives_the_replica_that_opened_it() {
    testkit::needs!(Valkey);
    let mut cluster = Cluster::start(2, "");
    let session = OldClient::open(&cluster, &json!({}), None).session;
    drop(cluster.replicas.remove(0));
    let client = OldClient { cluster: &cluster, session, next: AtomicUsize::new(0), key: None };
    let answer = client.ask("tools/call", &json!({"name": "call", "arguments": act(1)}));
    assert!(answer.status == 200 && answer.body.contains("acted"), "{}", answer.body);
}

/// Posts to a replica and gives the lines of its answer as they come.
pub(super) fn stream(
    site: &Site,
    message: &Value,
    headers: &[(&str, &str)],
) -> impl Iterator<Item = String> + use<> {
    let mut stream = TcpStream::connect(site.authority()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let body = message.to_string();
    let mut request = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n",
        site.authority(),
        body.len()
    );
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    stream.write_all(format!("{request}\r\n{body}").as_bytes()).unwrap();
    BufReader::new(stream).lines().map_while(Result::ok)
}

#[test]
fn a_client_answers_a_question_of_one_replica_at_another() {
    testkit::needs!(Valkey);
    let cluster = Cluster::start(2, ASK);
    let client = OldClient::open(&cluster, &json!({"elicitation": {}}), None);
    let call = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call",
                      "params": {"name": "call", "arguments": act(5)}});
    let mut lines = stream(cluster.at(0), &call, &client.headers());
    let question = lines.find(|line| line.contains("elicitation/create")).expect("a question");
    let question: Value =
        serde_json::from_str(question.trim_start_matches("data:").trim()).unwrap();
    let answer = json!({"jsonrpc": "2.0", "id": question["id"],
                        "result": {"action": "accept", "content": {"confirm": true}}});
    let taken = cluster.at(1).post(&answer, &client.headers());
    assert_eq!(taken.status, 202, "{}", taken.body);
    assert!(lines.any(|line| line.contains("acted")), "the call goes on where it waited");
    assert_eq!(cluster.deeds(), ["5"]);
}

/// A request of the revision without sessions, by a client that can be asked.
fn modern(site: &Site, params: &Value) -> Value {
    let mut params = params.clone();
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "it", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    });
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let headers = [
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "call"),
    ];
    site.post(&message, &headers).message()
}

#[test]
fn a_parked_call_is_taken_up_again_through_any_replica_once() {
    testkit::needs!(Valkey);
    let mut cluster = Cluster::start(3, ASK);
    let call = json!({"name": "call", "arguments": act(6)});
    let parked = modern(cluster.at(0), &call);
    let (state, asked) = (&parked["result"]["requestState"], &parked["result"]["inputRequests"]);
    let question = asked.as_object().and_then(|asked| asked.keys().next()).cloned();
    let question = question.unwrap_or_else(|| panic!("no question in {parked}"));
    let mut resumed = call.clone();
    resumed["requestState"] = state.clone();
    resumed["inputResponses"] =
        json!({question: {"action": "accept", "content": {"confirm": true}}});
    let answer = modern(cluster.at(1), &resumed);
    assert!(answer.to_string().contains("acted"), "{answer}");
    let again = modern(cluster.at(2), &resumed);
    assert!(again.to_string().contains("no longer waits"), "{again}");
    assert_eq!(cluster.deeds(), ["6"], "it ran once");
    let (true_part, _) = state.as_str().unwrap().split_at(state.as_str().unwrap().len() - 4);
    let mut guess = resumed.clone();
    guess["requestState"] = json!(format!("{true_part}AAAA"));
    let forged = modern(cluster.at(1), &guess);
    assert!(forged.to_string().contains("was not made for this request"), "{forged}");
    // Whoever comes back after the replica has died is told so.
    let parked = modern(cluster.at(0), &call);
    resumed["requestState"] = parked["result"]["requestState"].clone();
    drop(cluster.replicas.remove(0));
    eventually("it counts as gone", || {
        modern(cluster.at(0), &resumed).to_string().contains("is gone")
    });
    assert_eq!(cluster.deeds(), ["6"], "nothing ran again");
}
