//! `cargo xtask fuzz [seconds] [name…]`: made-up inputs for whatever reads texts of
//! others, each target for so long, with a seed of the day.
//!
//! The targets are tests whose names hold `fuzz_`: the table of the crate `fuzz`,
//! and unit tests beside what is private. In the tests they run for a moment with
//! a fixed seed.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};

use crate::run::{self, cargo, root};

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let (seconds, names) = match arguments.split_first() {
        Some((first, names)) => (first.parse().context("how many seconds?")?, names),
        None => (30u64, &[][..]),
    };
    let kept = root().join("target/fuzz");
    let mut nextest = cargo(&["nextest", "run", "--workspace", "--no-fail-fast"]);
    // A target that is asked for longer is not hung.
    nextest.args(["--profile", "fuzz", "-E", &filter(names)]);
    nextest.env("GATELET_FUZZ_SECONDS", seconds.to_string()).env("GATELET_FUZZ_KEPT", &kept);
    if std::env::var_os("GATELET_FUZZ_SEED").is_none() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let seed = now.as_secs();
        println!("seed {seed} (repeat with GATELET_FUZZ_SEED={seed})");
        nextest.env("GATELET_FUZZ_SEED", seed.to_string());
    }
    let outcome = run::run(&mut nextest);
    println!("inputs that failed, or ended their process, are in {}", kept.display());
    outcome
}

/// Which tests are targets, of these names or all.
fn filter(names: &[String]) -> String {
    match names.is_empty() {
        true => "test(/fuzz_/)".to_owned(),
        false => {
            let names: Vec<String> = names.iter().map(|name| format!("test(/{name}$/)")).collect();
            format!("test(/fuzz_/) & ({})", names.join(" | "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_picked_by_name() {
        assert_eq!(filter(&[]), "test(/fuzz_/)");
        let two = ["view".to_owned(), "jq".to_owned()];
        assert_eq!(filter(&two), "test(/fuzz_/) & (test(/view$/) | test(/jq$/))");
    }
}
