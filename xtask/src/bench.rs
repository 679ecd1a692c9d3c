//! `cargo xtask bench`: measurements, as ratios taken side by side in one run.

use anyhow::{Result, bail};

use crate::run::{self, cargo};

/// Every benchmark: its name, and the package and example that runs it.
const BENCHES: &[(&str, &str, &str)] = &[
    ("call", "gatelet", "bench_call"),
    ("content", "gatelet-content", "bench"),
    ("find", "gatelet-catalog", "find"),
    ("gate", "gatelet-gateway", "bench_gate"),
    ("native", "example-notes", "speed"),
    ("scale", "gatelet", "bench_scale"),
];

pub(crate) fn run(names: &[String]) -> Result<()> {
    if let Some(unknown) = names.iter().find(|name| !BENCHES.iter().any(|b| b.0 == name.as_str())) {
        let known: Vec<&str> = BENCHES.iter().map(|bench| bench.0).collect();
        bail!("no benchmark `{unknown}`; there are: {}", known.join(", "));
    }
    for (name, package, example) in BENCHES {
        if names.is_empty() || names.iter().any(|wanted| wanted == name) {
            // A benchmark may start the program and other examples.
            run::run(&mut cargo(&[
                "build",
                "--release",
                "--package",
                package,
                "--bins",
                "--examples",
            ]))?;
            let flags = ["run", "--release", "--package", package, "--example", example];
            run::run(&mut cargo(&flags))?;
        }
    }
    Ok(())
}
