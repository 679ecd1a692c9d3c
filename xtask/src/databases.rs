//! The databases that the tests talk to.
//!
//! The tests of the content toolset start servers of their own, each with its
//! own port and directory, and end them; here it is only made sure that the
//! programs are there.

use std::path::Path;

use anyhow::Result;

use crate::tools;

/// Programs, and the Debian packages that bring them.
const SERVERS: [(&str, &str); 2] =
    [("/usr/sbin/mariadbd", "mariadb-server"), ("/usr/lib/postgresql", "postgresql")];

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

/// Makes sure that the servers can be started.
pub(crate) fn start(_tools: &Path) -> Result<Databases> {
    let is_missing = |place: &str| !Path::new(place).exists();
    let missing: Vec<&str> = SERVERS
        .into_iter()
        .filter(|(place, _)| is_missing(place))
        .map(|(_, package)| package)
        .collect();
    if !missing.is_empty() {
        tools::apt(&missing)?;
    }
    Ok(Databases { environment: Vec::new() })
}
