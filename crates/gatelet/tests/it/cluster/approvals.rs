//! Calls that wait for somebody to agree, who does so at any replica.

use std::sync::Barrier;

use base64::Engine;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;
use store::clock::System;
use testkit::valkey::Server;
use tool::clock::Clock;

use super::{ASK, Cluster, act};
use crate::kit::{Ended, eventually, shell};

const AT_ONCE: &str = "[approvals]\nwait = \"0s\"\n\n";

/// Replicas that ask about every call of the upstream, and refuse it until somebody agreed.
fn impatient(n_replicas: usize) -> Cluster {
    Cluster::start(n_replicas, &format!("{AT_ONCE}{ASK}"))
}

impl Cluster {
    fn call(&self, replica: usize, n: u64) -> String {
        self.at(replica).told(None, "call", &act(n))
    }

    /// Makes a call that is refused, and gives the number of its request.
    fn refused(&self, replica: usize, n: u64) -> u64 {
        let said = self.call(replica, n);
        let number = said.split("approval request ").nth(1).unwrap_or_default();
        let digits: String = number.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap_or_else(|_| panic!("no request in {said}"))
    }

    fn waiting(&self, replica: usize) -> Vec<Value> {
        let listed = shell(self.home(replica), &["approvals", "list", "--json"]);
        listed.json().as_array().unwrap().clone()
    }

    fn decide(&self, replica: usize, verdict: &str, number: u64) -> Ended {
        let number = number.to_string();
        let mut words = vec!["approvals", verdict, &number];
        words.extend((verdict == "allow").then_some("--yes"));
        shell(self.home(replica), &words)
    }

    #[track_caller]
    fn allow(&self, replica: usize, number: u64) {
        let decided = self.decide(replica, "allow", number);
        assert_eq!(decided.code, 0, "{}", decided.err);
    }

    /// Does the same eight times at once, four at each of two replicas.
    fn at_once<T: Send>(&self, act: impl Fn(usize) -> T + Sync) -> Vec<T> {
        let start = Barrier::new(8);
        std::thread::scope(|scope| {
            let one = |n: usize| {
                let (start, act) = (&start, &act);
                scope.spawn(move || {
                    start.wait();
                    act(n % 2)
                })
            };
            let all: Vec<_> = (0..8).map(one).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        })
    }
}

fn acted(said: &str) -> bool {
    said.contains("acted")
}

#[test]
fn a_call_that_waits_at_one_replica_goes_through_when_it_is_allowed_at_another() {
    testkit::needs!(Valkey);
    let cluster = Cluster::start(2, ASK);
    let answer = std::thread::scope(|scope| {
        let calling = scope.spawn(|| cluster.call(0, 1));
        eventually("the other knows that it waits", || cluster.waiting(1).len() == 1);
        let number = cluster.waiting(1)[0]["number"].as_u64().unwrap();
        cluster.allow(1, number);
        calling.join().unwrap()
    });
    assert!(acted(&answer), "{answer}");
    assert_eq!(cluster.deeds(), ["1"]);
}

#[test]
fn an_agreement_is_good_once_at_every_replica_for_its_call_alone() {
    testkit::needs!(Valkey);
    let cluster = impatient(3);
    let number = cluster.refused(0, 1);
    assert_eq!(cluster.refused(1, 1), number, "it is the same call");
    cluster.allow(1, number);
    assert!(!acted(&cluster.call(2, 2)), "other arguments");
    assert!(acted(&cluster.call(2, 1)));
    for replica in [0, 1, 2] {
        assert!(!acted(&cluster.call(replica, 1)), "a second time, at {replica}");
    }
    let number = cluster.refused(0, 3);
    assert_eq!(cluster.decide(1, "deny", number).code, 0);
    let denied = cluster.call(2, 3);
    assert!(denied.contains("was denied by the shell"), "{denied}");
    assert_eq!(cluster.deeds(), ["1"]);
}

