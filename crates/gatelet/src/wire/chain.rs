//! Stops gatelets that would start each other without end.
//!
//! A configuration can name gatelet itself as a program to start, with the same
//! configuration. So each program learns from an environment variable which
//! configurations are served by the gatelets above it, and a gatelet refuses to serve
//! one of those again over standard input and output.

use std::path::{Path, PathBuf};

use config::{Environment, ProcessEnvironment, Reach, Upstream};

/// The environment variable: configuration files, one per line, the outermost first.
pub(super) const VARIABLE: &str = "GATELET_CHAIN";

/// The chain that programs started for the configuration `file` get: that of this
/// process, and `file`.
pub(super) fn with_own(file: Option<&Path>) -> String {
    let above = ProcessEnvironment.get(VARIABLE).unwrap_or_default();
    let above = above.lines().map(str::to_owned);
    let own = file.map(|file| canonical(file).display().to_string());
    above.chain(own).collect::<Vec<_>>().join("\n")
}

/// The upstream with the chain in its environment, if it is a program.
pub(super) fn pass_to_program(upstream: &Upstream, chain: &str) -> Upstream {
    let mut upstream = upstream.clone();
    if let Reach::Program { env, .. } = &mut upstream.reach
        && !chain.is_empty()
    {
        env.insert(VARIABLE.to_owned(), chain.to_owned());
    }
    upstream
}

/// Refuses to serve the configuration `file` below a gatelet that serves it already.
pub(crate) fn refuse_cycle(file: Option<&Path>) -> Result<(), String> {
    let Some(file) = file else { return Ok(()) };
    let above = ProcessEnvironment.get(VARIABLE).unwrap_or_default();
    if above.lines().any(|one| Path::new(one) == canonical(file)) {
        let file = file.display();
        let why = format!("`{file}` starts the gate itself as an upstream: take that out of it");
        return Err(why);
    }
    Ok(())
}

fn canonical(file: &Path) -> PathBuf {
    std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned())
}
