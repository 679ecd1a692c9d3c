//! Replicas and the store die at random while clients call through a load balancer.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::json;

use super::{Cluster, act};
use crate::kit::{Served, Site, eventually};

/// nginx in front of the replicas, one request to each in turn.
struct Balancer {
    child: Child,
    site: Site,
    _directory: tempfile::TempDir,
}

impl Balancer {
    fn start(cluster: &Cluster) -> Balancer {
        let directory = tempfile::tempdir().unwrap();
        let socket = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let servers = cluster.replicas.iter().map(|(_, served)| {
            format!("server {} max_fails=1 fail_timeout=1s;", served.authority())
        });
        let servers: String = servers.collect();
        let place = directory.path().display();
        // Only what certainly reached nobody is sent to the next one.
        let config = format!(
            "daemon off; worker_processes 1; pid {place}/pid; error_log {place}/log;\n\
             events {{ worker_connections 256; }}\n\
             http {{ access_log off; client_body_temp_path {place}/b; proxy_temp_path {place}/p;\n\
             fastcgi_temp_path {place}/f; uwsgi_temp_path {place}/u; scgi_temp_path {place}/s;\n\
             upstream gate {{ {servers} }}\n\
             server {{ listen {socket}; location / {{ proxy_pass http://gate; proxy_buffering off;\n\
             proxy_http_version 1.1; proxy_set_header Host $host; proxy_set_header Connection \"\"; proxy_next_upstream error;\n\
             proxy_connect_timeout 1s; proxy_read_timeout 300s; }} }} }}\n"
        );
        let file = directory.path().join("nginx.conf");
        std::fs::write(&file, config).unwrap();
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM", "nginx", "-p"]).arg(directory.path());
        let child = command.arg("-c").arg(&file).stderr(Stdio::null()).spawn().unwrap();
        let site = Site { url: format!("http://{socket}/mcp") };
        eventually("nginx listens", || TcpStream::connect(socket).is_ok());
        Balancer { child, site, _directory: directory }
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        crate::kit::signal(self.child.id(), "TERM");
        let _ = self.child.wait();
    }
}

/// What became of the calls of all clients.
#[derive(Default)]
struct Tally {
    next: AtomicUsize,
    answered: Mutex<Vec<usize>>,
    failed: AtomicUsize,
}

impl Tally {
    fn n_done(&self) -> usize {
        self.answered.lock().unwrap().len() + self.failed.load(Ordering::SeqCst)
    }

    /// Makes one call with a number that no other has.
    fn call(&self, site: &Site) {
        let n = self.next.fetch_add(1, Ordering::SeqCst);
        let headers = [
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", "tools/call"),
            ("Mcp-Name", "call"),
        ];
        let params = json!({"name": "call", "arguments": act(n as u64), "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "it", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {}}});
        let message = json!({"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": params});
        let answer = site.post(&message, &headers);
        match answer.status == 200 && answer.body.contains("acted") {
            true => self.answered.lock().unwrap().push(n),
            false => drop(self.failed.fetch_add(1, Ordering::SeqCst)),
        }
    }
}

/// What happens to the cluster, one after another, in an order that the seed says.
const FAULTS: [fn(&mut Cluster, usize); 4] = [
    // A replica dies without a word, and comes back where it was.
    |cluster, n| {
        let at = n % cluster.replicas.len();
        let (home, served) = cluster.replicas.remove(at);
        let address = served.authority().to_owned();
        drop(served);
        let back = Served::start_at(&home, &address, &[]);
        cluster.replicas.push((home, back));
    },
    // One is asked to end, as in an upgrade, and comes back.
    |cluster, n| {
        let at = n % cluster.replicas.len();
        let (home, served) = cluster.replicas.remove(at);
        let address = served.authority().to_owned();
        served.terminate();
        let back = Served::start_at(&home, &address, &[]);
        cluster.replicas.push((home, back));
    },
    // The store dies and comes back empty.
    |cluster, _| {
        cluster.store.kill();
        cluster.store.resume();
    },
    // The link to the store is cut for a moment.
    |cluster, _| {
        cluster.store.signal("STOP");
        let now = json!({"namespace": "time", "function": "now", "kwargs": {}});
        assert!(!cluster.at(0).told(None, "call", &now).is_empty(), "an answer, whatever it is");
        cluster.store.signal("CONT");
    },
];

/// Replicas and the store die and come back while clients call. What was answered
/// ran once; what was not answered ran once or not at all.
#[test]
fn nothing_runs_twice_and_nothing_is_lost_while_replicas_and_the_store_die() {
    testkit::needs!(Nginx);
    let rate = "[[controls.rate]]\ntool = \"time.now\"\nper_minute = 1000\n\n";
    let mut cluster = Cluster::start(3, rate);
    let balancer = Balancer::start(&cluster);
    let (tally, is_over) = (Tally::default(), AtomicBool::new(false));
    let (mut seed, mut failed_before): (usize, usize) = (20_261_118, 0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !is_over.load(Ordering::SeqCst) {
                    tally.call(&balancer.site);
                }
            });
        }
        let wait = |more: usize| {
            let before = tally.n_done();
            eventually("clients are answered", || before + more <= tally.n_done());
        };
        wait(20);
        failed_before = tally.failed.load(Ordering::SeqCst);
        for _ in 0..8 {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            FAULTS[(seed >> 33) % FAULTS.len()](&mut cluster, seed >> 40);
            wait(20);
        }
        is_over.store(true, Ordering::SeqCst);
    });
    assert_eq!(failed_before, 0, "with everybody there");
    let (deeds, answered) = (cluster.deeds(), tally.answered.into_inner().unwrap());
    let times = |n: usize| deeds.iter().filter(|deed| **deed == n.to_string()).count();
    let (n_calls, failed) = (tally.next.into_inner(), tally.failed.into_inner());
    let lost = answered.iter().filter(|n| times(**n) == 0).count();
    let twice = (0..n_calls).filter(|n| 1 < times(*n)).count();
    println!(
        "calls {n_calls}, answered {}, failed {failed}, lost {lost}, twice {twice}",
        answered.len()
    );
    assert_eq!((lost, twice), (0, 0));
    assert_eq!(answered.len() + failed, n_calls, "everybody was told something");
    assert!(
        n_calls / 2 < answered.len(),
        "most calls are answered: {} of {n_calls}",
        answered.len()
    );
}
