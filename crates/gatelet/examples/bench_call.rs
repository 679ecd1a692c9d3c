//! The same small call, direct and through the gate, in one run.
//!
//! Rounds are interleaved, so that a busy machine slows every case alike: read
//! the ratios. A forwarder that does nothing else (`bench_raw`) is measured too:
//! what it costs, no gate can do without.
//!
//! Everything is measured twice. On one processor, all that a call costs adds up,
//! so the ratios are of work and hardly change from run to run. On all of them
//! they depend on who runs beside whom: a client and a server on two processors
//! answer each other without waiting, and a third program does not fit in.
//!
//! `bench_call [rounds] [calls] [only] [busy]`, where `only` is a transport or
//! `transport/in-flight` (or `all`), and `busy` a number of threads that do
//! nothing but keep the processors from sleeping; the programs stand beside this
//! one (`gatelet`, `bench_echo`, `bench_raw`).

#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

#[path = "kit/kit.rs"]
mod kit;

use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpStream;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kit::{Connection, resident};

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |usual| arguments.next().and_then(|n| n.parse().ok()).unwrap_or(usual);
    let (rounds, calls) = (number(7), number(4000));
    let only = arguments.next().unwrap_or_else(|| "all".to_owned());
    let busy = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(0);
    let is_bound = arguments.next().is_some_and(|place| place == BOUND);
    if !is_bound {
        println!("On one processor:\n");
        on_one_processor(&[rounds.to_string(), calls.to_string(), only.clone(), busy.to_string()])?;
        println!("\nOn all processors:\n");
    }
    let home = std::env::current_exe()?;
    let examples = home.parent().expect("a program stands in a directory");
    let programs = Programs {
        echo: examples.join("bench_echo"),
        raw: examples.join("bench_raw"),
        gatelet: examples.parent().expect("examples stand below").join("gatelet"),
        scratch: std::env::temp_dir().join(format!("gatelet-bench-{}", std::process::id())),
    };
    std::fs::create_dir_all(&programs.scratch)?;
    let done = beside(busy, || measure(&programs, rounds, calls, &only));
    std::fs::remove_dir_all(&programs.scratch)?;
    done
}

/// The last argument of a measurement on one processor.
const BOUND: &str = "bound";

/// Measures the same with everything on one processor.
fn on_one_processor(arguments: &[String]) -> io::Result<()> {
    let mut bound = Command::new("taskset");
    bound.args(["-c", "0"]).arg(std::env::current_exe()?).args(arguments).arg(BOUND);
    match bound.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(io::Error::other(format!("it ended with {status}"))),
        Err(error) => {
            println!("not measured: `taskset` of util-linux cannot be run: {error}");
            Ok(())
        }
    }
}

/// Does something while `busy` threads keep the processors awake.
fn beside<T>(busy: usize, work: impl FnOnce() -> T) -> T {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..busy {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let done = work();
        over.store(true, Ordering::Relaxed);
        done
    })
}

struct Programs {
    echo: PathBuf,
    raw: PathBuf,
    gatelet: PathBuf,
    scratch: PathBuf,
}

/// What is called, and how.
#[derive(Clone, Copy)]
enum Way {
    Direct,
    Raw,
    Surface(&'static str),
    /// `cash`, with a record of every call in a file.
    Recorded,
}

impl Way {
    fn surface(self) -> Option<&'static str> {
        match self {
            Way::Direct | Way::Raw => None,
            Way::Surface(surface) => Some(surface),
            Way::Recorded => Some("cash"),
        }
    }
}

/// One case: a transport, a number of calls in flight, and who answers.
struct Case {
    transport: &'static str,
    flight: usize,
    way: Way,
    p50: Vec<f64>,
    p99: Vec<f64>,
    per_second: Vec<f64>,
    processor: Vec<f64>,
    resident: f64,
}

fn measure(programs: &Programs, rounds: usize, calls: usize, only: &str) -> io::Result<()> {
    let ways = [Way::Direct, Way::Raw, Way::Surface("direct"), Way::Surface("cash"), Way::Recorded];
    let mut cases = Vec::new();
    for (transport, flights) in [("stdio", [1, 16, 32]), ("http", [1, 8, 32])] {
        let meant = |flight: &usize| {
            only == "all" || only == transport || only == format!("{transport}/{flight}")
        };
        for flight in flights.into_iter().filter(meant) {
            for way in ways {
                cases.push(Case {
                    transport,
                    flight,
                    way,
                    p50: Vec::new(),
                    p99: Vec::new(),
                    per_second: Vec::new(),
                    processor: Vec::new(),
                    resident: 0.0,
                });
            }
        }
    }
    for _ in 0..rounds {
        for case in &mut cases {
            round(programs, case, calls)?;
        }
    }
    print(&cases);
    Ok(())
}

