//! Calls that wait for somebody outside of the conversation.

mod questions;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;

use base64::Engine;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::kit::{Home, Pipe, Served, eventually, shell, text};

/// A gate that asks about conversions of units.
fn asking(section: &str) -> Home {
    let rule = "[[controls.rule]]\naction = \"ask\"\ntool = \"units.*\"\nreason = \"sums\"\n";
    Home::with(&format!("[builtin]\ntools = true\n\n{section}\n{rule}"))
}

const IMPATIENT: &str = "[approvals]\nwait = \"0s\"\n";

fn miles(value: u32) -> Value {
    let kwargs = json!({"value": value, "from": "mi", "to": "km"});
    json!({"namespace": "units", "function": "convert", "kwargs": kwargs})
}

fn waiting(home: &Home) -> Vec<Value> {
    let listed = shell(home, &["approvals", "list", "--json"]);
    listed.json().as_array().unwrap().clone()
}

#[track_caller]
fn decide(home: &Home, words: &[&str]) {
    let words: Vec<&str> = ["approvals"].iter().chain(words).copied().collect();
    let decided = shell(home, &words);
    assert_eq!(decided.code, 0, "{}", decided.err);
}

#[test]
fn a_call_that_waits_goes_through_when_the_shell_allows_it() {
    let home = asking("");
    let mut pipe = Pipe::open(&home);
    let answer = std::thread::scope(|scope| {
        let allowing = scope.spawn(|| {
            eventually("the call waits", || !waiting(&home).is_empty());
            let [request] = &waiting(&home)[..] else { panic!("not one request") };
            assert_eq!(request["upstream"], "units");
            assert_eq!(request["client"], "it");
            let shown = shell(&home, &["approvals", "show", "1", "--format", "text"]);
            assert!(shown.out.contains("sums") && shown.out.contains("\"mi\""), "{}", shown.out);
            // A rule asks, so vouching for the tool would end nothing.
            assert!(!shown.out.contains("trust grant"), "{}", shown.out);
            decide(&home, &["allow", "1", "--yes"]);
        });
        let answer = pipe.verb("call", &miles(1));
        allowing.join().unwrap();
        answer
    });
    assert_ne!(answer["isError"], true, "{answer}");
    assert!(waiting(&home).is_empty());
}

#[test]
fn an_agreement_outlives_the_gate_and_lets_one_call_through() {
    let home = asking(IMPATIENT);
    let mut pipe = Pipe::open(&home);
    let refused = pipe.verb("call", &miles(1));
    assert_eq!(refused["isError"], true);
    let said = text(&refused);
    assert!(said.contains("approval request 1") && !said.contains("confirm"), "{said}");
    // Whatever a model sends, nothing it was given agrees.
    for guess in ["confirm-1", "confirm-later", "confirm-00000000000000000000000000000000"] {
        let mut call = miles(1);
        call["confirm"] = json!(guess);
        assert_eq!(pipe.verb("call", &call)["isError"], true);
    }
    pipe.close();
    // No gate runs: the state directory is asked.
    decide(&home, &["allow", "1", "--yes"]);
    let mut pipe = Pipe::open(&home);
    assert_eq!(pipe.verb("call", &miles(2))["isError"], true, "other arguments");
    let answer = pipe.verb("call", &miles(1));
    assert_ne!(answer["isError"], true, "{answer}");
    assert_eq!(pipe.verb("call", &miles(1))["isError"], true, "a second time");
}

#[test]
fn what_is_denied_stays_denied_and_says_by_whom() {
    let home = asking(IMPATIENT);
    let mut pipe = Pipe::open(&home);
    pipe.verb("call", &miles(1));
    decide(&home, &["deny", "1"]);
    let said = text(&pipe.verb("call", &miles(1)));
    assert!(said.contains("denied by the shell"), "{said}");
    let late = shell(&home, &["approvals", "allow", "7", "--yes"]);
    assert_eq!(late.code, 2, "{}", late.err);
    assert!(late.err.contains("gatelet approvals list"), "{}", late.err);
    // Nobody at a terminal and no flag: nothing is decided.
    let unasked = shell(&home, &["approvals", "allow", "1"]);
    assert_ne!(unasked.code, 0);
    assert!(unasked.err.contains("--yes"), "{}", unasked.err);
}

