//! The official clients of both eras through real load balancers that know nothing.

use serde_json::json;
use testkit::balancer::Balancer;

use super::Cluster;
use crate::clients::{calls, check, run, script};
use crate::kit::{eventually, node, npm_upstream, tool};

/// Every official client does its work through a balancer.
fn check_clients(start: fn(&[&str]) -> Balancer) {
    let cluster = Cluster::start(3, &npm_upstream("everything", "server-everything", &[]));
    let echo = json!({"namespace": "everything", "function": "echo", "kwargs": {"message": "up"}});
    for replica in 0..3 {
        eventually("the upstream is up", || {
            cluster.at(replica).told(None, "call", &echo).contains("up")
        });
    }
    let replicas: Vec<&str> = (0..3).map(|replica| cluster.at(replica).authority()).collect();
    let balancer = start(&replicas);
    let (home, calls) = (&cluster.replicas[0].0, calls().to_string());
    let (python, typescript) = (script("python.py"), script("typescript.mjs"));
    let clients = [
        (tool("py/bin/python"), &python, "auto", "2026-07-28"),
        (tool("py/bin/python"), &python, "legacy", "2025-11-25"),
        (node(), &typescript, "v1", "2025-11-25"),
        (node(), &typescript, "v2", "2026-07-28"),
        (node(), &typescript, "v2-legacy", "2025-11-25"),
    ];
    for (program, script, mode, protocol) in clients {
        let seen = run(home, &program, &[script, mode, &calls, "http", &balancer.url()]);
        check(&format!("{script} {mode}"), &seen, protocol);
    }
}

#[test]
fn the_official_clients_work_through_nginx() {
    testkit::needs!(Tools);
    testkit::needs!(Nginx);
    check_clients(Balancer::nginx);
}

#[test]
fn the_official_clients_work_through_haproxy() {
    testkit::needs!(Tools);
    testkit::needs!(Haproxy);
    check_clients(Balancer::haproxy);
}
