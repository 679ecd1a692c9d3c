//! Skips tests that need programs that are not installed.
//!
//! Such a test begins with [`needs!`](crate::needs). `cargo xtask test` sets
//! `GATELET_TESTS=all`: a missing program is an error. `cargo xtask test --quick` sets
//! `GATELET_TESTS=quick`: such tests are always skipped. Without the variable, as in
//! `cargo test -p X`, they run if they can. A skipped test says so on stderr, where the
//! test harness does not capture it, and appends the reason to the file that
//! `GATELET_LEFT_OUT` names.

use std::io::Write;
use std::path::PathBuf;

use crate::program::program;

/// The server that speaks S3, below the directory of tools.
pub(crate) const OBJECT_STORE: &str = "s3/bin/moto_server";

/// A program, or a set of programs, that a test needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Node, Python, and real MCP servers and clients, in `GATELET_TOOLS`.
    Tools,
    /// MariaDB.
    MariaDb,
    /// PostgreSQL.
    Postgres,
    /// Redis or Valkey, and `libfaketime`, which moves its clock.
    Valkey,
    /// Everything of `Valkey`, and nginx.
    Nginx,
    /// Everything of `Valkey`, and HAProxy.
    Haproxy,
    /// `helm`, in `GATELET_TOOLS`.
    Helm,
    /// Everything of `Valkey`, and a server that speaks S3, in `GATELET_TOOLS`.
    ObjectStore,
    /// Debian's `dpkg`.
    Dpkg,
    /// Prometheus and `promtool`.
    Prometheus,
    /// A keyring for a desktop session: `dbus-run-session`, GNOME's daemon, `secret-tool`.
    Keyring,
    /// `systemd-analyze`, which checks unit files.
    Systemd,
    /// `strip`, and the time to pack the whole program.
    Packing,
}

/// How a test run treats tests that need programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunMode {
    /// They run, and fail when something is missing.
    All,
    /// They are skipped.
    Quick,
    /// They run if the programs are installed.
    Here,
}

/// Whether a test runs.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Run,
    /// It is skipped for this reason.
    LeaveOut(String),
}

/// Returns from a test whose program is missing, and says so on stderr.
#[macro_export]
macro_rules! needs {
    ($need:ident) => {
        if $crate::needs::is_left_out($crate::needs::Need::$need) {
            return;
        }
    };
}

/// Returns whether the calling test is to be skipped, and says so on stderr.
#[expect(clippy::disallowed_methods, reason = "the test command sets this")]
pub fn is_left_out(need: Need) -> bool {
    let mode = match std::env::var("GATELET_TESTS").as_deref() {
        Ok("all") => RunMode::All,
        Ok("quick") => RunMode::Quick,
        _ => RunMode::Here,
    };
    match decide(need, mode, is_here(need)) {
        Verdict::Run => false,
        Verdict::LeaveOut(reason) => {
            let thread = std::thread::current();
            let test = thread.name().unwrap_or("a test");
            // Written past the print macros, whose output is captured.
            let _ = writeln!(std::io::stderr(), "left out: {test}: {reason}");
            if let Some(list) = std::env::var_os("GATELET_LEFT_OUT") {
                let list = std::fs::OpenOptions::new().append(true).create(true).open(list);
                let _ = list.and_then(|mut list| list.write_all(format!("{reason}\n").as_bytes()));
            }
            true
        }
    }
}

fn decide(need: Need, mode: RunMode, is_here: bool) -> Verdict {
    let name = match need {
        Need::Tools => "real servers and clients (GATELET_TOOLS)",
        Need::MariaDb => "MariaDB",
        Need::Postgres => "PostgreSQL",
        Need::Valkey => "redis-server and faketime",
        Need::Nginx => "redis-server and nginx",
        Need::Haproxy => "redis-server and haproxy",
        Need::Helm => "helm (GATELET_TOOLS)",
        Need::ObjectStore => "redis-server and moto_server (GATELET_TOOLS)",
        Need::Dpkg => "dpkg",
        Need::Prometheus => "Prometheus",
        Need::Keyring => "gnome-keyring, secret-tool and dbus-run-session",
        Need::Systemd => "systemd-analyze",
        Need::Packing => "strip, and a while to pack the whole program",
    };
    match mode {
        // A missing program is reported when the test starts it.
        RunMode::All => Verdict::Run,
        RunMode::Here if is_here => Verdict::Run,
        RunMode::Here => Verdict::LeaveOut(format!("needs {name}; `cargo xtask test` installs it")),
        RunMode::Quick => Verdict::LeaveOut(format!("needs {name}; not in a quick run")),
    }
}

fn is_here(need: Need) -> bool {
    match need {
        Need::Tools => tools().is_some_and(|place| place.is_dir()),
        Need::MariaDb => program("mariadbd").is_some(),
        Need::Postgres => program("initdb").is_some(),
        Need::Valkey => program("redis-server").is_some() && crate::valkey::clock().is_some(),
        Need::Nginx => is_here(Need::Valkey) && program("nginx").is_some(),
        Need::Haproxy => is_here(Need::Valkey) && program("haproxy").is_some(),
        Need::Helm => tools().is_some_and(|place| place.join("helm/bin/helm").exists()),
        Need::ObjectStore => {
            let is_there = |place: PathBuf| place.join(OBJECT_STORE).exists();
            is_here(Need::Valkey) && tools().is_some_and(is_there)
        }
        Need::Dpkg => program("dpkg").is_some(),
        Need::Prometheus => program("prometheus").is_some(),
        Need::Keyring => ["dbus-run-session", "gnome-keyring-daemon", "secret-tool"]
            .into_iter()
            .all(|name| program(name).is_some()),
        Need::Systemd => program("systemd-analyze").is_some(),
        Need::Packing => program("strip").is_some(),
    }
}

/// Returns the directory into which `cargo xtask test` installs programs.
#[expect(clippy::disallowed_methods, reason = "the test command says where the tools are")]
pub fn tools() -> Option<PathBuf> {
    std::env::var_os("GATELET_TOOLS").map(PathBuf::from)
}

/// Returns a path below the directory of installed programs.
///
/// # Panics
///
/// When the path does not exist.
#[track_caller]
pub fn tool(path: &str) -> PathBuf {
    let tools = tools().expect("GATELET_TOOLS is not set: run `cargo xtask test`");
    let path = tools.join(path);
    assert!(path.exists(), "{} is missing: run `cargo xtask test`", path.display());
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_full_run_leaves_nothing_out_and_the_quick_run_everything_that_needs_more() {
        for need in [
            Need::Tools,
            Need::MariaDb,
            Need::Postgres,
            Need::Valkey,
            Need::Nginx,
            Need::Haproxy,
            Need::Helm,
            Need::ObjectStore,
            Need::Dpkg,
            Need::Prometheus,
            Need::Keyring,
            Need::Systemd,
            Need::Packing,
        ] {
            for is_here in [false, true] {
                assert_eq!(decide(need, RunMode::All, is_here), Verdict::Run);
                assert_ne!(decide(need, RunMode::Quick, is_here), Verdict::Run);
                assert_eq!(decide(need, RunMode::Here, is_here) == Verdict::Run, is_here);
            }
        }
    }

    #[test]
    fn what_is_left_out_is_named_with_the_remedy() {
        let verdict = decide(Need::MariaDb, RunMode::Here, false);
        let reason = "needs MariaDB; `cargo xtask test` installs it".to_owned();
        assert_eq!(verdict, Verdict::LeaveOut(reason));
    }
}
