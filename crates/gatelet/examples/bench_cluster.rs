//! What several replicas with a shared store do, and what the store costs.
//!
//! First one replica with a store beside one without, in turns: how much longer a
//! call takes, and how often it goes to the store, with one client, so that the server
//! reads each request by itself. Then calls per second and their 50th and 99th
//! percentiles, by replicas, without and with a limit that is counted in the store;
//! what an idle session and a thousand kept results take of its memory; and one line
//! that says whether what is to be reached was reached. `bench_cluster [seconds]`;
//! `redis-server` has to be there.

#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

#[path = "kit/kit.rs"]
#[allow(dead_code, reason = "each benchmark uses a part of the kit")]
mod kit;

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use kit::{Connection, resident};

const CLIENTS: usize = 8;
/// How many turns the two replicas take that are compared.
const TURNS: u32 = 6;
/// How much longer the median call may take with a store than without.
const MAX_RATIO: f64 = 1.5;
/// How far the round trips of a call may be from a whole number: replicas also say that
/// they are there.
const ROUND_TRIP_MARGIN: f64 = 0.05;
/// How many bytes of the store an idle session may take.
const MAX_SESSION_BYTES: f64 = 2048.0;
const SESSIONS: usize = 500;
const RESULTS: usize = 1000;
const HELLO: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;
/// No limit stands in its way.
const FREE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"call","arguments":{"namespace":"units","function":"convert","kwargs":{"value":1,"from":"km","to":"m"}}}}"#;
const LIMITED: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"call","arguments":{"namespace":"time","function":"now","kwargs":{}}}}"#;

fn main() -> io::Result<()> {
    let seconds = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(3);
    let examples = std::env::current_exe()?;
    let examples = examples.parent().expect("a program stands in a directory");
    let gatelet = examples.parent().expect("examples stand below").join("gatelet");
    let scratch = std::env::temp_dir().join(format!("gatelet-cluster-{}", std::process::id()));
    std::fs::create_dir_all(&scratch)?;
    let done = measure(&gatelet, &scratch, Duration::from_secs(seconds));
    std::fs::remove_dir_all(&scratch)?;
    done
}

fn measure(gatelet: &Path, scratch: &Path, time: Duration) -> io::Result<()> {
    println!("| replicas | state | call | calls/s | p50 µs | p99 µs | round trips to the store |");
    println!("|---|---|---|---|---|---|---|");
    let mut verdict = Verdict::default();
    for (name, call, round_trips) in [("free", FREE, 0.0), ("limited", LIMITED, 1.0)] {
        verdict.add(&compare(gatelet, scratch, name, call, time)?, name, round_trips);
    }
    for n_replicas in 1..=3 {
        let store = Store::start(scratch)?;
        let start = |_| Replica::start(gatelet, scratch, Some(store.port));
        let replicas = (0..n_replicas).map(start).collect::<io::Result<Vec<_>>>()?;
        for (name, call) in [("free", FREE), ("limited", LIMITED)] {
            Load::run(&replicas, CLIENTS, call, time)?.print("shared", name, n_replicas, None);
        }
        if n_replicas == 1 {
            verdict.session_bytes = memory(&store, &replicas[0])?;
        }
    }
    println!("\n{}", verdict.line());
    Ok(())
}

/// A call with a store and without.
struct Comparison {
    /// How many times longer the median call takes with a store.
    ratio: f64,
    round_trips: f64,
}

/// Compares a replica with a store and one without, in turns, so that both find the same
/// machine.
fn compare(
    gatelet: &Path,
    scratch: &Path,
    name: &str,
    call: &'static str,
    time: Duration,
) -> io::Result<Comparison> {
    let store = Store::start(scratch)?;
    let embedded = [Replica::start(gatelet, scratch, None)?];
    let shared = [Replica::start(gatelet, scratch, Some(store.port))?];
    let (mut without, mut with) = (Load::default(), Load::default());
    let mut n_reads = 0.0;
    for _ in 0..TURNS {
        without.add(Load::run(&embedded, 1, call, time / TURNS)?);
        let before = store.n_reads()?;
        with.add(Load::run(&shared, 1, call, time / TURNS)?);
        n_reads += store.n_reads()? - before;
    }
    let round_trips = n_reads / with.times.len() as f64;
    without.print("embedded, one client", name, 1, Some(0.0));
    with.print("shared, one client", name, 1, Some(round_trips));
    let ratio = with.at(50).as_secs_f64() / without.at(50).as_secs_f64();
    Ok(Comparison { ratio, round_trips })
}

