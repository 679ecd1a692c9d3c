//! What it costs the program as it ships to be watched: the same small call through the
//! gate with nothing switched on, with metrics, with traces of every call and of a
//! tenth, and with everything.
//!
//! Spans go to a collector in this process, which takes them and says so; its work is
//! not counted. Counted is the processor time of the gate, the sending included: traces
//! may cost a tenth more, and the program fails when they cost more than that. Rounds
//! are interleaved, so that a busy machine slows every case alike: read the ratios.
//!
//! `bench_watched [rounds] [calls]`; the programs stand beside this one (`gatelet`,
//! `bench_echo`).

#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

#[path = "kit/kit.rs"]
#[allow(dead_code, reason = "each benchmark uses a part of the kit")]
mod kit;
#[path = "kit/server.rs"]
#[allow(dead_code, reason = "each benchmark uses a part of the kit")]
mod server;

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kit::{median, processor_time};
use server::{Load, Programs, Server, Way};

/// How much more a call may cost with a trace of every call.
const MOST: f64 = 1.10;

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |usual| arguments.next().and_then(|n| n.parse().ok()).unwrap_or(usual);
    let (rounds, calls) = (number(9), number(4000));
    let programs = Programs::beside_this_one()?;
    let collector = Collector::listen()?;
    let cases = cases(collector.port);
    let (mut failed, mut verdict) = (Vec::new(), Vec::new());
    for transport in ["stdio", "http"] {
        let mut costs: Vec<Vec<f64>> = vec![Vec::new(); cases.len()];
        let mut waits: Vec<Vec<f64>> = vec![Vec::new(); cases.len()];
        for _ in 0..rounds {
            for (at, (_, config)) in cases.iter().enumerate() {
                let load = Load { transport, flight: 8, way: Way::Configured(config) };
                let (cost, wait) = round(&programs, load, calls)?;
                costs[at].push(cost);
                waits[at].push(wait);
            }
        }
        println!("\n| {transport} | CPU µs/call | × off | p50 µs | × off |\n|---|---|---|---|---|");
        let wait_off = median(&waits[0]);
        for (at, (name, _)) in cases.iter().enumerate() {
            let (cost, wait) = (median(&costs[at]), median(&waits[at]));
            let sides = costs[at].iter().zip(&costs[0]);
            let ratio = median(&sides.map(|(own, off)| own / off).collect::<Vec<f64>>());
            println!("| {name} | {cost:.1} | {ratio:.3} | {wait:.1} | {:.3} |", wait / wait_off);
            if *name == TRACES {
                verdict.push(format!("{ratio:.3} times over {transport}"));
                failed.extend((MOST < ratio).then_some(transport));
            }
        }
    }
    println!("\nthe collector took {} bytes", collector.taken.load(Ordering::Relaxed));
    let word = if failed.is_empty() { "fine" } else { "FAILED" };
    println!("verdict: {word}: traces of all calls cost {} ({MOST} at most)", verdict.join(", "));
    match failed.is_empty() {
        true => Ok(()),
        false => Err(io::Error::other(format!("traces cost too much over {}", failed.join(", ")))),
    }
}

/// The name of the case with a trace of every call.
const TRACES: &str = "traces of all";

/// What is watched, and the configuration for it.
fn cases(port: u16) -> Vec<(&'static str, &'static str)> {
    let traces = |sample: f64| {
        format!(
            "[traces]\nendpoint = \"http://127.0.0.1:{port}\"\nsample = {sample:.1}\ninterval = \"1s\"\n"
        )
    };
    let metrics = "[metrics]\nlisten = \"127.0.0.1:0\"\n";
    let records = "[records]\nfile = \"calls.jsonl\"\n";
    let cases = [
        ("off", String::new()),
        ("metrics", metrics.to_owned()),
        ("traces of a tenth", traces(0.1)),
        (TRACES, traces(1.0)),
        ("all, with records", format!("{metrics}{records}{}", traces(1.0))),
    ];
    // They last as long as the program.
    cases.map(|(name, config)| (name, &*config.leak())).to_vec()
}

/// Processor time of the gate a call, and the median time of a call, in microseconds.
fn round(programs: &Programs, load: Load, calls: usize) -> io::Result<(f64, f64)> {
    let mut server = Server::start(programs, load)?;
    server.run(load, calls / 10)?;
    let before = processor_time(server.child.id())?;
    let mut times = server.run(load, calls)?;
    // What is put off, such as sending spans and counting tokens, belongs to the calls.
    std::thread::sleep(Duration::from_millis(1500));
    let used = processor_time(server.child.id())? - before;
    server.stop()?;
    times.sort();
    let typical = times[times.len() / 2].as_secs_f64() * 1e6;
    Ok((used * 1e6 / times.len() as f64, typical))
}

/// A collector that takes everything and keeps nothing.
struct Collector {
    port: u16,
    /// How many bytes it was sent.
    taken: Arc<AtomicU64>,
}

impl Collector {
    fn listen() -> io::Result<Collector> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let (port, taken) = (listener.local_addr()?.port(), Arc::new(AtomicU64::new(0)));
        let count = Arc::clone(&taken);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let count = Arc::clone(&count);
                std::thread::spawn(move || drop(take(stream, &count)));
            }
        });
        Ok(Collector { port, taken })
    }
}

/// Answers the requests of one connection.
fn take(mut stream: TcpStream, taken: &AtomicU64) -> io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let line = line.trim().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().map_err(io::Error::other)?;
            }
        }
        let body = io::copy(&mut reader.by_ref().take(length), &mut io::sink())?;
        taken.fetch_add(body, Ordering::Relaxed);
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")?;
    }
}
