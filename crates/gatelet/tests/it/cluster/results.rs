//! What one replica keeps, another shows.

use std::io::Write;

use serde_json::json;
use testkit::object_store::{BUCKET, ObjectStore};

use super::Cluster;
use crate::kit::{eventually, program, shell};

/// Has one replica keep a long result, and gives its handle.
fn keep_at(cluster: &Cluster, replica: usize) -> String {
    let numbers: Vec<u32> = (0..1000).collect();
    let query = json!({"namespace": "json", "function": "query",
                       "kwargs": {"json": numbers, "filter": "."}});
    let gated = cluster.at(replica).told(None, "call", &query);
    let handle = gated.split(|c: char| !c.is_ascii_hexdigit()).find(|word| word.len() == 24);
    handle.unwrap_or_else(|| panic!("no handle in {gated}")).to_owned()
}

fn view_at(cluster: &Cluster, replica: usize, handle: &str) -> String {
    let view = json!({"namespace": "gatelet", "function": "view", "kwargs": {"handle": handle}});
    cluster.at(replica).told(None, "call", &view)
}

#[track_caller]
fn check_kept_is_shown(cluster: &Cluster) {
    let handle = keep_at(cluster, 0);
    let seen = view_at(cluster, 1, &handle);
    assert!(seen.contains("31,32,33"), "{seen}");
    let made_up = view_at(cluster, 1, &"0".repeat(24));
    assert!(!made_up.contains("31,32,33"), "a made-up handle shows nothing: {made_up}");
}

#[test]
fn what_one_replica_keeps_another_shows() {
    testkit::needs!(Valkey);
    check_kept_is_shown(&Cluster::start(2, "[gate]\nlimit = 200\n\n"));
}

#[test]
fn what_one_replica_keeps_in_a_shared_directory_another_shows() {
    testkit::needs!(Valkey);
    let directory = tempfile::tempdir().unwrap();
    let store = format!("dir:{}", directory.path().display());
    let config = format!("[gate]\nlimit = 200\n\n[artifacts]\nstore = {store:?}\n\n");
    check_kept_is_shown(&Cluster::start(2, &config));
    assert_ne!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn what_one_replica_keeps_in_an_object_store_another_shows_and_its_loss_is_told() {
    testkit::needs!(ObjectStore);
    let objects = ObjectStore::start();
    let config = format!(
        "[gate]\nlimit = 200\n\n[artifacts]\nstore = \"s3://{BUCKET}/gate\"\n\n[artifacts.s3]\n\
         endpoint = {:?}\naccess_key = \"key\"\nsecret_key = \"secret\"\n\n",
        objects.endpoint()
    );
    let cluster = Cluster::start(2, &config);
    check_kept_is_shown(&cluster);
    assert_eq!(objects.n_objects(), 1, "the bytes are there and nowhere else");
    objects.kill();
    let handle = keep_at(&cluster, 0);
    assert!(
        view_at(&cluster, 0, &handle).contains("31,32,33"),
        "it is in the memory of that replica"
    );
    assert!(!view_at(&cluster, 1, &handle).contains("31,32,33"), "and only there");
    objects.resume();
    check_kept_is_shown(&cluster);
}

#[test]
fn what_one_replica_has_cached_another_answers_with() {
    testkit::needs!(Valkey);
    let looks = tempfile::NamedTempFile::new().unwrap();
    let deed = format!(
        "open({:?}, 'a').write('x'); say(id, {{\"content\": [{{\"type\": \"text\", \"text\": \"seen \" \
         + str(message['params']['arguments'].get('n'))}}]}})",
        looks.path()
    );
    let reads = "\"annotations\": {\"readOnlyHint\": True}, \"inputSchema\"";
    let mut script = tempfile::NamedTempFile::new().unwrap();
    script.write_all(program(&deed).replace("\"inputSchema\"", reads).as_bytes()).unwrap();
    let config = format!(
        "[auth]\nrequired = true\n\n[controls.cache]\nread_only = true\n\n[[upstream]]\nlabel = \"look\"\n\
         command = \"python3\"\nargs = [{:?}]\n\n",
        script.path()
    );
    let cluster = Cluster::start(2, &config);
    let [ann, bob] = ["ann", "bob"]
        .map(|name| shell(cluster.home(0), &["key", "create", name]).out.trim().to_owned());
    let look_as = |key: &str, replica: usize, n: u64| {
        let call = json!({"namespace": "look", "function": "act", "kwargs": {"n": n}});
        cluster.at(replica).told(Some(key), "call", &call)
    };
    let look = |replica: usize, n: u64| look_as(&ann, replica, n);
    eventually("both know the keys and the tool", || {
        let list = json!({"namespace": "look"});
        let help = |replica: usize| cluster.at(replica).told(Some(&bob), "help", &list);
        (0..2).all(|replica| help(replica).contains("act"))
    });
    let n_looks = || std::fs::read_to_string(looks.path()).unwrap().len();
    assert!(look(0, 1).contains("seen 1"));
    let stored = || cluster.store.cli(&["--scan", "--pattern", "*reply *"]);
    eventually("the others can know it", || stored().is_some_and(|keys| !keys.is_empty()));
    let seen = look(1, 1);
    assert!(seen.contains("seen 1"), "{seen}");
    assert_eq!(n_looks(), 1, "the second replica did not ask the upstream");
    assert!(look(1, 2).contains("seen 2"), "other arguments");
    assert!(look_as(&bob, 1, 1).contains("seen 1"), "another caller");
    assert_eq!(n_looks(), 3);
    let acted = cluster.at(0).told(Some(&ann), "call", &super::act(1));
    assert!(acted.contains("acted"), "{acted}");
    eventually("the others can know those too", || {
        stored().is_some_and(|keys| keys.lines().count() == 3)
    });
    cluster.store.kill();
    assert!(look(0, 3).contains("seen 3"), "without the store each looks for itself");
    assert!(look(1, 3).contains("seen 3"));
    assert_eq!(n_looks(), 5);
}
