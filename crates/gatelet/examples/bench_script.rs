//! Scripts through the program itself: their start, a call inside of one against the
//! same call as a client makes it, their memory, and a thousand at once.
//!
//! Rounds of calls take turns, so that a busy machine slows both alike: read the
//! ratio. `bench_script [rounds] [calls] [at once]`; `gatelet` and `bench_echo` stand
//! beside this program.

#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

#[path = "kit/kit.rs"]
#[allow(dead_code, reason = "each benchmark uses a part of the kit")]
mod kit;
#[path = "kit/pipe.rs"]
#[allow(dead_code, reason = "each benchmark uses a part of the kit")]
mod pipe;
#[path = "kit/server.rs"]
#[allow(dead_code, reason = "each benchmark uses a part of the kit")]
mod server;

use std::io;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kit::{Connection, connect, median, memory, resident};
use pipe::{HELLO, Pipe};
use serde_json::{Value, json};
use server::Programs;

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |usual| arguments.next().and_then(|n| n.parse().ok()).unwrap_or(usual);
    let (rounds, calls, at_once) = (number(7), number(1000), number(1000));
    let programs = Programs::beside_this_one()?;
    let mut table = Table::default();
    for store in ["memory", "disk"] {
        table.store = store;
        measure(&mut Gate::start(&programs, store)?, rounds, calls, &mut table)?;
    }
    for store in ["memory", "disk"] {
        table.store = store;
        together(&programs, store, at_once as usize, &mut table)?;
    }
    table.print();
    Ok(())
}

/// What was measured. With results kept in memory a script ends with the gate; with
/// results on the disk its journal is kept before every call that may change something.
#[derive(Default)]
struct Table {
    store: &'static str,
    rows: Vec<String>,
    verdicts: Vec<(bool, String)>,
}

impl Table {
    fn row(&mut self, what: &str, measured: &str) {
        self.rows.push(format!("| {what:<52} | {:<6} | {measured:<34} |", self.store));
    }

    /// A row with a figure to reach.
    fn row_to_reach(&mut self, what: &str, measured: &str, is_reached: bool, goal: &str) {
        self.row(what, measured);
        let line = format!("{what}, results in {}: {measured}; to reach: {goal}", self.store);
        self.verdicts.push((is_reached, line));
    }

    fn print(&self) {
        println!(
            "| {:<52} | {:<6} | {:<34} |",
            "through the program, to a server on a pipe", "store", ""
        );
        println!("|{}|{}|{}|", "-".repeat(54), "-".repeat(8), "-".repeat(36));
        self.rows.iter().for_each(|row| println!("{row}"));
        println!();
        for (is_reached, line) in &self.verdicts {
            println!("verdict: {}: {line}", if *is_reached { "reached" } else { "NOT REACHED" });
        }
    }
}

const MESSAGE: &str = "abcdefghijklmnopqrstuvwxyz012345";

/// Start and calls, one script at a time.
fn measure(gate: &mut Gate, rounds: u32, calls: u32, table: &mut Table) -> io::Result<()> {
    let (mut plain, mut inner, mut start) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        start.push(gate.timed(50, "return 1")? / 50.0);
        plain.push(gate.plain(calls)? / f64::from(calls));
        let code = format!(
            "for (let n = 0; n < {calls}; n++) await tools.e.echo({{message: '{MESSAGE}'}}); return 1"
        );
        inner.push((gate.timed(1, &code)? - start[start.len() - 1]) / f64::from(calls));
    }
    let ratios: Vec<f64> = inner.iter().zip(&plain).map(|(inner, plain)| inner / plain).collect();
    let (start, ratio) = (median(&start) * 1e3, median(&ratios));
    let measured = format!("{start:.3} ms");
    table.row_to_reach("start of a script in a warm worker", &measured, start < 1.0, "1 ms");
    table.row("a plain call on cash, by a client", &format!("{:.1} us", median(&plain) * 1e6));
    let measured = format!("{:.1} us, {ratio:.2} times a plain one", median(&inner) * 1e6);
    table.row_to_reach("a call inside of a script", &measured, ratio < 1.5, "1.5 times");
    Ok(())
}

/// The gate with scripts, in whatever way it is served.
fn command(programs: &Programs, store: &str) -> io::Result<Command> {
    let config = programs.scratch.join("gatelet.toml");
    let echo = programs.echo.display().to_string();
    let text = format!(
        "[scripts]\nenabled = true\ncalls = 100000\n\n[artifacts]\nstore = {store:?}\n\n[trust]\nmode = \"off\"\n\n\
         [[upstream]]\nlabel = \"e\"\ncommand = {echo:?}\nargs = [\"stdio\"]\n"
    );
    std::fs::write(&config, text)?;
    let mut command = Command::new(&programs.gatelet);
    command.args(["serve", "--config"]).arg(&config);
    command.arg("--state").arg(programs.scratch.join("state"));
    Ok(command)
}

/// A call of a function as a client makes it.
fn call(namespace: &str, function: &str, kwargs: &Value) -> String {
    let arguments = json!({"namespace": namespace, "function": function, "kwargs": kwargs});
    let params = json!({"name": "call", "arguments": arguments});
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string()
}

fn check(answer: &str) -> io::Result<()> {
    // Over HTTP an answer may come as an event.
    let text = answer.trim_start_matches(|c| c != '{').trim();
    let answer: Value = serde_json::from_str(text).map_err(io::Error::other)?;
    match answer["result"]["isError"] == true || answer["result"].is_null() {
        true => Err(io::Error::other(answer.to_string())),
        false => Ok(()),
    }
}

