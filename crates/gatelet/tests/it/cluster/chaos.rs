//! Replicas, the store and the links between them fail at random while clients call
//! through a load balancer.
//!
//! `cargo xtask test cluster [MINUTES] [SEED]` runs it for longer.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::balancer::Balancer;
use testkit::valkey::Server;

use super::link::Link;
use super::{BUILTIN, Cluster, act};
use crate::kit::{Answer, Home, Served, Site, eventually, shell};

/// A replica with a link to the store and a clock of its own.
struct Member {
    home: Arc<Home>,
    link: Link,
    /// How far its clock is off, in seconds.
    skew: &'static str,
    address: String,
    served: Option<Served>,
}

/// The clocks of the replicas. The store has the right one.
const SKEWS: [&str; 3] = ["+0", "+7", "-7"];

/// Besides what runs at once, some calls have to be agreed to first, and one upstream runs
/// at one replica.
const CONTROLS: &str = "[trust]\nmode = \"off\"\n\n[scripts]\nenabled = true\n\n[approvals]\nwait = \"0s\"\n\n\
    [[controls.rate]]\ntool = \"time.now\"\nper_minute = 1000\n\n\
    [[controls.rule]]\naction = \"ask\"\ntool = \"asked.*\"\n\n";

impl Member {
    fn start(cluster: &Cluster, skew: &'static str) -> Member {
        let link = Link::to(cluster.store.port());
        let state = format!("[state]\nurl = {:?}\n\n", link.url());
        let upstream = cluster.upstream();
        let asked = upstream.replace("\"work\"", "\"asked\"");
        let lone = upstream.replace("\"work\"\n", "\"lone\"\nsingle = true\n");
        let home = Home::with(&format!("{BUILTIN}{state}{CONTROLS}{upstream}{asked}{lone}"));
        let home = Arc::new(home);
        let address = "127.0.0.1:0".to_owned();
        let mut member = Member { home, link, skew, address, served: None };
        member.resume();
        member.address = member.site().authority().to_owned();
        member
    }

    fn resume(&mut self) {
        let mut command = self.home.gatelet();
        let library = testkit::valkey::clock().expect("libfaketime is there");
        command.env("LD_PRELOAD", library).env("FAKETIME", format!("{}s", self.skew));
        command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1").env("DONT_FAKE_MONOTONIC", "1");
        self.served = Some(Served::start_by(command, &self.address, &[]));
    }

    fn site(&self) -> &Site {
        self.served.as_ref().expect("it runs")
    }

    fn is_ready(&self) -> bool {
        self.site().path("/readyz").send("GET", &[], "").status == 200
    }
}

/// What can fail.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// A replica dies without a word, and comes back where it was.
    ReplicaDies,
    /// One is asked to end, as in an upgrade, and comes back.
    ReplicaEnds,
    /// The store dies and comes back empty.
    StoreDies,
    /// The store stands still for everybody.
    StoreHangs,
    /// The network between one replica and the store is cut.
    LinkIsCut,
    /// The store has no room for anything new.
    StoreIsFull,
    /// The store dies, and its standby takes over, which lacks what was written last.
    StoreFailsOver,
}

const FAULTS: [Fault; 7] = [
    Fault::ReplicaDies,
    Fault::ReplicaEnds,
    Fault::StoreDies,
    Fault::StoreHangs,
    Fault::LinkIsCut,
    Fault::StoreIsFull,
    Fault::StoreFailsOver,
];

impl Fault {
    /// Happens to the member that `n` says, or to the store, and is over then. `busy`
    /// waits until clients have made some calls. Returns when it began to be mended.
    fn happen(
        self,
        cluster: &mut Cluster,
        standby: &mut Server,
        members: &mut [Member],
        n: usize,
        busy: &dyn Fn(),
    ) -> Instant {
        let at = n % members.len();
        let member = &mut members[at];
        let now = json!({"namespace": "time", "function": "now", "kwargs": {}});
        match self {
            Fault::ReplicaDies => {
                drop(member.served.take());
                busy();
                let mended = Instant::now();
                member.resume();
                mended
            }
            Fault::ReplicaEnds => {
                let served = member.served.take().expect("it runs");
                served.terminate();
                let mended = Instant::now();
                member.resume();
                mended
            }
            Fault::StoreDies => {
                cluster.store.kill();
                busy();
                let mended = Instant::now();
                cluster.store.resume();
                mended
            }
            Fault::StoreHangs => {
                cluster.store.signal("STOP");
                let told = member.site().told(None, "call", &now);
                assert!(!told.is_empty(), "an answer, whatever it is");
                cluster.store.signal("CONT");
                Instant::now()
            }
            Fault::LinkIsCut => {
                member.link.cut();
                eventually("the replica sees that the store is away", || !member.is_ready());
                busy();
                member.link.mend();
                Instant::now()
            }
            Fault::StoreIsFull => {
                set_memory(cluster, "1");
                let told = member.site().told(None, "call", &now);
                assert!(!told.is_empty(), "an answer, whatever it is");
                busy();
                set_memory(cluster, "0");
                Instant::now()
            }
            Fault::StoreFailsOver => {
                cluster.store.wait_for_replica();
                standby.cli(&["REPLICAOF", "NO", "ONE"]).expect("it is promoted");
                // Of this the standby does not hear.
                busy();
                cluster.store.kill();
                std::mem::swap(&mut cluster.store, standby);
                members.iter().for_each(|member| member.link.lead_to(cluster.store.port()));
                let mended = Instant::now();
                standby.resume();
                follow(standby, &cluster.store);
                mended
            }
        }
    }
}

