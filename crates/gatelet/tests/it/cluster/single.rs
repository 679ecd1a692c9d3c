//! An upstream that runs at one replica at a time.

use std::io::Write;

use serde_json::json;

use super::Cluster;
use crate::kit::{eventually, program};

/// The process that started another, or one that it started did.
pub(super) fn is_descendant(mut process: u32, of: u32) -> bool {
    while 1 < process {
        if process == of {
            return true;
        }
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
        process = parent.and_then(|parent| parent.trim().parse().ok()).unwrap_or(0);
    }
    false
}

#[test]
fn a_single_upstream_runs_at_one_replica_and_another_takes_over_when_that_one_dies() {
    testkit::needs!(Valkey);
    let starts = tempfile::NamedTempFile::new().unwrap();
    let deed = "say(id, {\"content\": [{\"type\": \"text\", \"text\": \"by \" + str(__import__('os').getpid()) + \".\"}]})";
    let start =
        format!("open({:?}, 'a').write(str(__import__('os').getpid()) + '\\n')\n", starts.path());
    let mut script = tempfile::NamedTempFile::new().unwrap();
    script.write_all((start + &program(deed)).as_bytes()).unwrap();
    let config = format!(
        "[[upstream]]\nlabel = \"lone\"\ncommand = \"python3\"\nargs = [{:?}]\nsingle = true\n\n",
        script.path()
    );
    let mut cluster = Cluster::start(3, &config);
    let call = json!({"namespace": "lone", "function": "act", "kwargs": {}});
    let mut by: Vec<String> = (0..6).map(|n| cluster.at(n % 3).told(None, "call", &call)).collect();
    by.dedup();
    let [by] = &by[..] else { panic!("one process answers all: {by:?}") };
    let process = by.split("by ").nth(1).and_then(|rest| rest.split('.').next());
    let process: u32 = process.and_then(|id| id.parse().ok()).unwrap_or_else(|| panic!("{by}"));
    let started = || std::fs::read_to_string(starts.path()).unwrap().lines().count();
    assert_eq!(started(), 1);
    let owner = cluster.replicas.iter().position(|(_, gate)| is_descendant(process, gate.id()));
    drop(cluster.replicas.remove(owner.expect("a replica started it")));
    let died = std::time::Instant::now();
    let mut answer = String::new();
    eventually("another replica runs it", || {
        answer = cluster.at(0).told(None, "call", &call);
        answer.contains("by ")
    });
    let took = died.elapsed();
    assert!(took < std::time::Duration::from_secs(10), "it took {took:?}");
    assert_eq!(cluster.at(1).told(None, "call", &call), answer, "at both that are left");
    assert_eq!(started(), 2, "it was started once more");
}