#[test]
fn of_calls_that_are_made_everywhere_at_once_one_uses_the_agreement() {
    testkit::needs!(Valkey);
    let cluster = impatient(2);
    for n in 0..5 {
        cluster.allow(1, cluster.refused(0, n));
        let answers = cluster.at_once(|replica| cluster.call(replica, n));
        assert_eq!(answers.iter().filter(|said| acted(said)).count(), 1, "{answers:#?}");
    }
    assert_eq!(cluster.deeds(), ["0", "1", "2", "3", "4"]);
}

#[test]
fn a_request_that_is_decided_at_two_replicas_at_once_has_one_decision() {
    testkit::needs!(Valkey);
    let cluster = impatient(2);
    for n in 0..4 {
        let number = cluster.refused(0, n);
        let verdicts = ["allow", "deny"];
        let decided = cluster.at_once(|replica| cluster.decide(replica, verdicts[replica], number));
        assert!(decided.iter().all(|ran| ran.code == 0), "the last one counts");
        let answers = [cluster.call(0, n), cluster.call(1, n)];
        let runs = answers.iter().filter(|said| acted(said)).count();
        let denials = answers.iter().filter(|said| said.contains("was denied")).count();
        assert!(matches!((runs, denials), (1, 0) | (0, 2)), "{answers:#?}");
        let late = cluster.decide(1, "allow", number);
        assert_eq!(late.code == 0, denials == 2, "what was used cannot be decided: {}", late.err);
    }
}

#[test]
fn an_agreement_outlives_the_replica_where_the_call_was_made() {
    testkit::needs!(Valkey);
    let mut cluster = impatient(2);
    let number = cluster.refused(0, 1);
    drop(cluster.replicas.remove(0));
    cluster.allow(0, number);
    assert!(acted(&cluster.call(0, 1)));
    let number = cluster.refused(0, 2);
    // No gate of this home runs, so the command asks the store itself.
    let (home, served) = cluster.replicas.remove(0);
    drop(served);
    let allowed = shell(&home, &["approvals", "allow", &number.to_string(), "--yes"]);
    assert_eq!(allowed.code, 0, "{}", allowed.err);
    cluster.replicas.push(cluster.replica(&format!("{AT_ONCE}{ASK}")));
    assert!(acted(&cluster.call(0, 2)), "at a new replica");
    assert_eq!(cluster.deeds(), ["1", "2"]);
}

#[test]
fn while_the_store_is_away_or_full_nobody_agrees_and_nothing_runs() {
    testkit::needs!(Valkey);
    let cluster = impatient(2);
    let number = cluster.refused(0, 1);
    cluster.allow(0, number);
    let limit = |bytes: &str| cluster.store.cli(&["CONFIG", "SET", "maxmemory", bytes]).unwrap();
    limit("1");
    for replica in [0, 1] {
        let said = cluster.call(replica, 1);
        assert!(said.contains("the store is full") && said.contains("ask again later"), "{said}");
    }
    let undecided = cluster.decide(1, "deny", number);
    assert!(undecided.code != 0 && undecided.err.contains("full"), "{}", undecided.err);
    limit("0");
    assert!(acted(&cluster.call(1, 1)), "nothing was lost");
    cluster.allow(0, cluster.refused(0, 2));
    cluster.store.kill();
    for replica in [0, 1] {
        let said = cluster.call(replica, 2);
        assert!(said.contains("ask again later"), "{said}");
    }
    assert_ne!(shell(cluster.home(0), &["approvals", "list"]).code, 0);
    assert_eq!(cluster.deeds(), ["1"]);
    cluster.store.resume();
    eventually("somebody can be asked", || cluster.call(1, 2).contains("approval request "));
    assert_eq!(cluster.deeds(), ["1"], "an empty store agrees to nothing");
}

#[test]
fn an_agreement_from_before_a_restart_of_the_store_is_void_and_its_number_is_not_used_again() {
    testkit::needs!(Valkey);
    // This one keeps everything that it acknowledged.
    let store = Server::start(&["--appendonly yes", "--appendfsync always"]);
    let cluster = Cluster::start_with(store, 2, &format!("{AT_ONCE}{ASK}"));
    let number = cluster.refused(0, 1);
    cluster.allow(0, number);
    cluster.store.kill();
    cluster.store.resume();
    let kept = cluster.store.cli(&["--scan", "--pattern", "*approvals"]).unwrap();
    assert!(!kept.is_empty(), "the store has it, and may have an older one");
    eventually("the store is used again", || cluster.call(1, 2).contains("approval request "));
    assert!(cluster.refused(1, 1) > number, "somebody is asked once more");
    assert_eq!(cluster.deeds(), Vec::<String>::new());
}

