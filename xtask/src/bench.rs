//! `cargo xtask bench`: measurements, as ratios taken side by side in one run.

use anyhow::{Result, bail};

use crate::run::{self, cargo};

/// Every benchmark: its name, the package and example that runs it, and how they
/// are built. Where the program itself is measured, that is as it ships.
const BENCHES: &[(&str, &str, &str, &str)] = &[
    ("call", "gatelet", "bench_call", "dist"),
    ("content", "gatelet-content", "bench", "release"),
    ("find", "gatelet-catalog", "find", "release"),
    ("gate", "gatelet-gateway", "bench_gate", "release"),
    ("native", "example-notes", "speed", "release"),
    ("observed", "gatelet-telemetry", "bench_observed", "release"),
    ("run", "gatelet-gateway", "bench_run", "release"),
    ("scale", "gatelet", "bench_scale", "dist"),
];

pub(crate) fn run(names: &[String]) -> Result<()> {
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
