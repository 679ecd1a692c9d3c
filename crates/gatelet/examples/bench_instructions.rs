//! How many instructions a call costs the gate, counted by callgrind.
//!
//! Seconds depend on what else a machine does, instructions hardly: each case is run
//! twice with different numbers of calls, so that start and end cancel out, and the
//! difference is divided by the calls between. `bench_instructions [GATELET…]` takes
//! other builds of the program, of which the first is what the others are compared
//! with; `bench_echo` stands beside this one, and `valgrind` has to be installed.

#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

#[path = "kit/kit.rs"]
#[allow(dead_code, reason = "each benchmark uses a part of the kit")]
mod kit;
#[path = "kit/server.rs"]
#[allow(dead_code, reason = "each benchmark uses a part of the kit")]
mod server;

use std::io;
use std::path::{Path, PathBuf};

use server::{Load, Programs, Server, Way};

/// How many calls the two runs of a case make.
const CALLS: (usize, usize) = (1000, 3000);

fn main() -> io::Result<()> {
    let mut programs = Programs::beside_this_one()?;
    let mut builds: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    if builds.is_empty() {
        builds.push(programs.gatelet.clone());
    }
    println!("| transport | in flight | surface | build | instructions | × first |");
    println!("|---|---|---|---|---|---|");
    for (transport, flight) in [("stdio", 16), ("http", 1)] {
        for surface in ["direct", "cash"] {
            let load = Load { transport, flight, way: Way::Surface(surface) };
            let mut first = None;
            for build in &builds {
                programs.gatelet.clone_from(build);
                let fewer = count(&mut programs, load, CALLS.0)?;
                let more = count(&mut programs, load, CALLS.1)?;
                let each = more.saturating_sub(fewer) as f64 / (CALLS.1 - CALLS.0) as f64;
                let base = *first.get_or_insert(each);
                let build = build.display();
                println!(
                    "| {transport} | {flight} | {surface} | {build} | {each:.0} | {:.3} |",
                    each / base
                );
            }
        }
    }
    Ok(())
}

/// Counts the instructions of the gate from its start to its end with `calls` calls.
fn count(programs: &mut Programs, load: Load, calls: usize) -> io::Result<u64> {
    let report = programs.scratch.join("callgrind.out");
    let _ = std::fs::remove_file(&report);
    let file = format!("--callgrind-out-file={}", report.display());
    programs.wrapper = ["valgrind", "-q", "--tool=callgrind", &file].map(Into::into).to_vec();
    let mut server = Server::start(programs, load)?;
    server.run(load, calls)?;
    server.stop()?;
    total(&report)
}

/// Reads the sum at the end of a report of callgrind.
fn total(report: &Path) -> io::Result<u64> {
    let text = std::fs::read_to_string(report)?;
    let sum = |line: &str| {
        let rest = line.strip_prefix("totals:").or_else(|| line.strip_prefix("summary:"))?;
        rest.trim().parse().ok()
    };
    text.lines()
        .rev()
        .find_map(sum)
        .ok_or_else(|| io::Error::other("callgrind wrote no sum: did the program end in order?"))
}
