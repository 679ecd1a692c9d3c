//! Several gatelets behind a load balancer that knows nothing, with a store that
//! they share: a request goes to whichever replica it happens to reach.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::{Value, json};
use testkit::object_store::{BUCKET, ObjectStore};
use testkit::valkey::Server;

use crate::kit::{Home, PATIENCE, Served, Site, eventually, program, shell};

/// Replicas with one configuration, each with a home of its own.
struct Cluster {
    store: Server,
    replicas: Vec<(Home, Served)>,
    /// What upstreams write down of each call, shared by all.
    deeds: tempfile::NamedTempFile,
    /// The upstream's program, the same for all.
    program: tempfile::NamedTempFile,
}

const BUILTIN: &str = "[builtin]\ntools = true\n\n";

impl Cluster {
    fn start(n_replicas: usize, config: &str) -> Cluster {
        let store = Server::start(&[]);
        let deeds = tempfile::NamedTempFile::new().unwrap();
        let deed = format!(
            "open({:?}, 'a').write(str(message['params']['arguments'].get('n')) + '\\n'); \
             say(id, {{\"content\": [{{\"type\": \"text\", \"text\": \"acted\"}}]}})",
            deeds.path()
        );
        let mut script = tempfile::NamedTempFile::new().unwrap();
        script.write_all(program(&deed).as_bytes()).unwrap();
        let mut cluster = Cluster { store, replicas: Vec::new(), deeds, program: script };
        for _ in 0..n_replicas {
            let replica = cluster.replica(config);
            cluster.replicas.push(replica);
        }
        cluster
    }

    fn replica(&self, config: &str) -> (Home, Served) {
        let state = format!("[state]\nurl = {:?}\n\n", self.store.url());
        let home = Home::with(&format!("{BUILTIN}{state}{config}{}", self.upstream()));
        let served = Served::start(&home);
        (home, served)
    }

    fn upstream(&self) -> String {
        let program = self.program.path();
        format!("[[upstream]]\nlabel = \"work\"\ncommand = \"python3\"\nargs = [{program:?}]\n\n")
    }

    fn at(&self, replica: usize) -> &Site {
        &self.replicas[replica].1
    }

    /// The numbers of the calls that ran, in order.
    fn deeds(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.deeds.path()).unwrap();
        text.lines().map(str::to_owned).collect()
    }
}

fn act(n: u64) -> Value {
    json!({"namespace": "work", "function": "act", "kwargs": {"n": n}})
}

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

const GUARDED: &str = "[auth]\nrequired = true\n\n";

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