#[test]
fn a_confirmation_token_of_one_replica_is_good_once_at_every_other() {
    testkit::needs!(Valkey);
    let cluster = Cluster::start(2, &format!("[trust]\nconfirm = \"token\"\n\n{ASK}"));
    let token = |n: u64| {
        let said = cluster.call(0, n);
        let token = said.split("confirm=\"").nth(1).and_then(|rest| rest.split('"').next());
        token.unwrap_or_else(|| panic!("no token in {said}")).to_owned()
    };
    let with = |replica: usize, n: u64, token: &str| {
        let mut call = act(n);
        call["confirm"] = json!(token);
        cluster.at(replica).told(None, "call", &call)
    };
    let first = token(1);
    assert!(acted(&with(1, 1, &first)));
    assert!(!acted(&with(0, 1, &first)), "a second time");
    let other = token(2);
    assert!(!acted(&with(1, 3, &other)), "for another call");
    assert!(!acted(&with(1, 2, &other)), "spent by the wrong call");
    let rush = token(4);
    let answers = cluster.at_once(|replica| with(replica, 4, &rush));
    assert_eq!(answers.iter().filter(|said| acted(said)).count(), 1, "{answers:#?}");
    let lost = token(5);
    let shown = cluster.store.cli(&["--scan", "--pattern", "*confirm*"]).unwrap();
    assert!(!shown.is_empty() && !shown.contains(&lost[8..]), "the store does not show it");
    cluster.store.kill();
    let away = with(1, 5, &lost);
    assert!(away.contains("cannot be kept") && away.contains("ask again later"), "{away}");
    cluster.store.resume();
    eventually("tokens are given out again", || cluster.call(1, 5).contains("confirm=\""));
    assert!(!acted(&with(1, 5, &lost)), "its store was lost");
    assert_eq!(cluster.deeds(), ["1", "4"]);
}

#[test]
fn a_decision_by_webhook_counts_once_over_all_replicas() {
    testkit::needs!(Valkey);
    let key = [7_u8; 32];
    let secret = base64::engine::general_purpose::STANDARD.encode(key);
    // Nobody listens there: what is decided matters here, not who is told.
    let hook = format!(
        "[approvals.webhook]\nurl = \"http://127.0.0.1:9/hook\"\nsecret = \"whsec_{secret}\"\n\n"
    );
    let cluster = Cluster::start(2, &format!("{AT_ONCE}{hook}{ASK}"));
    let number = cluster.refused(0, 1);
    let body = json!({"type": "approval.decided",
                      "data": {"number": number, "decision": "allow", "by": "ann"}});
    let timestamp = (System::start().unix_millis() / 1000).to_string();
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
    mac.update(format!("msg-1.{timestamp}.{body}").as_bytes());
    let signature = base64::engine::general_purpose::STANDARD.encode(mac.finalize().into_bytes());
    let signature = format!("v1,{signature}");
    let headers = [
        ("webhook-id", "msg-1"),
        ("webhook-timestamp", timestamp.as_str()),
        ("webhook-signature", signature.as_str()),
    ];
    let send = |replica: usize| {
        let site = cluster.at(replica).path("/console/decisions");
        site.send("POST", &headers, &body.to_string())
    };
    let taken = send(1);
    assert_eq!(taken.status, 200, "{}", taken.body);
    assert_eq!(cluster.decide(0, "deny", number).code, 0, "somebody thinks better of it");
    for replica in [0, 1] {
        let again = send(replica);
        assert!(again.status == 401 && again.body.contains("already"), "{}", again.body);
    }
    assert!(cluster.call(0, 1).contains("was denied"));
    assert_eq!(cluster.deeds(), Vec::<String>::new());
}