/// What was measured of what is to be reached.
#[derive(Default)]
struct Verdict {
    said: Vec<String>,
    is_missed: bool,
    session_bytes: f64,
}

impl Verdict {
    fn add(&mut self, Comparison { ratio, round_trips }: &Comparison, name: &str, expected: f64) {
        self.is_missed |= MAX_RATIO < *ratio || ROUND_TRIP_MARGIN < (round_trips - expected).abs();
        self.said.push(format!(
            "{name} p50 {ratio:.2} times the embedded one (at most {MAX_RATIO}), {round_trips:.2} \
             round trips ({expected})"
        ));
    }

    fn line(&self) -> String {
        let is_missed = self.is_missed || MAX_SESSION_BYTES < self.session_bytes;
        let word = if is_missed { "MISSED" } else { "reached" };
        let (said, bytes) = (self.said.join("; "), self.session_bytes);
        format!("{word}: {said}; idle session {bytes:.0} bytes (under {MAX_SESSION_BYTES})")
    }
}

/// What sessions and results take of the store's memory. Returns the bytes of a session.
fn memory(store: &Store, replica: &Replica) -> io::Result<f64> {
    let mut connection = Connection::open(replica.port)?;
    let before = store.said("memory", "used_memory:")?;
    for _ in 0..SESSIONS {
        connection.post("/mcp", "", HELLO)?;
    }
    let after = store.said("memory", "used_memory:")?;
    let session_bytes = (after - before) / SESSIONS as f64;
    println!("| 1 | shared | idle session: {session_bytes:.0} bytes | | | | |");
    let session = replica.session(&mut connection)?;
    let before = store.said("memory", "used_memory:")?;
    for n in 0..RESULTS {
        let text = format!("{n} ").repeat(2000 / (n.to_string().len() + 1));
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"call","arguments":{{"namespace":"json","function":"query","kwargs":{{"json":{{"text":"{text}"}},"filter":"."}}}}}}}}"#
        );
        connection.post("/mcp", &session, &call)?;
    }
    let after = store.said("memory", "used_memory:")?;
    let megabytes = (after - before) / 1e6;
    println!("| 1 | shared | {RESULTS} results of 2 kB: {megabytes:.1} MB | | | | |");
    let replica = resident(replica.process.id())?;
    println!("| 1 | shared | the replica itself: {replica:.1} MB | | | | |");
    Ok(session_bytes)
}

/// How long calls took, sorted.
#[derive(Default)]
struct Load {
    times: Vec<Duration>,
    took: Duration,
}

impl Load {
    fn run(
        replicas: &[Replica],
        n_clients: usize,
        call: &'static str,
        time: Duration,
    ) -> io::Result<Load> {
        let began = Instant::now();
        let client = |n: usize| -> io::Result<Vec<Duration>> {
            let replica = &replicas[n % replicas.len()];
            let mut connection = Connection::open(replica.port)?;
            let session = replica.session(&mut connection)?;
            let (mut times, end) = (Vec::new(), Instant::now() + time);
            while Instant::now() < end {
                let began = Instant::now();
                let (_, answer) = connection.post("/mcp", &session, call)?;
                times.push(began.elapsed());
                if !answer.contains("\"result\"") || answer.contains("\"isError\":true") {
                    return Err(io::Error::other(answer));
                }
            }
            Ok(times)
        };
        let times = std::thread::scope(|scope| {
            let client = &client;
            let clients: Vec<_> = (0..n_clients).map(|n| scope.spawn(move || client(n))).collect();
            let each = clients.into_iter().map(|client| client.join().expect("no client panics"));
            each.collect::<io::Result<Vec<_>>>()
        });
        let mut times = times?.concat();
        times.sort();
        Ok(Load { times, took: began.elapsed() })
    }