/// The process that started another, or one that it started did.
fn is_descendant(mut process: u32, of: u32) -> bool {
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

#[test]
fn a_script_that_stopped_on_one_replica_goes_on_at_another_without_doing_anything_twice() {
    testkit::needs!(Valkey);
    let rule = "[[controls.rule]]\naction = \"ask\"\ntool = \"work.act\"\n\n";
    let config = format!("[scripts]\nenabled = true\n\n[trust]\nmode = \"off\"\n\n{rule}");
    let cluster = Cluster::start(2, &config);
    let run = |replica: usize, kwargs: Value| {
        let call = json!({"namespace": "gatelet", "function": "run", "kwargs": kwargs});
        cluster.at(replica).told(None, "call", &call)
    };
    eventually("both replicas have listed it", || {
        let listed =
            |replica| cluster.at(replica).told(None, "help", &json!({"namespace": "work"}));
        (0..2).all(|replica| listed(replica).contains("act"))
    });
    let code = "await tools.work.act({n: 1}); await tools.work.act({n: 2}); return 'both'";
    let mut told = run(0, json!({"code": code}));
    let handle = told.split("\"resume\": \"").nth(1).and_then(|rest| rest.split('"').next());
    let handle = handle.unwrap_or_else(|| panic!("{told}")).to_owned();
    // A decision reaches the other replicas in a moment.
    let mut turn = 0;
    eventually("it comes to its end, now here, now there", || {
        if let Some(number) = told.split("approval request ").nth(1) {
            let number: String = number.chars().take_while(char::is_ascii_digit).collect();
            shell(&cluster.replicas[0].0, &["approvals", "allow", &number, "--yes"]);
        }
        turn += 1;
        told = run(turn % 2, json!({"resume": handle}));
        told.contains("both")
    });
    assert!(told.contains("both"), "{told}");
    assert_eq!(cluster.deeds(), ["1", "2"]);
    let again = run(1, json!({"resume": handle}));
    assert!(again.contains("has ended"), "{again}");
    assert_eq!(cluster.deeds().len(), 2);
}

#[test]
fn a_script_that_is_resumed_everywhere_at_once_does_everything_once() {
    testkit::needs!(Valkey);
    let rule = "[[controls.rule]]\naction = \"ask\"\ntool = \"units.convert\"\n\n";
    let config = format!("[scripts]\nenabled = true\n\n[trust]\nmode = \"off\"\n\n{rule}");
    let cluster = Cluster::start(2, &config);
    let run = |replica: usize, kwargs: &Value| {
        let call = json!({"namespace": "gatelet", "function": "run", "kwargs": kwargs});
        cluster.at(replica).told(None, "call", &call)
    };
    let code = "await tools.units.convert({value: 1, from: 'km', to: 'mi'}); \
                for (let n = 0; n < 10; n++) await tools.work.act({n}); return 'all of them'";
    let told = run(0, &json!({"code": code}));
    let handle = told.split("\"resume\": \"").nth(1).and_then(|rest| rest.split('"').next());
    let resume = json!({"resume": handle.unwrap_or_else(|| panic!("{told}"))});
    // Nobody has to agree any more, so nothing but the journal is between them.
    for (home, _) in &cluster.replicas {
        home.write("gatelet.toml", &home.read("gatelet.toml").replace(rule, ""));
    }
    let free = json!({"namespace": "units", "function": "convert", "kwargs": {"value": 1, "from": "km", "to": "mi"}});
    eventually("both know", || {
        (0..2).all(|replica| cluster.at(replica).told(None, "call", &free).contains("0.62"))
    });
    // Four at each, at the same moment.
    let start = std::sync::Barrier::new(8);
    let all: Vec<String> = std::thread::scope(|scope| {
        let one = |n: usize| {
            let (start, run, resume) = (&start, &run, &resume);
            scope.spawn(move || {
                start.wait();
                run(n % 2, resume)
            })
        };
        let runs: Vec<_> = (0..8).map(one).collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    assert_eq!(all.iter().filter(|told| told.contains("all of them")).count(), 1, "{all:#?}");
    let is_clear = |told: &&String| {
        ["all of them", "is under way already", "has ended"]
            .iter()
            .any(|known| told.contains(known))
    };
    assert_eq!(all.iter().find(|told| !is_clear(told)), None);
    assert!(all.iter().any(|told| told.contains("is under way already")), "{all:#?}");
    let expected: Vec<String> = (0..10).map(|n| n.to_string()).collect();
    assert_eq!(cluster.deeds(), expected, "each once");
}

/// A client of an older revision, whose requests go to one replica after another.
struct OldClient<'a> {
    cluster: &'a Cluster,
    session: String,
    next: AtomicUsize,
    key: Option<String>,
}

const INITIALIZE: &str = "initialize";

impl OldClient<'_> {
    fn open<'a>(cluster: &'a Cluster, capabilities: &Value, key: Option<&str>) -> OldClient<'a> {
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": capabilities,
                            "clientInfo": {"name": "old", "version": "1"}});
        let message = json!({"jsonrpc": "2.0", "id": 0, "method": INITIALIZE, "params": params});
        let headers: Vec<(&str, &str)> = key.map(|key| ("X-Api-Key", key)).into_iter().collect();
        let answer = cluster.at(0).post(&message, &headers);
        let session = answer.header("mcp-session-id").expect("a session").to_owned();
        OldClient { cluster, session, next: AtomicUsize::new(1), key: key.map(str::to_owned) }
    }

    fn headers(&self) -> Vec<(&str, &str)> {
        let mut headers =
            vec![("Mcp-Session-Id", self.session.as_str()), ("MCP-Protocol-Version", "2025-06-18")];
        headers.extend(self.key.as_deref().map(|key| ("X-Api-Key", key)));
        headers
    }

    /// The next replica in turn.
    fn turn(&self) -> &Site {
        let n = self.next.fetch_add(1, Ordering::Relaxed);
        self.cluster.at(n % self.cluster.replicas.len())
    }

    fn ask(&self, method: &str, params: &Value) -> crate::kit::Answer {
        let message = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        self.turn().post(&message, &self.headers())
    }
}

#[test]
fn a_session_is_carried_on_by_every_replica_for_its_caller_alone() {
    testkit::needs!(Valkey);
    let cluster = Cluster::start(3, "");
    let client = OldClient::open(&cluster, &json!({}), None);
    for n in 0..6 {
        let call = json!({"name": "call", "arguments": act(n)});
        let answer = client.ask("tools/call", &call);
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert!(answer.body.contains("acted"), "{}", answer.body);
    }
    assert_eq!(cluster.deeds().len(), 6, "each call ran once");
    let stranger =
        OldClient { session: "0".repeat(32), ..OldClient::open(&cluster, &json!({}), None) };
    assert_eq!(stranger.ask("tools/list", &json!({})).status, 404);
    let fresh = OldClient::open(&cluster, &json!({}), None);
    let ended = cluster.at(0).send("DELETE", &fresh.headers(), "");
    assert_eq!(ended.status, 204);
    assert_eq!(fresh.ask("tools/list", &json!({})).status, 404, "it ended everywhere");
}

