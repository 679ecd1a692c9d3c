//! Keys and trust that are granted or revoked at one replica, and listings.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{BUILTIN, Cluster, act};
use crate::kit::{Home, Served, Site, eventually, shell};

const GUARDED: &str = "[auth]\nrequired = true\n\n";

/// How long a revocation may take from one replica to the others.
const REVOKED_WITHIN: Duration = Duration::from_secs(1);

/// The median of three times that a revocation took: the machine may be busy with other
/// tests for a moment.
fn median(mut took: [Duration; 3]) -> Duration {
    took.sort();
    took[1]
}

/// The status of a request with a key.
fn status(site: &Site, key: &str) -> u16 {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "it", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {}}}});
    let fixed = [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/list")];
    site.post(&message, &[&fixed, [("X-Api-Key", key)].as_slice()].concat()).status
}

#[test]
fn a_key_counts_at_every_replica_until_it_is_revoked_at_one() {
    testkit::needs!(Valkey);
    let cluster = Cluster::start(2, GUARDED);
    let homes: Vec<&Home> = cluster.replicas.iter().map(|(home, _)| home).collect();
    let made = shell(homes[0], &["key", "create", "ci"]);
    let key = made.out.trim();
    eventually("the other knows it", || status(cluster.at(1), key) == 200);
    let late = cluster.replica(GUARDED);
    assert_eq!(status(&late.1, key), 200, "a new replica knows it from the start");
    assert_eq!(shell(homes[1], &["key", "revoke", "ci"]).code, 0);
    eventually("it is useless everywhere", || {
        [cluster.at(0), cluster.at(1), &late.1].iter().all(|site| status(site, key) == 401)
    });
}

#[test]
fn a_key_that_is_revoked_at_one_replica_is_refused_at_the_others_within_a_second() {
    testkit::needs!(Valkey);
    let cluster = Cluster::start(3, GUARDED);
    let took = ["one", "two", "three"].map(|name| {
        let key = shell(cluster.home(0), &["key", "create", name]).out.trim().to_owned();
        eventually("all know it", || (0..3).all(|n| status(cluster.at(n), &key) == 200));
        assert_eq!(shell(cluster.home(0), &["key", "revoke", name]).code, 0);
        let revoked = Instant::now();
        eventually("it is useless everywhere", || {
            (0..3).all(|n| status(cluster.at(n), &key) == 401)
        });
        revoked.elapsed()
    });
    assert!(median(took) < REVOKED_WITHIN, "{took:?}");
}

#[test]
fn what_is_revoked_stays_revoked_while_the_store_is_away_and_after_it_lost_everything() {
    testkit::needs!(Valkey);
    let cluster = Cluster::start(2, GUARDED);
    let homes: Vec<&Home> = cluster.replicas.iter().map(|(home, _)| home).collect();
    let make = |name: &str| {
        let made = shell(homes[0], &["key", "create", name]).out.trim().to_owned();
        eventually("the other knows it", || status(cluster.at(1), &made) == 200);
        made
    };
    let (first, second) = (make("first"), make("second"));
    assert_eq!(shell(homes[0], &["key", "revoke", "first"]).code, 0);
    eventually("it is useless", || status(cluster.at(1), &first) == 401);
    cluster.store.kill();
    assert_eq!(shell(homes[0], &["key", "revoke", "second"]).code, 0);
    eventually("it is useless here", || status(cluster.at(0), &second) == 401);
    assert_eq!(status(cluster.at(1), &second), 200, "nobody could tell the other");
    assert_eq!(status(cluster.at(1), &first), 401, "what was known last holds");
    cluster.store.resume();
    eventually("it is useless there", || status(cluster.at(1), &second) == 401);
    for site in [cluster.at(0), cluster.at(1)] {
        assert_eq!(status(site, &first), 401, "an empty store brings nothing back");
    }
}

