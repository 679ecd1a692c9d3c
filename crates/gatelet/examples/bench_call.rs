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
#[allow(dead_code, reason = "each benchmark uses a part of the kit")]
mod kit;
#[path = "kit/server.rs"]
#[allow(dead_code, reason = "each benchmark uses a part of the kit")]
mod server;

use std::io;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kit::{median, processor_time, resident};
use server::{Load, Programs, Server, Way};

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
    let programs = Programs::beside_this_one()?;
    beside(busy, || measure(&programs, rounds, calls, &only))
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

/// One case, and what was measured of it round by round.
struct Case {
    load: Load,
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
                    load: Load { transport, flight, way },
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
    let mut server = Server::start(programs, case.load)?;
    server.run(case.load, calls / 10)?;
    let before = processor_time(server.child.id())?;
    let started = Instant::now();
    let mut times = server.run(case.load, calls)?;
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

fn print(cases: &[Case]) {
    println!(
        "| transport | in flight | way | p50 µs | × direct | p99 µs | × direct | calls/s | CPU µs/call | MB |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for group in cases
        .chunk_by(|a, b| (a.load.transport, a.load.flight) == (b.load.transport, b.load.flight))
    {
        let base = (median(&group[0].p50), median(&group[0].p99));
        for case in group {
            let (p50, p99) = (median(&case.p50), median(&case.p99));
            let way = match case.load.way {
                Way::Direct => "direct to the server",
                Way::Raw => "raw forwarder",
                Way::Surface(surface) => surface,
                Way::Recorded | Way::Configured(_) => "cash, recorded",
            };
            println!(
                "| {} | {} | {way} | {p50:.1} | {:.2} | {p99:.1} | {:.2} | {:.0} | {:.1} | {:.1} |",
                case.load.transport,
                case.load.flight,
                p50 / base.0,
                p99 / base.1,
                median(&case.per_second),
                median(&case.processor),
                case.resident,
            );
        }
    }
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
