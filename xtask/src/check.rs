//! `cargo xtask check`: what must hold before a change is looked at.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::run::{self, cargo, root};
use crate::{tidy, tools};

pub(crate) fn run() -> Result<()> {
    run::run(&mut cargo(&["fmt", "--all", "--check"]))?;
    run::run(&mut cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    // Advisories need a database from the network; CI must not.
    let checks = ["check", "--hide-inclusion-graph", "bans", "licenses", "sources"];
    run::run(Command::new(deny()?).args(checks).current_dir(root()))?;
    tidy::run()
}

/// `cargo-deny`, built once beside the other tools.
fn deny() -> Result<PathBuf> {
    const VERSION: &str = "0.20.2";
    let place = tools::directory().join(format!("cargo-deny-{VERSION}"));
    let program = place.join("bin/cargo-deny");
    if !program.exists() {
        let version = ["cargo-deny", "--version", VERSION, "--locked"];
        // Speed of the tool does not matter, speed of its build does.
        let lean = ["--debug", "--no-default-features", "--root"];
        run::run(cargo(&["install"]).args(version).args(lean).arg(&place))?;
    }
    Ok(program)
}