#[test]
fn a_tool_that_is_revoked_at_one_replica_is_refused_at_the_others() {
    testkit::needs!(Valkey);
    let cluster = Cluster::start(2, "[trust]\nmode = \"enforce\"\n\n");
    let [(one, _), (other, _)] = &cluster.replicas[..] else { unreachable!("there are two") };
    let knows = |home: &Home, level: &str| {
        shell(home, &["trust", "list", "--json"]).out.contains(&format!("\"{level}\""))
    };
    let granted = shell(one, &["trust", "grant", "work/act"]);
    assert_eq!(granted.code, 0, "{}", granted.err);
    // A call that comes before would wait for somebody to approve it.
    eventually("the other knows that it was granted", || knows(other, "trusted"));
    let answer = cluster.at(1).told(None, "call", &act(1));
    assert!(answer.contains("acted"), "{answer}");
    assert_eq!(shell(one, &["trust", "revoke", "work/act"]).code, 0);
    eventually("the other knows that it was revoked", || knows(other, "untrusted"));
    for replica in [0, 1] {
        let refused = cluster.at(replica).told(None, "call", &act(2));
        assert!(refused.contains("not trusted"), "{refused}");
    }
    assert_eq!(cluster.deeds(), ["1"]);
}

#[test]
fn trust_that_is_revoked_at_one_replica_is_gone_at_the_others_within_a_second() {
    testkit::needs!(Valkey);
    let cluster =
        Cluster::start(2, "[trust]\nmode = \"enforce\"\n\n[approvals]\nwait = \"0s\"\n\n");
    let said = |n: u64| cluster.at(1).told(None, "call", &act(n));
    let mut n = 0;
    let took = [(); 3].map(|()| {
        assert_eq!(shell(cluster.home(0), &["trust", "grant", "work/act"]).code, 0);
        eventually("the other knows that it was granted", || {
            n += 1;
            said(n).contains("acted")
        });
        assert_eq!(shell(cluster.home(0), &["trust", "revoke", "work/act"]).code, 0);
        let revoked = Instant::now();
        eventually("the other refuses it", || {
            n += 1;
            !said(n).contains("acted")
        });
        revoked.elapsed()
    });
    assert!(median(took) < REVOKED_WITHIN, "{took:?}");
}

#[test]
fn what_somebody_without_the_key_wrote_into_the_store_is_not_believed() {
    testkit::needs!(Valkey);
    let mut cluster = Cluster::start(0, "");
    let signed =
        |key: &str| format!("[state]\nurl = {:?}\nkey = {key:?}\n\n{GUARDED}", cluster.store.url());
    let (ours, theirs) = (
        Home::with(&signed("the key of the operator")),
        Home::with(&signed("the key of a stranger")),
    );
    let gate = Served::start(&ours);
    let stranger = Served::start(&theirs);
    let key = shell(&theirs, &["key", "create", "evil"]).out.trim().to_owned();
    eventually("it counts where it was made", || status(&stranger, &key) == 200);
    // What comes after it in the same way has come.
    let good = shell(&ours, &["key", "create", "good"]).out.trim().to_owned();
    eventually("our own counts", || status(&gate, &good) == 200);
    for _ in 0..20 {
        assert_eq!(status(&gate, &key), 401);
    }
    cluster.replicas.clear();
}

#[test]
fn a_new_replica_lists_what_others_listed_although_it_cannot_start_the_upstream() {
    testkit::needs!(Valkey);
    let cluster = Cluster::start(1, "");
    assert!(cluster.at(0).told(None, "call", &act(1)).contains("acted"));
    let help = json!({"namespace": "work"});
    let listed = || cluster.store.cli(&["--scan", "--pattern", "*listing work-*"]);
    eventually("the others can know it", || listed().is_some_and(|keys| !keys.is_empty()));
    std::fs::write(cluster.program.path(), "raise SystemExit(1)").unwrap();
    let (_home, late) = cluster.replica("");
    let told = late.told(None, "help", &help);
    assert!(told.contains("act"), "{told}");
    let alone = Home::with(&format!("{BUILTIN}{}", cluster.upstream()));
    let told = Served::start(&alone).told(None, "help", &help);
    assert!(!told.contains("act("), "who shares nothing knows nothing: {told}");
}
