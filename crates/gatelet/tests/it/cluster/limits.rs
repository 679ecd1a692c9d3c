//! Limits that are counted over all replicas, and a store that is away or unfit.

use serde_json::json;
use testkit::valkey::Server;

use super::{BUILTIN, Cluster};
use crate::kit::{Home, Served, eventually, shell};

#[test]
fn a_limit_is_counted_once_over_all_replicas() {
    testkit::needs!(Valkey);
    let rate = "[[controls.rate]]\ntool = \"time.now\"\nper_minute = 4\n";
    let cluster = Cluster::start(2, rate);
    let now = json!({"namespace": "time", "function": "now", "kwargs": {}});
    let answers: Vec<String> = (0..8).map(|n| cluster.at(n % 2).told(None, "call", &now)).collect();
    let refused = answers.iter().filter(|answer| answer.contains("rate limit exceeded")).count();
    assert_eq!(refused, 4, "{answers:?}");
}

#[test]
fn while_the_store_is_away_calls_without_limits_go_on_and_it_is_told() {
    testkit::needs!(Valkey);
    let rate = "[[controls.rate]]\ntool = \"time.now\"\nper_minute = 4\n";
    let cluster = Cluster::start(1, rate);
    let home = Home::with(&format!(
        "{BUILTIN}[state]\nurl = {:?}\non_loss = \"refuse\"\n\n{rate}",
        cluster.store.url()
    ));
    let strict = Served::start(&home);
    let now = json!({"namespace": "time", "function": "now", "kwargs": {}});
    let convert = json!({"namespace": "units", "function": "convert",
                         "kwargs": {"value": 1, "from": "km", "to": "m"}});
    assert_eq!(strict.path("/readyz").send("GET", &[], "").status, 200);
    cluster.store.kill();
    assert!(strict.told(None, "call", &convert).contains("1000"), "no limit, no store");
    let refused = strict.told(None, "call", &now);
    assert!(refused.contains("the store that replicas share is away"), "{refused}");
    assert_eq!(strict.path("/readyz").send("GET", &[], "").status, 503);
    assert_eq!(strict.path("/healthz").send("GET", &[], "").status, 200);
    let alone = cluster.at(0);
    let answers: Vec<String> = (0..6).map(|_| alone.told(None, "call", &now)).collect();
    let refused = answers.iter().filter(|answer| answer.contains("rate limit exceeded")).count();
    assert_eq!(refused, 2, "each counts alone: {answers:?}");
    cluster.store.resume();
    eventually("it is ready again", || strict.path("/readyz").send("GET", &[], "").status == 200);
    eventually("limits are counted", || !strict.told(None, "call", &now).contains("away"));
}

#[test]
fn a_store_that_drops_keys_ends_the_start_with_the_remedy() {
    testkit::needs!(Valkey);
    let store = Server::start(&["--maxmemory-policy allkeys-lru"]);
    let home = Home::with(&format!("{BUILTIN}[state]\nurl = {:?}\n", store.url()));
    let refused = shell(&home, &["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(refused.code, 2, "{}", refused.err);
    assert!(refused.err.contains("maxmemory-policy noeviction"), "{}", refused.err);
    let wrong = Home::with(&format!("{BUILTIN}[state]\nurl = \"http://cache\"\n"));
    let refused = shell(&wrong, &["serve", "--listen", "127.0.0.1:0"]);
    assert!(refused.code == 2 && refused.err.contains("valkey+sentinel://"), "{}", refused.err);
}
