//! What one replica keeps, another shows.

use serde_json::json;
use testkit::object_store::{BUCKET, ObjectStore};

use super::Cluster;

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
