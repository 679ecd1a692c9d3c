//! The servers of others that the tests talk to: databases, stores, Prometheus.
//!
//! The tests of the content toolset and of shared state start servers of their own, each with its
//! own port and directory, and end them; here it is only made sure that the
//! programs are there.

use std::path::Path;

use anyhow::Result;

use crate::tools;

/// Programs, and the Debian packages that bring them.
const SERVERS: [(&str, &str); 7] = [
    ("/usr/sbin/mariadbd", "mariadb-server"),
    ("/usr/lib/postgresql", "postgresql"),
    ("/usr/bin/redis-server", "redis-server"),
    ("/usr/bin/faketime", "faketime"),
    ("/usr/sbin/nginx", "nginx-light"),
    ("/usr/sbin/haproxy", "haproxy"),
    ("/usr/bin/prometheus", "prometheus"),
];

/// Makes sure that the servers can be started.
pub(crate) fn ensure() -> Result<()> {
    let missing: Vec<&str> = SERVERS
        .into_iter()
        .filter(|(place, _)| !Path::new(place).exists())
        .map(|(_, package)| package)
        .collect();
    match missing.is_empty() {
        true => Ok(()),
        false => tools::apt(&missing),
    }
}
