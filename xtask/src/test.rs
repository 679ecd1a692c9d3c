//! `cargo xtask test`: everything the tests need, then the tests.

use anyhow::Result;

use crate::run::{self, cargo, has};
use crate::{databases, tools};

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let tools = tools::install()?;
    if !has("cargo-nextest") {
        run::run(&mut cargo(&["install", "--locked", "--debug", "cargo-nextest"]))?;
    }
    // The program itself is built first, so that tests which start it find it.
    run::run(&mut cargo(&["build", "--workspace", "--bins", "--examples"]))?;
    let databases = databases::start(&tools)?;
    let mut nextest = cargo(&["nextest", "run", "--workspace", "--no-fail-fast"]);
    nextest.args(arguments).env("GATELET_TOOLS", &tools).envs(databases.environment());
    run::run(&mut nextest)
}