#[test]
fn a_remembered_shape_becomes_a_rule_that_the_operator_reads() {
    let home = asking(IMPATIENT);
    let mut pipe = Pipe::open(&home);
    pipe.verb("call", &miles(1));
    let allowed = shell(&home, &["approvals", "allow", "1", "--yes", "--remember"]);
    assert_eq!(allowed.code, 0, "{}", allowed.err);
    let rule = "[[approvals.remember]]\ntool = \"units:convert\"\n";
    assert!(allowed.err.contains(rule), "{}", allowed.err);
    let config = home.read("gatelet.toml");
    assert!(config.contains(rule) && config.contains("exactly = { value = 1 }"), "{config}");
    assert!(config.contains("like = { from = \"*\", to = \"*\" }"), "{config}");
    // Once for the agreement, and from then on by the rule.
    eventually("the rule counts", || {
        (0..2).all(|_| pipe.verb("call", &miles(1))["isError"] != true)
    });
    assert_eq!(pipe.verb("call", &miles(2))["isError"], true, "another number is another shape");
}

#[test]
fn tokens_are_handed_out_only_where_the_operator_says_so() {
    let home = asking("[trust]\nconfirm = \"token\"\n");
    let mut pipe = Pipe::open(&home);
    let said = text(&pipe.verb("call", &miles(1)));
    let at = said.find("confirm-").unwrap_or_else(|| panic!("no token in: {said}"));
    let mut call = miles(1);
    call["confirm"] = json!(said[at..].split('"').next().unwrap());
    assert_ne!(pipe.verb("call", &call)["isError"], true);
    assert_eq!(pipe.verb("call", &call)["isError"], true);
}

#[test]
fn the_shell_asks_whoever_sits_there_and_yes_agrees() {
    let home = asking("");
    let words = ["call", "units.convert", "value=1", "from=mi", "to=km"];
    let refused = shell(&home, &words);
    assert_ne!(refused.code, 0);
    assert!(refused.err.contains("nobody agreed"), "{}", refused.err);
    let agreed = shell(&home, &[&words[..], &["--yes"]].concat());
    assert_eq!(agreed.code, 0, "{}", agreed.err);
    let served = Served::start(&home);
    let agreed = shell(&home, &[&words[..], &["--yes"]].concat());
    assert_eq!(agreed.code, 0, "{}", agreed.err);
    drop(served);
}

#[test]
fn a_webhook_is_told_of_a_request_with_a_signature_that_the_team_can_check() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let receiving = std::thread::spawn(move || {
        // The first attempt is turned away, so there is a second one.
        let mut heard = Vec::new();
        for status in ["503 Service Unavailable", "204 No Content"] {
            let (stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut head, mut length) = (Vec::new(), 0);
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                if line.trim().is_empty() {
                    break;
                }
                let (name, value) = line.trim().split_once(": ").unwrap_or((line.trim(), ""));
                let line = format!("{}: {value}", name.to_lowercase());
                if let Some(value) = line.strip_prefix("content-length: ") {
                    length = value.parse().unwrap();
                }
                head.push(line);
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let answer =
                format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
            (&stream).write_all(answer.as_bytes()).unwrap();
            heard.push((head, String::from_utf8(body).unwrap()));
        }
        heard
    });
    let home = asking(&hook(&format!("http://{address}/hook")));
    let mut pipe = Pipe::open(&home);
    pipe.verb("call", &miles(1));
    let heard = receiving.join().unwrap();
    let header = |at: usize, name: &str| {
        let line = heard[at].0.iter().find_map(|line| line.strip_prefix(&format!("{name}: ")));
        line.unwrap_or_else(|| panic!("no {name}: {:?}", heard[at].0)).to_owned()
    };
    assert_eq!(header(0, "webhook-id"), header(1, "webhook-id"));
    for (at, (head, body)) in heard.iter().enumerate() {
        let (id, timestamp) = (header(at, "webhook-id"), header(at, "webhook-timestamp"));
        let shown = head.iter().find_map(|line| line.strip_prefix("webhook-signature: "));
        assert_eq!(shown, Some(signed(&id, &timestamp, body).as_str()));
    }
    let body: Value = serde_json::from_str(&heard[1].1).unwrap();
    assert_eq!(body["type"], "approval.requested");
    assert_eq!(body["data"]["number"], 1);
    assert_eq!(body["data"]["tool"], "convert");
}

