//! gatelets that start each other.
//!
//! A gatelet notices when it connects to itself. One that starts itself as a
//! program never gets that far: the program is another gatelet, which starts the
//! next one. So programs are told in their environment which configurations are
//! served above them, and nobody serves one of those again over a pipe.

use std::path::{Path, PathBuf};

use config::{Environment, Process, Reach, Upstream};

/// Holds the files, one on each line.
pub(super) const VARIABLE: &str = "GATELET_CHAIN";

/// The configurations above a program that is started for this one.
pub(crate) fn with(file: Option<&Path>) -> String {
    let above = Process.get(VARIABLE).unwrap_or_default();
    let above = above.lines().map(str::to_owned);
    let own = file.map(|file| whole(file).display().to_string());
    above.chain(own).collect::<Vec<_>>().join("\n")
}

/// An upstream that learns what is above it, if it is a program.
pub(super) fn with_chain(upstream: &Upstream, chain: &str) -> Upstream {
    let mut upstream = upstream.clone();
    if let Reach::Program { env, .. } = &mut upstream.reach
        && !chain.is_empty()
    {
        env.insert(VARIABLE.to_owned(), chain.to_owned());
    }
    upstream
}

/// Stops a gatelet that is started by a gatelet that serves the same.
pub(crate) fn not_again(file: Option<&Path>) -> Result<(), String> {
    let Some(file) = file else { return Ok(()) };
    let above = Process.get(VARIABLE).unwrap_or_default();
    if above.lines().any(|one| Path::new(one) == whole(file)) {
        let file = file.display();
        let why = format!("`{file}` starts the gate itself as an upstream: take that out of it");
        return Err(why);
    }
    Ok(())
}

fn whole(file: &Path) -> PathBuf {
    std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned())
}
