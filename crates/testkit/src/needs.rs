//! What some tests need beside Rust, and what happens when it is missing.
//!
//! A test that needs more says so in its first line with [`needs!`](crate::needs).
//! `cargo xtask test` sets `GATELET_TESTS=all`: there what is missing is an error.
//! `cargo xtask test --quick` sets `GATELET_TESTS=quick`: there such tests are left
//! out even when they could run. Without the variable, as in `cargo test -p X`,
//! they run when they can. Each test that is left out says so on stderr, past the
//! capture of the test harness, which would hide it, and adds its reason to the
//! file that `GATELET_LEFT_OUT` names, if it names one.

use std::io::Write;
use std::path::PathBuf;

use crate::program::program;

/// The server that speaks S3, below the directory of tools.
pub(crate) const OBJECT_STORE: &str = "s3/bin/moto_server";

/// What a test may need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Node, Python, and real MCP servers and clients, in `GATELET_TOOLS`.
    Tools,
    /// MariaDB.
    MariaDb,
    /// PostgreSQL.
    Postgres,
    /// Redis or Valkey, and `libfaketime`, by which its clock is moved.
    Valkey,
    /// The same, and nginx in front of several gatelets.
    Nginx,
    /// A server that speaks S3, in `GATELET_TOOLS`, and what a store needs.
    ObjectStore,
    /// `dpkg`, of Debian and its kin.
    Dpkg,
    /// Prometheus and `promtool`.
    Prometheus,
    /// A keyring for a desktop session: `dbus-run-session`, GNOME's daemon, `secret-tool`.
    Keyring,
    /// `systemd-analyze`, which judges units.
    Systemd,
}

/// How a test run treats tests that need more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// They run, and fail when something is missing.
    All,
    /// They are left out.
    Quick,
    /// They run when they can.
    Here,
}

/// What becomes of one test.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Run,
    LeaveOut(String),
}

/// Ends a test that needs what is not here, and says so.
#[macro_export]
macro_rules! needs {
    ($need:ident) => {
        if $crate::needs::is_left_out($crate::needs::Need::$need) {
            return;
        }
    };
}

/// Whether the test that asks is to end here. Says so on stderr if it is.
#[expect(clippy::disallowed_methods, reason = "the test command sets this")]
pub fn is_left_out(need: Need) -> bool {
    let mode = match std::env::var("GATELET_TESTS").as_deref() {
        Ok("all") => Mode::All,
        Ok("quick") => Mode::Quick,
        _ => Mode::Here,
    };
    match judge(need, mode, is_here(need)) {
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

fn judge(need: Need, mode: Mode, is_here: bool) -> Verdict {
    let name = match need {
        Need::Tools => "real servers and clients (GATELET_TOOLS)",
        Need::MariaDb => "MariaDB",
        Need::Postgres => "PostgreSQL",
        Need::Valkey => "redis-server and faketime",
        Need::Nginx => "redis-server and nginx",
        Need::ObjectStore => "redis-server and moto_server (GATELET_TOOLS)",
        Need::Dpkg => "dpkg",
        Need::Prometheus => "Prometheus",
        Need::Keyring => "gnome-keyring, secret-tool and dbus-run-session",
        Need::Systemd => "systemd-analyze",
    };
    match mode {
        // What is missing is reported by whoever looks for it.
        Mode::All => Verdict::Run,
        Mode::Here if is_here => Verdict::Run,
        Mode::Here => Verdict::LeaveOut(format!("needs {name}; `cargo xtask test` installs it")),
        Mode::Quick => Verdict::LeaveOut(format!("needs {name}; not in a quick run")),
    }
}

fn is_here(need: Need) -> bool {
    match need {
        Need::Tools => tools().is_some_and(|place| place.is_dir()),
        Need::MariaDb => program("mariadbd").is_some(),
        Need::Postgres => program("initdb").is_some(),
        Need::Valkey => program("redis-server").is_some() && crate::valkey::clock().is_some(),
        Need::Nginx => is_here(Need::Valkey) && program("nginx").is_some(),
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
    }
}

/// The directory that `cargo xtask test` fills, if one is named.
#[expect(clippy::disallowed_methods, reason = "the test command says where the tools are")]
pub fn tools() -> Option<PathBuf> {
    std::env::var_os("GATELET_TOOLS").map(PathBuf::from)
}

/// A path below the directory of tools.
///
/// # Panics
///
/// When it is not there.
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
            Need::ObjectStore,
            Need::Dpkg,
            Need::Prometheus,
            Need::Keyring,
            Need::Systemd,
        ] {
            for is_here in [false, true] {
                assert_eq!(judge(need, Mode::All, is_here), Verdict::Run);
                assert_ne!(judge(need, Mode::Quick, is_here), Verdict::Run);
                assert_eq!(judge(need, Mode::Here, is_here) == Verdict::Run, is_here);
            }
        }
    }

    #[test]
    fn what_is_left_out_is_named_with_the_remedy() {
        let verdict = judge(Need::MariaDb, Mode::Here, false);
        let reason = "needs MariaDB; `cargo xtask test` installs it".to_owned();
        assert_eq!(verdict, Verdict::LeaveOut(reason));
    }
}