fn round(programs: &Programs, case: &mut Case, calls: usize) -> io::Result<()> {
    let mut server = Server::start(programs, case)?;
    server.run(case, calls / 10)?;
    let before = processor_time(server.child.id())?;
    let started = Instant::now();
    let mut times = server.run(case, calls)?;
    let wall = started.elapsed();
    let used = processor_time(server.child.id())? - before;
    case.resident = case.resident.max(resident(server.child.id())?);
    times.sort();
    case.p50.push(micros(times[times.len() / 2]));
    case.p99.push(micros(times[times.len() * 99 / 100]));
    case.per_second.push(times.len() as f64 / wall.as_secs_f64());
    case.processor.push(used * 1e6 / times.len() as f64);
    Ok(())
}

/// A server under test, and the way to talk to it.
struct Server {
    child: Child,
    talk: Talk,
}

enum Talk {
    Pipe { input: ChildStdin, output: BufReader<ChildStdout> },
    Http { port: u16, path: &'static str, session: String },
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    fn start(programs: &Programs, case: &Case) -> io::Result<Server> {
        let mut command = match case.way {
            Way::Direct => {
                let mut command = Command::new(&programs.echo);
                command.arg(case.transport);
                command
            }
            Way::Raw => {
                let mut command = Command::new(&programs.raw);
                command.arg(case.transport).arg(&programs.echo).arg("stdio");
                command
            }
            Way::Surface(_) | Way::Recorded => gate(programs, case)?,
        };
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let input = child.stdin.take().expect("piped");
        let mut output = BufReader::with_capacity(1 << 16, child.stdout.take().expect("piped"));
        if case.transport == "stdio" {
            let mut server = Server { child, talk: Talk::Pipe { input, output } };
            server.handshake(case)?;
            return Ok(server);
        }
        let port = match case.way {
            Way::Direct | Way::Raw => {
                let mut line = String::new();
                output.read_line(&mut line)?;
                line.trim().parse().map_err(io::Error::other)?
            }
            Way::Surface(_) | Way::Recorded => wait_for_port(&programs.scratch.join("port"))?,
        };
        let talk = Talk::Http { port, path: "/mcp", session: String::new() };
        let mut server = Server { child, talk };
        server.handshake(case)?;
        Ok(server)
    }

    fn handshake(&mut self, case: &Case) -> io::Result<()> {
        let hello = r#"{"jsonrpc":"2.0","id":"h","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;
        let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        match &mut self.talk {
            Talk::Pipe { input, output } => {
                writeln!(input, "{hello}")?;
                let mut line = String::new();
                output.read_line(&mut line)?;
                writeln!(input, "{ready}")?;
            }
            Talk::Http { port, path, session } => {
                let mut connection = Connection::open(*port)?;
                let (head, _) = connection.post(path, session, hello)?;
                let wanted = "mcp-session-id:";
                let found = head.lines().find(|line| line.to_ascii_lowercase().starts_with(wanted));
                *session =
                    found.map(|line| line[wanted.len()..].trim().to_owned()).unwrap_or_default();
                connection.post(path, session, ready)?;
            }
        }
        // On the first round nothing is remembered yet, and the upstream is still starting.
        let mut tries = 0;
        loop {
            match self.run(case, 1) {
                Err(_) if tries < 1000 => tries += 1,
                done => return done.map(drop),
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Makes `calls` calls, `case.flight` at a time, and times each.
    fn run(&mut self, case: &Case, calls: usize) -> io::Result<Vec<Duration>> {
        match &mut self.talk {
            Talk::Pipe { input, output } => pipe(input, output, case, calls.max(1)),
            Talk::Http { port, path, session } => {
                let each = (calls / case.flight).max(1);
                let (port, path, session) = (*port, *path, session.as_str());
                std::thread::scope(|scope| {
                    let callers: Vec<_> = (0..case.flight)
                        .map(|n| n * each..(n + 1) * each)
                        .map(|ids| scope.spawn(move || http(port, path, session, case.way, ids)))
                        .collect();
                    let mut times = Vec::with_capacity(calls);
                    for caller in callers {
                        times.extend(caller.join().expect("a caller does not panic")?);
                    }
                    Ok(times)
                })
            }
        }
    }
}

fn gate(programs: &Programs, case: &Case) -> io::Result<Command> {
    let config = programs.scratch.join("gatelet.toml");
    let records = match case.way {
        Way::Direct | Way::Raw | Way::Surface(_) => "",
        Way::Recorded => "[records]\nfile = \"calls.jsonl\"\n",
    };
    let text = format!(
        "{records}[[upstream]]\nlabel = \"e\"\ncommand = {:?}\nargs = [\"stdio\"]\n",
        programs.echo.display().to_string()
    );
    std::fs::write(&config, text)?;
    let mut command = Command::new(&programs.gatelet);
    command.arg("serve").arg("--config").arg(&config);
    command.arg("--state").arg(programs.scratch.join("state"));
    command.args(case.way.surface().map(|surface| ["--surface", surface]).into_iter().flatten());
    if case.transport == "stdio" {
        command.arg("--stdio");
    } else {
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        std::fs::write(programs.scratch.join("port"), port.to_string())?;
        command.args(["--listen", &format!("127.0.0.1:{port}")]);
    }
    Ok(command)
}

/// The port that was given away, once somebody listens there.
fn wait_for_port(file: &Path) -> io::Result<u16> {
    let port = std::fs::read_to_string(file)?.trim().parse().map_err(io::Error::other)?;
    for _ in 0..1000 {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Err(io::Error::other("the gate did not listen within ten seconds"))
}

fn call(id: usize, way: Way) -> String {
    let message = "abcdefghijklmnopqrstuvwxyz012345";
    let params = match way.surface() {
        Some("cash") => format!(
            r#"{{"name":"call","arguments":{{"namespace":"e","function":"echo","kwargs":{{"message":"{message}"}}}}}}"#
        ),
        None => {
            format!(r#"{{"name":"echo","arguments":{{"message":"{message}"}}}}"#)
        }
        Some(_) => format!(r#"{{"name":"e_echo","arguments":{{"message":"{message}"}}}}"#),
    };
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#)
}

fn pipe(
    input: &mut ChildStdin,
    output: &mut BufReader<ChildStdout>,
    case: &Case,
    calls: usize,
) -> io::Result<Vec<Duration>> {
    let mut sent = vec![None; calls];
    let mut times = Vec::with_capacity(calls);
    let mut line = String::new();
    let mut next = 0;
    while times.len() < calls {
        while next < calls && next - times.len() < case.flight {
            let mut text = call(next, case.way);
            text.push('\n');
            sent[next] = Some(Instant::now());
            input.write_all(text.as_bytes())?;
            next += 1;
        }
        line.clear();
        if output.read_line(&mut line)? == 0 {
            return Err(io::Error::other("the server ended"));
        }
        if let Some(started) = check(&line)?.and_then(|id| sent.get(id).copied().flatten()) {
            times.push(started.elapsed());
        }
    }
    Ok(times)
}

fn http(
    port: u16,
    path: &str,
    session: &str,
    way: Way,
    ids: Range<usize>,
) -> io::Result<Vec<Duration>> {
    let mut connection = Connection::open(port)?;
    let mut times = Vec::with_capacity(ids.len());
    for id in ids {
        let text = call(id, way);
        let started = Instant::now();
        let (head, body) = connection.post(path, session, &text)?;
        times.push(started.elapsed());
        if !body.contains('{') || check(&body)?.is_none() {
            return Err(io::Error::other(format!("no answer but: {head}{body}")));
        }
    }
    Ok(times)
}

/// The id of a good answer; `None` for a notification; an error otherwise.
fn check(line: &str) -> io::Result<Option<usize>> {
    let line = line.trim_start_matches(|c| c != '{');
    let answer: serde_json::Value = serde_json::from_str(line.trim()).map_err(io::Error::other)?;
    if answer["id"].is_null() {
        return Ok(None);
    }
    let good = answer["result"]["content"][0]["text"].as_str().is_some_and(|t| t.contains("xyz"));
    if !good || answer["result"]["isError"] == true {
        return Err(io::Error::other(format!("not the answer: {line}")));
    }
    Ok(answer["id"].to_string().parse().ok())
}

/// Seconds of processor time that a process has used. The kernel counts threads
/// to the nanosecond, but forgets those that ended; it counts the process in
/// ticks, which are coarse, but forgets nothing.
fn processor_time(pid: u32) -> io::Result<f64> {
    let mut nanoseconds = 0;
    for thread in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let counted = std::fs::read_to_string(thread?.path().join("schedstat"));
        let used = counted.ok().and_then(|text| text.split_whitespace().next()?.parse().ok());
        nanoseconds += used.unwrap_or(0_u64);
    }
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let after = text.rsplit(')').next().unwrap_or_default();
    let ticks = after.split_whitespace().skip(11).take(2).filter_map(|n| n.parse::<u64>().ok());
    let ticks = ticks.sum::<u64>().saturating_sub(2) as f64 / 100.0;
    Ok(ticks.max(nanoseconds as f64 / 1e9))
}

fn print(cases: &[Case]) {
    println!(
        "| transport | in flight | way | p50 µs | × direct | p99 µs | × direct | calls/s | CPU µs/call | MB |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for group in cases.chunk_by(|a, b| (a.transport, a.flight) == (b.transport, b.flight)) {
        let base = (median(&group[0].p50), median(&group[0].p99));
        for case in group {
            let (p50, p99) = (median(&case.p50), median(&case.p99));
            let way = match case.way {
                Way::Direct => "direct to the server",
                Way::Raw => "raw forwarder",
                Way::Surface(surface) => surface,
                Way::Recorded => "cash, recorded",
            };
            println!(
                "| {} | {} | {way} | {p50:.1} | {:.2} | {p99:.1} | {:.2} | {:.0} | {:.1} | {:.1} |",
                case.transport,
                case.flight,
                p50 / base.0,
                p99 / base.1,
                median(&case.per_second),
                median(&case.processor),
                case.resident,
            );
        }
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