/// A message of the team's service about a request, and its signature.
struct Decision {
    body: String,
    headers: Vec<(&'static str, String)>,
}

const SECRET_WORD: &str = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";

/// The signature of a message by the scheme `v1` of Standard Webhooks.
fn signed(id: &str, timestamp: &str, body: &str) -> String {
    let engine = base64::engine::general_purpose::STANDARD;
    let key = engine.decode(SECRET_WORD.strip_prefix("whsec_").unwrap()).unwrap();
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
    mac.update(format!("{id}.{timestamp}.{body}").as_bytes());
    format!("v1,{}", engine.encode(mac.finalize().into_bytes()))
}

impl Decision {
    fn new(id: &str, number: u64, decision: &str) -> Decision {
        #[expect(clippy::disallowed_methods, reason = "the gate compares it with its own clock")]
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let timestamp = since.as_secs().to_string();
        let data = json!({"number": number, "decision": decision, "by": "ann"});
        let body = json!({"type": "approval.decided", "data": data}).to_string();
        let signature = signed(id, &timestamp, &body);
        let headers = vec![
            ("webhook-id", id.to_owned()),
            ("webhook-timestamp", timestamp),
            ("webhook-signature", signature),
        ];
        Decision { body, headers }
    }

    fn send(&self, served: &Served) -> (u16, String) {
        let headers: Vec<(&str, &str)> =
            self.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let got = served.path("/console/decisions").send("POST", &headers, &self.body);
        (got.status, got.body)
    }
}

fn hook(url: &str) -> String {
    format!("{IMPATIENT}[approvals.webhook]\nurl = {url:?}\nsecret = {SECRET_WORD:?}\n")
}

#[test]
fn the_team_decides_by_a_signed_message_that_counts_once_and_not_after_a_restart() {
    let home = asking(&hook("http://127.0.0.1:9/hook"));
    let served = Served::start(&home);
    let call = || served.call("call", &miles(1));
    assert_eq!(call()["isError"], true);
    let allow = Decision::new("first", 1, "allow");
    let mut forged = Decision::new("forged", 1, "allow");
    forged.body = forged.body.replace("ann", "eve");
    assert_eq!(forged.send(&served).0, 401);
    let (status, told) = allow.send(&served);
    assert_eq!(status, 200, "{told}");
    assert_eq!(waiting_states(&home), ["allowed"]);
    let (status, told) = allow.send(&served);
    assert!(status == 401 && told.contains("already"), "{status} {told}");
    // Somebody thinks better of it, and whoever kept the message sends it once more.
    decide(&home, &["deny", "1"]);
    assert!(served.terminate().success());
    let served = Served::start(&home);
    let (status, told) = allow.send(&served);
    assert!(status == 401 && told.contains("already"), "{status} {told}");
    assert_eq!(waiting_states(&home), ["denied"]);
    assert!(text(&served.call("call", &miles(1))).contains("denied by the shell"));
    // A new message decides.
    assert_eq!(Decision::new("second", 1, "allow").send(&served).0, 200);
    assert_ne!(served.call("call", &miles(1))["isError"], true);
    assert_eq!(Decision::new("third", 1, "allow").send(&served).0, 409, "it was used");
    let audited = home.read("state/audit.jsonl");
    assert!(audited.contains("the webhook") && audited.contains("already"), "{audited}");
}

/// The states of all requests.
fn waiting_states(home: &Home) -> Vec<String> {
    let listed = shell(home, &["approvals", "list", "--all", "--json"]).json();
    let requests = listed.as_array().unwrap().iter();
    requests.map(|request| request["state"]["is"].as_str().unwrap().to_owned()).collect()
}
