//! `cargo xtask test`: everything the tests need, then the tests; with `--quick`,
//! only the tests that need nothing beside Rust; with `cluster`, those of several
//! replicas, the last of which goes on for as long as it is told.

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZero;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};

use crate::run::{self, cargo, has, root};
use crate::tools;

/// Property tests draw the same cases every time, so that a run can be
/// repeated; set another seed to go hunting.
const SEED: &str = "PROPTEST_RNG_SEED";

/// What becomes of a test that needs more than Rust (`testkit::needs`).
const MODE: &str = "GATELET_TESTS";

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    match arguments.split_first() {
        Some((first, rest)) if first == "--quick" => quick(rest),
        Some((first, rest)) if first == "cluster" => cluster(rest),
        _ => full(arguments),
    }
}

/// Every test; what one of them misses is an error.
fn full(arguments: &[String]) -> Result<()> {
    let tools = tools::install()?;
    if !has("cargo-nextest") {
        run::run(&mut cargo(&["install", "--locked", "--debug", "cargo-nextest"]))?;
    }
    // The program itself is built first, so that tests which start it find it.
    run::run(&mut cargo(&["build", "--workspace", "--bins", "--examples"]))?;
    // Whoever picks tests picks none of those in the documentation, which
    // nextest leaves out. They come first, so that the last word is nextest's.
    let shown = match arguments.is_empty() {
        true => run::run(&mut cargo(&["test", "--workspace", "--doc"])),
        false => Ok(()),
    };
    let mut nextest = cargo(&["nextest", "run", "--workspace", "--no-fail-fast"]);
    nextest.args(arguments).env("GATELET_TOOLS", &tools).env(MODE, "all");
    seed(&mut nextest);
    run::run(&mut nextest).and(shown)
}

/// The test in which replicas, store and links fail at random.
const CHAOS: &str = "test(cluster::chaos::)";

/// The tests of several replicas: all of them once, then the failures for so many minutes.
fn cluster(arguments: &[String]) -> Result<()> {
    let number = |at: usize, default: u64| match arguments.get(at) {
        Some(text) => {
            text.parse::<u64>().context("usage: cargo xtask test cluster [MINUTES] [SEED]")
        }
        None => Ok(default),
    };
    let (minutes, seed) = (number(0, 1)?, number(1, 20_261_118)?);
    let tools = tools::install()?;
    let nextest = |filter: &str, more: &[&str]| {
        let mut nextest = cargo(&["nextest", "run", "-p", "gatelet", "-E", filter]);
        nextest.args(more).env("GATELET_TOOLS", &tools).env(MODE, "all");
        nextest
    };
    let others = format!("test(cluster::) and not {CHAOS}");
    run::run(&mut nextest(&others, &["--no-fail-fast"]))?;
    // What it counts goes to the terminal.
    let mut chaos = nextest(CHAOS, &["--no-capture"]);
    chaos.env("GATELET_CHAOS_MINUTES", minutes.to_string());
    chaos.env("GATELET_CHAOS_SEED", seed.to_string());
    run::run(&mut chaos)
}

/// The tests that need no npm, no PyPI, no database and no network.
fn quick(arguments: &[String]) -> Result<()> {
    let started = Instant::now();
    run::run(&mut cargo(&["test", "--workspace", "--no-run", "--quiet"]))?;
    let built = started.elapsed();
    let left_out = root().join("target/left-out.txt");
    let _ = fs::remove_file(&left_out);
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let mut tests = match has("cargo-nextest") {
        true => {
            // Half of the tests wait for a program rather than compute.
            let n_threads = cores + cores.div_ceil(2);
            let mut nextest = cargo(&["nextest", "run", "--workspace", "--status-level", "slow"]);
            nextest.args(["--test-threads", &n_threads.to_string()]);
            nextest
        }
        false => cargo(&["test", "--workspace", "--quiet"]),
    };
    tests.args(arguments).env(MODE, "quick").env("GATELET_LEFT_OUT", &left_out);
    seed(&mut tests);
    let outcome = run::run(&mut tests);
    for (reason, count) in reasons(&left_out) {
        println!("left out: {count} tests: {reason}");
    }
    let ran = started.elapsed() - built;
    println!("built in {} s, tested in {} s", built.as_secs(), ran.as_secs());
    outcome
}

/// Why tests were left out, and how many for each reason.
fn reasons(list: &Path) -> BTreeMap<String, usize> {
    let mut reasons = BTreeMap::new();
    for line in fs::read_to_string(list).unwrap_or_default().lines() {
        *reasons.entry(line.to_owned()).or_default() += 1;
    }
    reasons
}

fn seed(command: &mut std::process::Command) {
    if std::env::var_os(SEED).is_none() {
        command.env(SEED, "20261115");
    }
}
