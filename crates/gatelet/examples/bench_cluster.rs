//! What several replicas with a shared store do, and what the store costs.
//!
//! Calls per second and their 50th and 99th percentiles, by replicas, without and
//! with a limit that is counted in the store; how many commands the store carried
//! out for each call; what an idle session and a thousand kept results take of its
//! memory. `bench_cluster [seconds]`; `redis-server` has to be there.

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
    println!("| replicas | state | call | calls/s | p50 µs | p99 µs | store commands per call |");
    println!("|---|---|---|---|---|---|---|");
    let embedded = vec![Replica::start(gatelet, scratch, None)?];
    for (name, call) in [("free", FREE), ("limited", LIMITED)] {
        Load::run(&embedded, call, time)?.print("embedded", name, 1, None);
    }
    drop(embedded);
    for n_replicas in 1..=3 {
        let store = Store::start(scratch)?;
        let start = |_| Replica::start(gatelet, scratch, Some(store.port));
        let replicas = (0..n_replicas).map(start).collect::<io::Result<Vec<_>>>()?;
        for (name, call) in [("free", FREE), ("limited", LIMITED)] {
            let before = store.n_commands()?;
            let load = Load::run(&replicas, call, time)?;
            // What replicas say to each other in that time is counted, too.
            let per_call = (store.n_commands()? - before) / load.times.len() as f64;
            load.print("shared", name, n_replicas, Some(per_call));
        }
        if n_replicas == 1 {
            memory(&store, &replicas[0])?;
        }
    }
    Ok(())
}

/// What sessions and results take of the store's memory.
fn memory(store: &Store, replica: &Replica) -> io::Result<()> {
    let mut connection = Connection::open(replica.port)?;
    let before = store.said("memory", "used_memory:")?;
    for _ in 0..SESSIONS {
        connection.post("/mcp", "", HELLO)?;
    }
    let after = store.said("memory", "used_memory:")?;
    println!(
        "| 1 | shared | idle session: {:.0} bytes | | | | |",
        (after - before) / SESSIONS as f64
    );
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
    Ok(())
}

/// How long calls took.
struct Load {
    times: Vec<Duration>,
    took: Duration,
}

impl Load {
    fn run(replicas: &[Replica], call: &'static str, time: Duration) -> io::Result<Load> {
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
            let clients: Vec<_> = (0..CLIENTS).map(|n| scope.spawn(move || client(n))).collect();
            let each = clients.into_iter().map(|client| client.join().expect("no client panics"));
            each.collect::<io::Result<Vec<_>>>()
        });
        let mut times = times?.concat();
        times.sort();
        Ok(Load { times, took: began.elapsed() })
    }

    fn print(&self, state: &str, call: &str, n_replicas: usize, commands: Option<f64>) {
        let rate = self.times.len() as f64 / self.took.as_secs_f64();
        let at = |share: usize| self.times[(self.times.len() - 1) * share / 100].as_micros();
        let commands = commands.map_or_else(|| "0".to_owned(), |n| format!("{n:.2}"));
        println!(
            "| {n_replicas} | {state} | {call} | {rate:.0} | {} | {} | {commands} |",
            at(50),
            at(99)
        );
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

    fn n_commands(&self) -> io::Result<f64> {
        self.said("stats", "total_commands_processed:")
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
