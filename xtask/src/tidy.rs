//! `cargo xtask tidy`: the shape of the house.
//!
//! Dependency edges between our crates must be in the table of
//! `docs/architecture.md`. Inside a crate no modules may use each other in a
//! circle, and no crate may hold more than a fifth of the code. Every record of a
//! decision is listed, every type that the glossary names is there, no function has more
//! than a hundred lines, and the lists of what clippy forbids agree.

mod bans;
mod cycles;
mod decisions;
mod edges;
mod glossary;
mod modules;
mod shape;
mod sizes;

use anyhow::{Result, bail};

pub(crate) fn run() -> Result<()> {
    let mut problems = edges::undeclared()?;
    problems.extend(shape::check()?);
    problems.extend(decisions::unlisted()?);
    problems.extend(bans::problems()?);
    let sources = sizes::sources()?;
    problems.extend(glossary::problems(&sources)?);
    problems.extend(sizes::check(&sources));
    if !problems.is_empty() {
        bail!("{}", problems.join("\n"));
    }
    Ok(())
}