/// Makes a store the standby of another.
fn follow(standby: &Server, store: &Server) {
    let port = store.port().to_string();
    standby.cli(&["REPLICAOF", "127.0.0.1", &port]).expect("it follows");
}

fn set_memory(cluster: &Cluster, bytes: &str) {
    let set = cluster.store.cli(&["CONFIG", "SET", "maxmemory", bytes]);
    assert_eq!(set.as_deref(), Some("OK"));
}

/// What became of the calls of all clients.
#[derive(Default)]
struct Tally {
    next: AtomicUsize,
    answered: Mutex<Vec<usize>>,
    /// When calls ended with an error that says so.
    refused: Mutex<Vec<Instant>>,
    /// When the connection ended without an answer, which only a client of the revision
    /// that has nothing to resume has to put up with.
    cut_off: Mutex<Vec<Instant>>,
    /// How often a client had to open a new session.
    reopened: AtomicUsize,
    /// How many calls were answered, by the way in which they were made.
    ways: Mutex<BTreeMap<&'static str, usize>>,
    /// How long a client waited at most, until it knew what became of its call.
    longest: Mutex<Duration>,
}

impl Tally {
    fn n_answered(&self) -> usize {
        self.answered.lock().unwrap().len()
    }

    fn n_failed(&self) -> usize {
        self.refused.lock().unwrap().len() + self.cut_off.lock().unwrap().len()
    }

    /// How long after a moment calls still failed.
    fn recovered_after(&self, moment: Instant) -> Duration {
        let refused = self.refused.lock().unwrap();
        let cut_off = self.cut_off.lock().unwrap();
        let last = refused.iter().chain(&*cut_off).max().copied();
        last.map_or(Duration::ZERO, |last| last.saturating_duration_since(moment))
    }

    /// Makes one call with a number that no other has, of the revision without sessions.
    fn call_alone(&self, site: &Site, namespace: &'static str) {
        let n = self.next.fetch_add(1, Ordering::SeqCst);
        self.count(namespace, n, &post(site, n, namespace, "act", &json!({"n": n})));
    }

    /// A call that somebody has to agree to, who does so by the shell at a replica.
    fn call_asked(&self, site: &Site, home: &Home) {
        let n = self.next.fetch_add(1, Ordering::SeqCst);
        let make = || post(site, n, "asked", "act", &json!({"n": n}));
        let mut answer = make();
        if let Some((_, rest)) = answer.body.split_once("approval request ") {
            let number: String = rest.chars().take_while(char::is_ascii_digit).collect();
            let allowed = shell(home, &["approvals", "allow", &number, "--yes"]);
            if allowed.code == 0 {
                answer = make();
            }
            // The agreement is good once, whatever became of the call.
            if answer.status == 200 && answer.body.contains("acted") {
                let again = make();
                assert!(!again.body.contains("\"acted\""), "{}", again.body);
            }
        }
        self.count("agreed to", n, &answer);
    }

    /// A script that makes two calls, and goes on where it stopped if it did.
    fn call_by_script(&self, site: &Site) {
        let [n, last] = [(); 2].map(|()| self.next.fetch_add(1, Ordering::SeqCst));
        let code = format!(
            "await tools.work.act({{n: {n}}}); await tools.lone.act({{n: {last}}}); return 'ac' + 'ted'"
        );
        let run = |kwargs: &Value| post(site, n, "gatelet", "run", kwargs);
        let mut answer = run(&json!({"code": code}));
        for _ in 0..3 {
            let handle = answer.body.split("\\\"resume\\\": \\\"").nth(1);
            let handle = handle.and_then(|rest| rest.split('\\').next()).map(str::to_owned);
            let Some(handle) = handle.filter(|_| !answer.body.contains("acted")) else { break };
            answer = run(&json!({"resume": handle}));
        }
        self.count("by a script", n, &answer);
        self.count("by a script", last, &answer);
    }

