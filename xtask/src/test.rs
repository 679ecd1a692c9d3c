//! `cargo xtask test`: everything the tests need, then the tests.

use anyhow::Result;

use crate::run::{self, cargo, has};
use crate::{databases, tools};

/// Property tests draw the same cases every time, so that a run can be
/// repeated; set another seed to go hunting.
const SEED: &str = "PROPTEST_RNG_SEED";

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let tools = tools::install()?;
    if !has("cargo-nextest") {
        run::run(&mut cargo(&["install", "--locked", "--debug", "cargo-nextest"]))?;
    }
    // The program itself is built first, so that tests which start it find it.
    run::run(&mut cargo(&["build", "--workspace", "--bins", "--examples"]))?;
    databases::ensure()?;
    // Whoever picks tests picks none of those in the documentation, which
    // nextest leaves out. They come first, so that the last word is nextest's.
    let shown = match arguments.is_empty() {
        true => run::run(&mut cargo(&["test", "--workspace", "--doc"])),
        false => Ok(()),
    };
    let mut nextest = cargo(&["nextest", "run", "--workspace", "--no-fail-fast"]);
    nextest.args(arguments).env("GATELET_TOOLS", &tools);
    if std::env::var_os(SEED).is_none() {
        nextest.env(SEED, "20261115");
    }
    run::run(&mut nextest).and(shown)
}