    fn add(&mut self, more: Load) {
        self.times.extend(more.times);
        self.times.sort();
        self.took += more.took;
    }

    /// The time that a share of the calls took at most.
    fn at(&self, percent: usize) -> Duration {
        self.times[(self.times.len() - 1) * percent / 100]
    }

    fn print(&self, state: &str, call: &str, n_replicas: usize, round_trips: Option<f64>) {
        let rate = self.times.len() as f64 / self.took.as_secs_f64();
        let (p50, p99) = (self.at(50).as_micros(), self.at(99).as_micros());
        let round_trips = round_trips.map(|n| format!("{n:.2}")).unwrap_or_default();
        println!("| {n_replicas} | {state} | {call} | {rate:.0} | {p50} | {p99} | {round_trips} |");
    }
}

fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// Waits until something listens.
fn wait_for(port: u16) -> io::Result<()> {
    let end = Instant::now() + Duration::from_secs(20);
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        if end < Instant::now() {
            return Err(io::Error::other(format!("nothing listens on port {port}")));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

struct Store {
    port: u16,
    process: Child,
}

impl Store {
    fn start(scratch: &Path) -> io::Result<Store> {
        let port = free_port()?;
        let mut command = Command::new("redis-server");
        command.args(["--port", &port.to_string(), "--save", "", "--appendonly", "no"]);
        let process = command.current_dir(scratch).stdout(Stdio::null()).spawn()?;
        wait_for(port)?;
        Ok(Store { port, process })
    }

    /// A number that the server says of itself.
    fn said(&self, section: &str, key: &str) -> io::Result<f64> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.write_all(format!("INFO {section}\r\nQUIT\r\n").as_bytes())?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        let value = text.lines().find_map(|line| line.strip_prefix(key));
        value.and_then(|value| value.trim().parse().ok()).ok_or_else(|| io::Error::other(text))
    }

    /// How often it has read from its clients. A script counts once, whatever commands it
    /// runs, and so does each request of a single client, which waits for the answer.
    fn n_reads(&self) -> io::Result<f64> {
        self.said("stats", "total_reads_processed:")
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

struct Replica {
    port: u16,
    process: Child,
    home: PathBuf,
}

impl Replica {
    fn start(gatelet: &Path, scratch: &Path, store: Option<u16>) -> io::Result<Replica> {
        let port = free_port()?;
        let home = scratch.join(port.to_string());
        std::fs::create_dir_all(&home)?;
        let state = store.map(|port| format!("[state]\nurl = \"valkey://127.0.0.1:{port}\"\n"));
        let config = format!(
            "[builtin]\ntools = true\n[gate]\nlimit = 500\n{}[[controls.rate]]\ntool = \"time.now\"\nper_minute = 10000000\n",
            state.unwrap_or_default()
        );
        std::fs::write(home.join("gatelet.toml"), config)?;
        let mut command = Command::new(gatelet);
        command.args(["serve", "--listen", &format!("127.0.0.1:{port}")]).current_dir(&home);
        command.env("HOME", &home).env("GATELET_STATE", home.join("state"));
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.spawn()?;
        let stderr = process.stderr.take().expect("it is a pipe");
        // Nobody else reads what it says, and a full pipe would hold it up.
        std::thread::spawn(move || BufReader::new(stderr).lines().for_each(drop));
        wait_for(port)?;
        Ok(Replica { port, process, home })
    }

    fn session(&self, connection: &mut Connection) -> io::Result<String> {
        let (head, answer) = connection.post("/mcp", "", HELLO)?;
        let lower = head.to_ascii_lowercase();
        let id = lower.lines().find_map(|line| line.strip_prefix("mcp-session-id:"));
        id.map(|id| id.trim().to_owned()).ok_or_else(|| io::Error::other(answer))
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.home);
    }
}