    /// The same in a session, which is opened again when it is gone.
    fn call_in_session(&self, site: &Site, session: &mut Option<String>) {
        let n = self.next.fetch_add(1, Ordering::SeqCst);
        let end = Instant::now() + crate::kit::PATIENCE;
        loop {
            assert!(Instant::now() < end, "no session can be opened");
            let Some(id) = session.clone().or_else(|| open_session(site)) else { continue };
            let headers = [("Mcp-Session-Id", id.as_str()), ("MCP-Protocol-Version", "2025-11-25")];
            let answer = site.post(&call(n, &json!({})), &headers);
            // Nothing ran, so the same call may be made again.
            if answer.status == 404 {
                *session = None;
                self.reopened.fetch_add(1, Ordering::SeqCst);
                continue;
            }
            let answer = resumed(site, answer, &headers);
            *session = Some(id);
            return self.count("in a session", n, &answer);
        }
    }

    fn count(&self, way: &'static str, n: usize, answer: &Answer) {
        let says = |word: &str| answer.body.contains(word);
        if answer.status == 200 && says("acted") {
            *self.ways.lock().unwrap().entry(way).or_default() += 1;
            self.answered.lock().unwrap().push(n);
        } else if answer.status != 200 || says("\"error\"") || says("\"isError\":true") {
            self.refused.lock().unwrap().push(Instant::now());
        } else {
            self.cut_off.lock().unwrap().push(Instant::now());
        }
    }
}

/// Takes up a stream that broke before its answer, through whichever replica comes next.
fn resumed(site: &Site, mut answer: Answer, headers: &[(&str, &str)]) -> Answer {
    let end = Instant::now() + crate::kit::PATIENCE;
    let is_answered =
        |body: &str| ["acted", "\"error\"", "\"isError\""].iter().any(|word| body.contains(word));
    while answer.status == 200 && !is_answered(&answer.body) {
        assert!(Instant::now() < end, "a stream cannot be resumed: {}", answer.body);
        let last = answer.body.lines().rev().find_map(|line| line.strip_prefix("id: "));
        let Some(last) = last.map(str::to_owned) else { return answer };
        let more = [("Accept", "text/event-stream"), ("Last-Event-ID", last.as_str())];
        let next = site.send("GET", &[headers, &more].concat(), "");
        // What the balancer or a replica without its store refuses may be tried again.
        if [502, 503, 504].contains(&next.status) {
            continue;
        }
        answer = Answer { body: answer.body + &next.body, ..next };
    }
    answer
}

fn call(n: usize, about: &Value) -> Value {
    let params = json!({"name": "call", "arguments": act(n as u64), "_meta": about});
    json!({"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": params})
}

/// Makes a call of the revision without sessions.
fn post(site: &Site, n: usize, namespace: &str, function: &str, kwargs: &Value) -> Answer {
    let headers = [
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "call"),
    ];
    let about = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "it", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {}});
    let arguments = json!({"namespace": namespace, "function": function, "kwargs": kwargs});
    let params = json!({"name": "call", "arguments": arguments, "_meta": about});
    let message = json!({"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": params});
    site.post(&message, &headers)
}

fn open_session(site: &Site) -> Option<String> {
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
                        "clientInfo": {"name": "old", "version": "1"}});
    let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    site.post(&message, &[]).header("mcp-session-id").map(str::to_owned)
}

/// A number that the chore sets.
#[expect(clippy::disallowed_methods, reason = "the chore says for how long, and in which order")]
fn number(name: &str) -> Option<usize> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

/// Faults in the order that a seed says: each kind once in every round.
struct Order {
    seed: usize,
    left: Vec<Fault>,
}

impl Order {
    fn next(&mut self) -> (Fault, usize) {
        if self.left.is_empty() {
            self.left = FAULTS.to_vec();
        }
        self.seed = self
            .seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let fault = self.left.remove((self.seed >> 33) % self.left.len());
        (fault, self.seed >> 40)
    }
}