#[test]
fn a_session_survives_the_replica_that_opened_it() {
    testkit::needs!(Valkey);
    let mut cluster = Cluster::start(2, "");
    let session = OldClient::open(&cluster, &json!({}), None).session;
    drop(cluster.replicas.remove(0));
    let client = OldClient { cluster: &cluster, session, next: AtomicUsize::new(0), key: None };
    let answer = client.ask("tools/call", &json!({"name": "call", "arguments": act(1)}));
    assert!(answer.status == 200 && answer.body.contains("acted"), "{}", answer.body);
}

/// Posts to a replica and gives the lines of its answer as they come.
fn stream(
    site: &Site,
    message: &Value,
    headers: &[(&str, &str)],
) -> impl Iterator<Item = String> + use<> {
    let mut stream = TcpStream::connect(site.authority()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let body = message.to_string();
    let mut request = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n",
        site.authority(),
        body.len()
    );
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    stream.write_all(format!("{request}\r\n{body}").as_bytes()).unwrap();
    BufReader::new(stream).lines().map_while(Result::ok)
}

const ASK: &str = "[[controls.rule]]\naction = \"ask\"\ntool = \"work.*\"\n\n";

#[test]
fn a_client_answers_a_question_of_one_replica_at_another() {
    testkit::needs!(Valkey);
    let cluster = Cluster::start(2, ASK);
    let client = OldClient::open(&cluster, &json!({"elicitation": {}}), None);
    let call = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call",
                      "params": {"name": "call", "arguments": act(5)}});
    let mut lines = stream(cluster.at(0), &call, &client.headers());
    let question = lines.find(|line| line.contains("elicitation/create")).expect("a question");
    let question: Value =
        serde_json::from_str(question.trim_start_matches("data:").trim()).unwrap();
    let answer = json!({"jsonrpc": "2.0", "id": question["id"],
                        "result": {"action": "accept", "content": {"confirm": true}}});
    let taken = cluster.at(1).post(&answer, &client.headers());
    assert_eq!(taken.status, 202, "{}", taken.body);
    assert!(lines.any(|line| line.contains("acted")), "the call goes on where it waited");
    assert_eq!(cluster.deeds(), ["5"]);
}

/// A request of the revision without sessions, by a client that can be asked.
fn modern(site: &Site, params: &Value) -> Value {
    let mut params = params.clone();
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "it", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    });
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let headers = [
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "call"),
    ];
    site.post(&message, &headers).message()
}

#[test]
fn a_parked_call_is_taken_up_again_through_any_replica_once() {
    testkit::needs!(Valkey);
    let mut cluster = Cluster::start(3, ASK);
    let call = json!({"name": "call", "arguments": act(6)});
    let parked = modern(cluster.at(0), &call);
    let (state, asked) = (&parked["result"]["requestState"], &parked["result"]["inputRequests"]);
    let question = asked.as_object().and_then(|asked| asked.keys().next()).cloned();
    let question = question.unwrap_or_else(|| panic!("no question in {parked}"));
    let mut resumed = call.clone();
    resumed["requestState"] = state.clone();
    resumed["inputResponses"] =
        json!({question: {"action": "accept", "content": {"confirm": true}}});
    let answer = modern(cluster.at(1), &resumed);
    assert!(answer.to_string().contains("acted"), "{answer}");
    let again = modern(cluster.at(2), &resumed);
    assert!(again.to_string().contains("no longer waits"), "{again}");
    assert_eq!(cluster.deeds(), ["6"], "it ran once");
    let (true_part, _) = state.as_str().unwrap().split_at(state.as_str().unwrap().len() - 4);
    let mut guess = resumed.clone();
    guess["requestState"] = json!(format!("{true_part}AAAA"));
    let forged = modern(cluster.at(1), &guess);
    assert!(forged.to_string().contains("was not made for this request"), "{forged}");
    // Whoever comes back after the replica has died is told so.
    let parked = modern(cluster.at(0), &call);
    resumed["requestState"] = parked["result"]["requestState"].clone();
    drop(cluster.replicas.remove(0));
    eventually("it counts as gone", || {
        modern(cluster.at(0), &resumed).to_string().contains("is gone")
    });
    assert_eq!(cluster.deeds(), ["6"], "nothing ran again");
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