/// A gate on a pipe, with scripts.
struct Gate(Pipe);

impl Gate {
    fn start(programs: &Programs, store: &str) -> io::Result<Gate> {
        let mut gate = Gate(Pipe::start(command(programs, store)?.arg("--stdio"))?);
        gate.0.ask(HELLO)?;
        gate.plain(100)?;
        gate.timed(20, "return (await tools.e.echo({message: 'xyz'})).length")?;
        Ok(gate)
    }

    /// Seconds that so many calls take, one after another.
    fn plain(&mut self, calls: u32) -> io::Result<f64> {
        let call = call("e", "echo", &json!({"message": MESSAGE}));
        self.repeat(calls, &call)
    }

    /// Seconds that a script takes, so many times.
    fn timed(&mut self, times: u32, code: &str) -> io::Result<f64> {
        self.repeat(times, &call("gatelet", "run", &json!({"code": code})))
    }

    fn repeat(&mut self, times: u32, message: &str) -> io::Result<f64> {
        let began = Instant::now();
        for _ in 0..times {
            check(&self.0.ask(message)?)?;
        }
        Ok(began.elapsed().as_secs_f64())
    }
}

/// A gate that listens, ended when dropped.
struct Listening(Child);

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// How long an answer may take when a thousand scripts wait for two processors.
const PATIENCE: Duration = Duration::from_secs(300);

/// Many scripts at once, and what the gate and its workers need for them.
fn together(programs: &Programs, store: &str, at_once: usize, table: &mut Table) -> io::Result<()> {
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let mut command = command(programs, store)?;
    command.args(["--listen", &format!("127.0.0.1:{port}")]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let gate = Listening(command.spawn()?);
    let code = format!("return (await tools.e.echo({{message: '{MESSAGE}'}})).length");
    let run = call("gatelet", "run", &json!({"code": code}));
    let open = || -> io::Result<(Connection, String)> {
        let mut client = connect(port)?;
        client.wait_for(PATIENCE)?;
        let session = client.hello(HELLO)?;
        Ok((client, session))
    };
    let (mut first, session) = open()?;
    check(&first.post("/mcp", &session, &run)?.1)?;
    let clients = (0..at_once).map(|_| open()).collect::<io::Result<Vec<_>>>()?;
    let before = resident(gate.0.id())?;
    let (start, over) = (Barrier::new(at_once + 1), AtomicBool::new(false));
    let (took, failed, peak) = std::thread::scope(|scope| {
        let watch = scope.spawn(|| watch(gate.0.id(), &over));
        let one = |(mut client, session): (Connection, String)| {
            let (start, run) = (&start, &run);
            let answer = move || {
                start.wait();
                client.post("/mcp", &session, run).and_then(|(_, body)| check(&body))
            };
            std::thread::Builder::new().stack_size(256 << 10).spawn_scoped(scope, answer)
        };
        let runs = clients.into_iter().map(one).collect::<io::Result<Vec<_>>>()?;
        start.wait();
        let began = Instant::now();
        let answers: Vec<_> = runs.into_iter().map(|run| run.join().expect("no panic")).collect();
        let took = began.elapsed().as_secs_f64();
        over.store(true, Ordering::Relaxed);
        let failed: Vec<io::Error> = answers.into_iter().filter_map(Result::err).collect();
        Ok::<_, io::Error>((took, failed, watch.join().expect("no panic")))
    })?;
    let what = format!("{at_once} scripts at once, each of its own session");
    let rate = at_once as f64 / took;
    let measured = format!("{took:.2} s, {rate:.0}/s, {} failed", failed.len());
    table.row_to_reach(&what, &measured, failed.is_empty(), "none fails");
    if let Some(why) = failed.first() {
        println!("the first that failed: {why}");
    }
    let each = (peak.gate - before).max(0.0) * 1024.0 / at_once as f64;
    table.row(
        "memory of the gate meanwhile",
        &format!("{:.1} MB, {each:.1} kB a script", peak.gate),
    );
    let measured = format!("{:.1} MB, {} workers at most", peak.worker, peak.n_workers);
    table.row("memory of a running script's worker, its own", &measured);
    Ok(())
}

/// The most that was seen at once.
#[derive(Default)]
struct Peak {
    gate: f64,
    worker: f64,
    n_workers: usize,
}

/// Looks at the gate and its workers until it is over.
fn watch(gate: u32, over: &AtomicBool) -> Peak {
    let mut peak = Peak::default();
    while !over.load(Ordering::Relaxed) {
        peak.gate = peak.gate.max(resident(gate).unwrap_or(0.0));
        let workers = workers(gate);
        peak.n_workers = peak.n_workers.max(workers.len());
        let own = workers.iter().filter_map(|pid| memory(*pid, "RssAnon:").ok());
        peak.worker = own.fold(peak.worker, f64::max);
        std::thread::sleep(Duration::from_millis(20));
    }
    peak
}

/// The children of the gate that are the gate's own program.
fn workers(gate: u32) -> Vec<u32> {
    let listed =
        |thread: std::fs::DirEntry| std::fs::read_to_string(thread.path().join("children"));
    let threads = std::fs::read_dir(format!("/proc/{gate}/task")).into_iter().flatten().flatten();
    let children: String = threads.filter_map(|thread| listed(thread).ok()).collect();
    let program = std::fs::read_to_string(format!("/proc/{gate}/comm")).unwrap_or_default();
    let is_worker = |pid: &u32| {
        std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == program)
    };
    children.split_whitespace().filter_map(|pid| pid.parse().ok()).filter(is_worker).collect()
}
