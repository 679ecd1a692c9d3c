//! Streams, wishes and ends of a session that reach whichever replica has it.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::Cluster;
use crate::kit::{PATIENCE, Site, eventually};

/// An upstream whose only tool, `wait`, answers when a file is there.
struct Slow {
    program: tempfile::NamedTempFile,
    go: tempfile::TempDir,
}

impl Slow {
    fn new() -> Slow {
        let (mut program, go) =
            (tempfile::NamedTempFile::new().unwrap(), tempfile::tempdir().unwrap());
        let text = include_str!("slow.py").replace("PLACE", go.path().to_str().unwrap());
        program.write_all(text.as_bytes()).unwrap();
        Slow { program, go }
    }

    fn config(&self) -> String {
        let program = self.program.path();
        format!("[[upstream]]\nlabel = \"slow\"\ncommand = \"python3\"\nargs = [{program:?}]\n\n")
    }

    /// Lets calls with this name be answered.
    fn let_go(&self, name: &str) {
        std::fs::write(self.go.path().join(name), "").unwrap();
    }

    fn was_cancelled(&self, name: &str) -> bool {
        self.go.path().join(format!("{name}.cancelled")).exists()
    }
}

const REVISION: &str = "2025-11-25";

/// A session that was opened at the first replica.
struct Session(String);

impl Session {
    fn open(site: &Site) -> Session {
        let params = json!({"protocolVersion": REVISION, "capabilities": {},
                            "clientInfo": {"name": "old", "version": "1"}});
        let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let answer = site.post(&message, &[]);
        Session(answer.header("mcp-session-id").expect("a session").to_owned())
    }

    fn headers(&self) -> [(&str, &str); 2] {
        [("Mcp-Session-Id", &self.0), ("MCP-Protocol-Version", REVISION)]
    }

    /// Sends a request, and gives the lines of its answer as they come.
    fn send(
        &self,
        site: &Site,
        method: &str,
        more: &[(&str, &str)],
        body: &str,
    ) -> impl Iterator<Item = String> + use<> {
        let mut stream = TcpStream::connect(site.authority()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut request = format!(
            "{method} /mcp HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             Content-Length: {}\r\n",
            site.authority(),
            body.len()
        );
        for (name, value) in self.headers().iter().chain(more) {
            request += &format!("{name}: {value}\r\n");
        }
        stream.write_all(format!("{request}\r\n{body}").as_bytes()).unwrap();
        BufReader::new(stream).lines().map_while(Result::ok)
    }

    /// Calls `wait`, and gives the id of the first event of its stream.
    fn call(&self, site: &Site, id: u64, name: &str) -> String {
        let arguments = json!({"namespace": "slow", "function": "wait", "kwargs": {"name": name}});
        let message = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
                             "params": {"name": "call", "arguments": arguments}});
        let mut lines = self.send(site, "POST", &[], &message.to_string());
        let first = lines.find_map(|line| line.strip_prefix("id: ").map(str::to_owned));
        first.expect("an event with an id")
    }

    fn resume(&self, site: &Site, last: &str) -> impl Iterator<Item = String> + use<> {
        self.send(site, "GET", &[("Last-Event-ID", last)], "")
    }

    fn ping(&self, site: &Site) -> u16 {
        let ping = json!({"jsonrpc": "2.0", "id": "p", "method": "ping"});
        site.post(&ping, &self.headers()).status
    }
}

fn message(line: &str) -> Option<Value> {
    serde_json::from_str(line.strip_prefix("data:")?.trim()).ok()
}

#[test]
fn an_answer_is_fetched_through_another_replica_and_its_loss_is_told() {
    testkit::needs!(Valkey);
    let slow = Slow::new();
    let mut cluster = Cluster::start(2, &slow.config());
    let session = Session::open(cluster.at(0));
    let last = session.call(cluster.at(0), 5, "first");
    let mut lines = session.resume(cluster.at(1), &last);
    slow.let_go("first");
    let answer = lines.find_map(|line| message(&line)).expect("the answer comes");
    assert_eq!(answer["id"], 5, "{answer}");
    assert!(answer.to_string().contains("waited"), "{answer}");
    // A stream whose replica dies while it is read elsewhere ends with an error.
    let last = session.call(cluster.at(0), 6, "second");
    let mut lines = session.resume(cluster.at(1), &last);
    assert!(lines.any(|line| line.starts_with(':')), "it waits");
    drop(cluster.replicas.remove(0));
    let lost = lines.find_map(|line| message(&line)).expect("the client is told");
    assert_eq!((&lost["id"], &lost["error"]["data"]["mayHaveRun"]), (&json!(6), &json!(true)));
    assert_eq!(session.ping(cluster.at(0)), 200, "the session goes on");
}

#[test]
fn a_client_cancels_and_ends_through_any_replica() {
    testkit::needs!(Valkey);
    let slow = Slow::new();
    let cluster = Cluster::start(3, &slow.config());
    let session = Session::open(cluster.at(0));
    assert_eq!(session.ping(cluster.at(1)), 200);
    session.call(cluster.at(0), 7, "cancelled");
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
                        "params": {"requestId": 7}});
    assert_eq!(cluster.at(2).post(&cancel, &session.headers()).status, 202);
    eventually("the upstream hears of it", || slow.was_cancelled("cancelled"));
    assert_eq!(cluster.at(1).send("DELETE", &session.headers(), "").status, 204);
    for replica in 0..3 {
        assert_eq!(session.ping(cluster.at(replica)), 404, "at replica {replica}");
    }
}
