//! Replicas whose store is a primary behind Sentinel or a cluster.

use std::io::Write;

use serde_json::{Value, json};
use testkit::valkey::Server;
use testkit::valkey::sentinel::Sentinel;

use super::sessions::OldClient;
use super::{Cluster, act};
use crate::kit::{eventually, program, shell};

/// Two replicas with everything that needs the store.
struct Shared {
    cluster: Cluster,
    _lone: tempfile::NamedTempFile,
}

impl Shared {
    fn start_at(url: &str, store: Server) -> Shared {
        let deed = "say(id, {\"content\": [{\"type\": \"text\", \"text\": \"by \" + str(__import__('os').getpid()) + \".\"}]})";
        let mut lone = tempfile::NamedTempFile::new().unwrap();
        lone.write_all(program(deed).as_bytes()).unwrap();
        let config = format!(
            "[approvals]\nwait = \"0s\"\n\n\
             [[controls.rule]]\naction = \"ask\"\ntool = \"units.convert\"\n\n\
             [[controls.rate]]\ntool = \"time.now\"\nper_minute = 4\n\n\
             [[upstream]]\nlabel = \"lone\"\ncommand = \"python3\"\nargs = [{:?}]\nsingle = true\n\n",
            lone.path()
        );
        Shared { cluster: Cluster::start_at(url, store, 2, &config), _lone: lone }
    }

    fn told(&self, replica: usize, namespace: &str, function: &str, kwargs: &Value) -> String {
        let call = json!({"namespace": namespace, "function": function, "kwargs": kwargs});
        self.cluster.at(replica).told(None, "call", &call)
    }

    fn limits_are_counted_once(&self) {
        let answers = (0..8).map(|n| self.told(n % 2, "time", "now", &json!({})));
        let refused = answers.filter(|answer| answer.contains("rate limit exceeded")).count();
        assert_eq!(refused, 4);
    }

    /// An agreement about a call with this value is given at one replica and used at the
    /// other.
    fn agreements_are_good_once_everywhere(&self, value: u32) {
        let kwargs = json!({"value": value, "from": "km", "to": "m"});
        let mut told = String::new();
        eventually("somebody is asked", || {
            told = self.told(0, "units", "convert", &kwargs);
            told.contains("approval request ")
        });
        let number = told.split("approval request ").nth(1).unwrap_or_default();
        let number: String = number.chars().take_while(char::is_ascii_digit).collect();
        let allowed = shell(self.cluster.home(1), &["approvals", "allow", &number, "--yes"]);
        assert_eq!(allowed.code, 0, "{}", allowed.err);
        let done = self.told(1, "units", "convert", &kwargs);
        assert!(done.contains(&format!("{}", value * 1000)), "{done}");
        let again = self.told(0, "units", "convert", &kwargs);
        assert!(again.contains("approval request "), "{again}");
    }

    fn one_replica_runs_what_is_single(&self) {
        let mut by = [String::new(), String::new()];
        eventually("both reach the same process", || {
            by = [0, 1].map(|replica| self.told(replica, "lone", "act", &json!({})));
            by[0].contains("by ") && by[0] == by[1]
        });
    }
}

#[test]
fn replicas_share_everything_on_a_cluster() {
    testkit::needs!(Valkey);
    let [first, second, third]: [Server; 3] = Server::cluster();
    let nodes = [&first, &second, &third].map(|node| format!("127.0.0.1:{}", node.port()));
    let shared = Shared::start_at(&format!("valkey+cluster://{}", nodes.join(",")), first);
    let client = OldClient::open(&shared.cluster, &json!({}), None);
    for n in 0..4 {
        assert!(client.act(n).contains("acted"));
    }
    assert_eq!(shared.cluster.deeds().len(), 4, "each call ran once");
    shared.limits_are_counted_once();
    shared.agreements_are_good_once_everywhere(7);
    shared.one_replica_runs_what_is_single();
    drop((second, third));
}

#[test]
fn replicas_share_everything_behind_sentinel_before_and_after_a_failover() {
    testkit::needs!(Valkey);
    let (primary, promoted) = (Server::start(&[]), Server::start(&[]));
    promoted.cli(&["REPLICAOF", "127.0.0.1", &primary.port().to_string()]).unwrap();
    let sentinel = Sentinel::start(&primary);
    let shared = Shared::start_at(&sentinel.url(), primary);
    let client = OldClient::open(&shared.cluster, &json!({}), None);
    assert!(client.act(0).contains("acted"));
    shared.limits_are_counted_once();
    shared.agreements_are_good_once_everywhere(7);
    shared.one_replica_runs_what_is_single();
    shared.cluster.store.wait_for_replica();
    shared.cluster.store.kill();
    eventually("all replicas are ready again", || {
        let is_ready =
            |n: usize| shared.cluster.at(n).path("/readyz").send("GET", &[], "").status == 200;
        is_ready(0) && is_ready(1)
    });
    assert!(client.act(1).contains("acted"), "the session goes on");
    let direct = shared.cluster.at(1).told(None, "call", &act(2));
    assert!(direct.contains("acted"), "{direct}");
    assert_eq!(shared.cluster.deeds(), ["0", "1", "2"]);
    shared.agreements_are_good_once_everywhere(8);
    let refused = shared.told(0, "time", "now", &json!({}));
    assert!(refused.contains("rate limit exceeded"), "what was counted is known: {refused}");
    shared.one_replica_runs_what_is_single();
}