/// What was answered ran once; what was not answered ran once or not at all.
#[test]
fn nothing_runs_twice_and_nothing_is_lost_while_replicas_store_and_links_fail() {
    testkit::needs!(Nginx);
    let mut cluster = Cluster::start(0, "");
    let mut standby = Server::start(&[]);
    follow(&standby, &cluster.store);
    let mut members: Vec<Member> =
        SKEWS.into_iter().map(|skew| Member::start(&cluster, skew)).collect();
    let addresses: Vec<&str> = members.iter().map(|member| member.address.as_str()).collect();
    let balancer = Balancer::nginx(&addresses);
    let site = Site { url: balancer.url() };
    let seed = number("GATELET_CHAOS_SEED").unwrap_or(20_261_118);
    let time =
        number("GATELET_CHAOS_MINUTES").map(|minutes| Duration::from_secs(60 * minutes as u64));
    let (tally, is_over) = (Tally::default(), AtomicBool::new(false));
    let (mut failed_before, mut recoveries) = (0, Vec::new());
    std::thread::scope(|scope| {
        for n in 0..6 {
            let (tally, is_over, site) = (&tally, &is_over, &site);
            let home = Arc::clone(&members[n % members.len()].home);
            scope.spawn(move || {
                let mut session = None;
                while !is_over.load(Ordering::SeqCst) {
                    let began = Instant::now();
                    match n {
                        0 => tally.call_alone(site, "work"),
                        1 | 2 => tally.call_in_session(site, &mut session),
                        3 => tally.call_alone(site, "lone"),
                        4 => tally.call_by_script(site),
                        _ => tally.call_asked(site, &home),
                    }
                    let mut longest = tally.longest.lock().unwrap();
                    *longest = longest.max(began.elapsed());
                }
            });
        }
        // Ends the clients also when a fault panics.
        let _ends = EndsClients(&is_over);
        let answered = |more: usize| {
            let before = tally.n_answered();
            eventually("clients are answered", || before + more <= tally.n_answered());
        };
        let busy = || {
            let n_done = || tally.n_answered() + tally.n_failed();
            let before = n_done();
            eventually("clients make calls", || before + 10 <= n_done());
        };
        answered(20);
        failed_before = tally.n_failed();
        let mut order = Order { seed, left: Vec::new() };
        let (began, mut n_faults) = (Instant::now(), 0);
        while time.map_or(n_faults < FAULTS.len(), |time| began.elapsed() < time) {
            let (fault, n) = order.next();
            let mended = fault.happen(&mut cluster, &mut standby, &mut members, n, &busy);
            eventually("all replicas are ready", || members.iter().all(Member::is_ready));
            let ready = mended.elapsed();
            answered(20);
            recoveries.push((ready.max(tally.recovered_after(mended)), fault));
            n_faults += 1;
        }
    });
    assert_eq!(failed_before, 0, "with everybody there");
    report(&tally, &cluster.deeds(), &recoveries, seed);
}

struct EndsClients<'a>(&'a AtomicBool);

impl Drop for EndsClients<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[expect(clippy::print_stdout, reason = "the chore shows what was counted")]
fn report(tally: &Tally, deeds: &[String], recoveries: &[(Duration, Fault)], seed: usize) {
    let mut times = std::collections::HashMap::<&str, usize>::new();
    for deed in deeds {
        *times.entry(deed.as_str()).or_default() += 1;
    }
    let answered = tally.answered.lock().unwrap();
    let n_calls = tally.next.load(Ordering::SeqCst);
    let refused = tally.refused.lock().unwrap().len();
    let cut_off = tally.cut_off.lock().unwrap().len();
    let lost = answered.iter().filter(|n| !times.contains_key(n.to_string().as_str())).count();
    let twice = times.values().filter(|times| 1 < **times).count();
    let (slowest, after) = recoveries.iter().max_by_key(|(took, _)| *took).expect("a fault");
    println!(
        "seed {seed}, faults {}: calls {n_calls}, answered {}, failed with a clear error {refused}, \
         cut off {cut_off}, lost {lost}, run twice {twice}, sessions opened again {}, \
         time to recover at most {} ms (after {after:?})",
        recoveries.len(),
        answered.len(),
        tally.reopened.load(Ordering::SeqCst),
        slowest.as_millis(),
    );
    let ways = tally.ways.lock().unwrap();
    let longest = *tally.longest.lock().unwrap();
    println!("answered: {ways:?}; a client waited at most {} ms", longest.as_millis());
    assert!(longest < Duration::from_secs(60), "what was lost is noticed");
    assert_eq!(ways.len(), 5, "calls are answered in every way: {ways:?}");
    assert_eq!((lost, twice), (0, 0));
    assert_eq!(answered.len() + refused + cut_off, n_calls, "nobody waits any more");
    assert!(n_calls / 2 < answered.len(), "most calls are answered");
    assert!(*slowest < Duration::from_secs(15), "it recovers by itself");
}
