//! `cargo xtask bench`: measurements, as ratios taken side by side in one run.

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::run::{self, cargo};
use crate::{stopwatch, tools, watched};

/// Every benchmark: its name, the package and example that runs it, and how they
/// are built. Where the program itself is measured, that is as it ships.
const BENCHES: &[(&str, &str, &str, &str)] = &[
    ("call", "gatelet", "bench_call", "dist"),
    ("cluster", "gatelet", "bench_cluster", "release"),
    ("content", "gatelet-content", "bench", "release"),
    ("find", "gatelet-catalog", "find", "release"),
    ("gate", "gatelet-gateway", "bench_gate", "release"),
    ("instructions", "gatelet", "bench_instructions", "dist"),
    ("native", "example-notes", "speed", "release"),
    ("observed", "gatelet-telemetry", "bench_observed", "release"),
    ("observed", "gatelet", "bench_watched", "dist"),
    ("run", "gatelet", "bench_script", "dist"),
    ("run", "gatelet-gateway", "bench_run", "release"),
    ("scale", "gatelet", "bench_scale", "dist"),
];

/// Recorded agents through every way to tools; the page goes to `docs/benchmarks`, or
/// beside the directory of another recording. Flags are those of the example `context`, and
/// `--out`.
fn context(arguments: &[String]) -> Result<()> {
    let (data, mut flags) = match arguments {
        [first, rest @ ..] if !first.starts_with("--") => (Some(first), rest.to_vec()),
        all => (None, all.to_vec()),
    };
    let mut out = match data {
        Some(data) => PathBuf::from(data).join("benchmarks"),
        None => run::root().join("docs/benchmarks"),
    };
    if let Some(at) = flags.iter().position(|flag| flag == "--out") {
        let Some(place) = flags.get(at + 1) else { bail!("`--out` needs a directory") };
        out = PathBuf::from(place);
        flags.drain(at..at + 2);
    }
    if let Some(data) = data {
        flags.extend(["--tools", data, "--tasks", data].map(str::to_owned));
    }
    let peers = tools::install_peers()?;
    run::run(&mut cargo(&["build", "--release", "--package", "gatelet", "--bins"]))?;
    let gatelet = run::target_directory()?.join("release/gatelet");
    let mut bench =
        cargo(&["run", "--release", "--package", "gatelet-replay", "--example", "context", "--"]);
    run::run(bench.arg(gatelet).arg(peers).arg(&out).args(flags))?;
    println!("written to {}", out.display());
    Ok(())
}

/// How long replies are, over a directory of recorded listings; with queries of one's
/// own, or those of the repository.
fn replies(arguments: &[String]) -> Result<()> {
    let gold = run::root().join("crates/catalog/tests/gold/queries.jsonl");
    let queries = match arguments {
        [_] => gold,
        [_, queries] => PathBuf::from(queries),
        _ => bail!("usage: cargo xtask bench replies LISTINGS [QUERIES.jsonl]"),
    };
    let of = ["--release", "--package", "gatelet-gateway", "--example", "bench_replies", "--"];
    run::run(cargo(&["run"]).args(of).arg(&arguments[0]).arg(queries))
}

pub(crate) fn run(names: &[String]) -> Result<()> {
    // These take arguments of their own.
    if let [first, rest @ ..] = names {
        match first.as_str() {
            "context" => return context(rest),
            "replies" => return replies(rest),
            "start" => return stopwatch::run(rest),
            "console" => return watched::run(rest),
            _ => {}
        }
    }
    if let Some(unknown) = names.iter().find(|name| !BENCHES.iter().any(|b| b.0 == name.as_str())) {
        let known: Vec<&str> = BENCHES.iter().map(|bench| bench.0).collect();
        bail!("no benchmark `{unknown}`; there are: {}", known.join(", "));
    }
    for (name, package, example, profile) in BENCHES {
        if names.is_empty() || names.iter().any(|wanted| wanted == name) {
            // A benchmark may start the program and other examples.
            let of = ["--profile", profile, "--package", package];
            run::run(cargo(&["build", "--bins", "--examples"]).args(of))?;
            run::run(cargo(&["run", "--example", example]).args(of))?;
        }
    }
    Ok(())
}
