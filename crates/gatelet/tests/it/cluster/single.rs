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

/// An upstream that says which process it is, and runs at one replica.
struct Lone {
    cluster: Cluster,
    starts: tempfile::NamedTempFile,
    _script: tempfile::NamedTempFile,
}

impl Lone {
    fn start(n_replicas: usize) -> Lone {
        let starts = tempfile::NamedTempFile::new().unwrap();
        let deed = "say(id, {\"content\": [{\"type\": \"text\", \"text\": \"by \" + str(__import__('os').getpid()) + \".\"}]})";
        let start = format!(
            "open({:?}, 'a').write(str(__import__('os').getpid()) + '\\n')\n",
            starts.path()
        );
        let mut script = tempfile::NamedTempFile::new().unwrap();
        script.write_all((start + &program(deed)).as_bytes()).unwrap();
        let config = format!(
            "[[upstream]]\nlabel = \"lone\"\ncommand = \"python3\"\nargs = [{:?}]\nsingle = true\n\n",
            script.path()
        );
        Lone { cluster: Cluster::start(n_replicas, &config), starts, _script: script }
    }

    fn call(&self, replica: usize) -> String {
        let call = json!({"namespace": "lone", "function": "act", "kwargs": {}});
        self.cluster.at(replica).told(None, "call", &call)
    }

    /// The process that answered, if one did.
    fn process(said: &str) -> Option<u32> {
        said.split("by ").nth(1)?.split('.').next()?.parse().ok()
    }

    /// The replica that runs the process.
    fn owner(&self, process: u32) -> usize {
        let owner =
            self.cluster.replicas.iter().position(|(_, gate)| is_descendant(process, gate.id()));
        owner.expect("a replica started it")
    }

    fn n_starts(&self) -> usize {
        std::fs::read_to_string(self.starts.path()).unwrap().lines().count()
    }
}

fn signal(process: u32, name: &str) {
    let words = [format!("-{name}"), process.to_string()];
    let sent = std::process::Command::new("kill").args(words).status();
    assert!(sent.is_ok_and(|sent| sent.success()), "{process} takes {name}");
}

#[test]
fn a_holder_that_stands_still_is_replaced_and_gives_up_when_it_wakes() {
    testkit::needs!(Valkey);
    let lone = Lone::start(2);
    let first = Lone::process(&lone.call(0)).expect("it answers");
    let holder = lone.owner(first);
    let other = 1 - holder;
    assert_eq!(Lone::process(&lone.call(other)), Some(first));
    let gate = lone.cluster.replicas[holder].1.id();
    signal(gate, "STOP");
    let stopped = std::time::Instant::now();
    let mut second = None;
    eventually("the other runs it", || {
        second = Lone::process(&lone.call(other));
        second.is_some_and(|second| second != first)
    });
    let took = stopped.elapsed();
    signal(gate, "CONT");
    assert!(took < std::time::Duration::from_secs(12), "it took {took:?}");
    eventually("the one that woke carries calls to it", || {
        Lone::process(&lone.call(holder)) == second
    });
    let is_gone = || !std::path::Path::new(&format!("/proc/{first}")).exists();
    eventually("what it ran has ended", is_gone);
    assert_eq!(lone.n_starts(), 2);
    assert_eq!(Lone::process(&lone.call(other)), second, "and it goes on");
}

#[test]
fn a_single_upstream_runs_at_one_replica_and_another_takes_over_when_that_one_dies() {
    testkit::needs!(Valkey);
    let mut lone = Lone::start(3);
    let mut by: Vec<String> = (0..6).map(|n| lone.call(n % 3)).collect();
    by.dedup();
    let [by] = &by[..] else { panic!("one process answers all: {by:?}") };
    let process = Lone::process(by).unwrap_or_else(|| panic!("{by}"));
    assert_eq!(lone.n_starts(), 1);
    let owner = lone.owner(process);
    drop(lone.cluster.replicas.remove(owner));
    let died = std::time::Instant::now();
    let mut answer = String::new();
    eventually("another replica runs it", || {
        answer = lone.call(0);
        answer.contains("by ")
    });
    let took = died.elapsed();
    assert!(took < std::time::Duration::from_secs(10), "it took {took:?}");
    assert_eq!(lone.call(1), answer, "at both that are left");
    assert_eq!(lone.n_starts(), 2, "it was started once more");
}
