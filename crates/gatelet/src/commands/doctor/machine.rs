//! Collects the facts for `gatelet doctor` about the program, its files and the machine.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use doctor::machine::{Config, Facts, Service, State};
use mcp::revision::Revision;
use policy::trust::LedgerStore;

use crate::commands::{plain_secrets, service};
use crate::config_loader;
use crate::ledger_file;
use crate::paths::{self, Paths};
use crate::time::unix_seconds;
use config::{LoadError, edit};

/// Collects the facts. What cannot be found out is left out.
pub(super) fn facts(paths: &Paths, is_running: bool) -> Facts {
    let loaded = config_loader::load(paths);
    let listen = loaded.as_ref().ok().map(|loaded| loaded.config.serve.listen);
    let is_taken = |address: &std::net::SocketAddr| {
        let bound = TcpListener::bind(address);
        bound.is_err_and(|error| error.kind() == std::io::ErrorKind::AddrInUse)
    };
    let taken = listen.filter(|address| !is_running && is_taken(address));
    let state = paths.state_directory().ok();
    Facts {
        other_programs: other_programs(),
        config: paths.config_file().map(|file| config_facts(&file, &loaded)),
        state: state.as_deref().map(state_facts).unwrap_or_default(),
        service: Service {
            is_running,
            has_manager: is_running || service::is_possible(),
            address_taken: taken.map(|address| address.to_string()),
        },
        unenforceable: loaded.as_ref().ok().and_then(|loaded| unenforceable(&loaded.config)),
        free: state.as_deref().and_then(free),
        files: rustix::process::getrlimit(rustix::process::Resource::Nofile).current,
        clock: made_after().map(|made| (unix_seconds(), made)),
    }
}

/// Why the sandbox of some upstream cannot be enforced on this machine.
fn unenforceable(config: &config::Config) -> Option<String> {
    let support = sandbox::support();
    config.upstreams.iter().find_map(|upstream| match &upstream.sandbox {
        Some(config::Sandbox::Kernel(policy)) => {
            policy.check(support).err().map(|why| why.to_string())
        }
        Some(config::Sandbox::Container { .. }) | None => None,
    })
}

/// The program that a shell would start, if it is another one.
fn other_programs() -> Vec<String> {
    let own = std::env::current_exe().and_then(std::fs::canonicalize).ok();
    let first = paths::program("gatelet").and_then(|first| std::fs::canonicalize(first).ok());
    let other = first.filter(|first| Some(first) != own.as_ref());
    other.map(|other| other.display().to_string()).into_iter().collect()
}

fn config_facts(file: &Path, loaded: &Result<config::Loaded, LoadError>) -> Config {
    let shown = file.display().to_string();
    let plain =
        |text: &dyn std::fmt::Display| anstream::adapter::strip_str(&text.to_string()).to_string();
    // A file that could not be loaded is not opened here either.
    let text = loaded.is_ok().then(|| std::fs::read_to_string(file).unwrap_or_default());
    let entries = edit::upstreams(&shown, &text.unwrap_or_default()).unwrap_or_default();
    let warnings = loaded.as_ref().ok().and_then(|loaded| loaded.warnings.as_ref());
    Config {
        error: loaded.as_ref().err().map(|error| plain(error)),
        warnings: warnings.map(|warnings| plain(warnings)).into_iter().collect(),
        exposed: loaded.as_ref().ok().and_then(|loaded| loaded.config.exposure_problem(false)),
        mode: mode(file),
        n_plain_secrets: entries.iter().map(plain_secrets::count).sum(),
        file: shown,
    }
}

fn mode(path: &Path) -> Option<u32> {
    std::fs::metadata(path).ok().map(|about| about.permissions().mode())
}

fn state_facts(directory: &Path) -> State {
    let named = |name: &str| directory.join(name);
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let files = entries.map(|entry| entry.path());
    let mut keys: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|end| end == "key")).collect();
    keys.sort();
    let keys = keys.iter().filter_map(|key| Some((key.display().to_string(), mode(key)?)));
    // Reading would create a ledger that does not exist.
    let tampered = named("trust.json")
        .exists()
        .then(|| ledger_file::LedgerFile::at(directory).read().err())
        .flatten();
    State {
        unwritable: unwritable(directory),
        mode: mode(directory),
        keys: keys.collect(),
        tampered: tampered.map(|tampered| tampered.to_string()),
        stale_sockets: stale_sockets(directory),
        directory: directory.display().to_string(),
    }
}

fn unwritable(directory: &Path) -> Option<String> {
    let trial = directory.join(format!(".{:016x}.trial", rand::random::<u64>()));
    let made =
        store::file::create_private_dir(directory).and_then(|()| std::fs::write(&trial, b"trial"));
    let _ = std::fs::remove_file(&trial);
    made.err().map(|error| error.to_string())
}

/// The sockets of gatelet at which nobody listens.
fn stale_sockets(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let sockets = entries.map(|entry| entry.path()).filter(|path| is_socket(path));
    let is_dead = |path: &PathBuf| UnixStream::connect(path).is_err();
    sockets.filter(is_dead).map(|path| path.display().to_string()).collect()
}

/// Whether a path is named as the socket of gatelet is.
pub(super) fn is_socket(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("gate-") && name.ends_with(".sock")
}

/// The free bytes of the disk.
fn free(directory: &Path) -> Option<u64> {
    let about = rustix::fs::statvfs(directory).ok()?;
    Some(about.f_bavail.saturating_mul(about.f_frsize))
}

/// A moment before which this program was not made: the day of the newest revision of MCP with
/// sessions. The time of its file says nothing, as packages have times of their own.
fn made_after() -> Option<u64> {
    let day: jiff::civil::Date = Revision::LATEST_LEGACY.as_str().parse().ok()?;
    let midnight = day.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    u64::try_from(midnight.timestamp().as_second()).ok()
}
