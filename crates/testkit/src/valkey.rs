//! Starts real `redis-server` processes for tests, each with its own directory and port.
//! They end when dropped.
//!
//! A server that is started with [`Server::with_clock`] has a fake clock that only moves
//! when the test moves it, by `libfaketime`.

pub mod sentinel;

use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use crate::program::program;

/// The first time of the fake clock, in seconds since 1970.
const FAKE_CLOCK_START: u64 = 1_767_225_600;

/// A `redis-server`.
pub struct Server {
    directory: tempfile::TempDir,
    port: u16,
    options: Vec<String>,
    /// The time of the fake clock, in seconds since 1970.
    clock: Option<Mutex<u64>>,
    /// The certificate of the authority, for a server with TLS.
    authority: Option<PathBuf>,
    process: Mutex<Option<Child>>,
}

/// Returns a free port.
pub(crate) fn free_port() -> u16 {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    free.expect("there is a free port").port()
}

/// Returns the path of `libfaketime`.
pub fn clock() -> Option<PathBuf> {
    let places = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"];
    let library = |place: &str| Path::new(place).join("faketime/libfaketime.so.1");
    places.into_iter().map(library).find(|library| library.exists())
}

impl Server {
    /// Starts a server with the machine's clock and further options, such as
    /// `--requirepass x`.
    pub fn start(options: &[&str]) -> Server {
        Server::new(options, None)
    }

    /// Starts a server whose clock is moved by [`Server::advance`].
    pub fn with_clock(options: &[&str]) -> Server {
        Server::new(options, Some(Mutex::new(FAKE_CLOCK_START)))
    }

    fn new(options: &[&str], clock: Option<Mutex<u64>>) -> Server {
        let server = Server::prepare(options, clock);
        server.resume();
        server
    }

    fn prepare(options: &[&str], clock: Option<Mutex<u64>>) -> Server {
        let directory = tempfile::Builder::new().prefix("gatelet-valkey-").tempdir();
        let directory = directory.expect("a directory can be made");
        let options = options.iter().map(|&option| option.to_owned()).collect();
        let (port, authority, process) = (free_port(), None, Mutex::default());
        Server { directory, port, options, clock, authority, process }
    }

    /// Starts a server that only speaks TLS, with a certificate for `localhost`.
    pub fn with_tls(authority: &crate::tls::Authority) -> Server {
        let mut server = Server::prepare(&[], None);
        let (chain, key) = authority.sign("localhost", "the store");
        let file = |name: &str, text: &str| {
            let path = server.directory.path().join(name);
            std::fs::write(&path, text).expect("the directory can be written");
            path
        };
        let (chain, key) = (file("chain.pem", &chain), file("key.pem", &key));
        let signed_by = file("authority.pem", &authority.pem);
        let port = server.port;
        server.options = vec![
            format!("--port 0 --tls-port {port} --tls-auth-clients no"),
            format!("--tls-cert-file {} --tls-key-file {}", chain.display(), key.display()),
            format!("--tls-ca-cert-file {}", signed_by.display()),
        ];
        server.authority = Some(signed_by);
        server.resume();
        server
    }

    /// Starts servers that form a cluster.
    pub fn cluster<const N: usize>() -> [Server; N] {
        let nodes = [(); N].map(|()| {
            // The default cluster port, ten thousand higher, may not exist.
            let port = free_port();
            Server::start(&["--cluster-enabled yes", &format!("--cluster-port {port}")])
        });
        let places: Vec<String> = nodes.iter().map(|n| format!("127.0.0.1:{}", n.port)).collect();
        let mut words = vec!["--cluster", "create"];
        words.extend(places.iter().map(String::as_str));
        words.extend(["--cluster-replicas", "0", "--cluster-yes"]);
        let made = nodes[0].cli(&words).unwrap_or_default();
        assert!(made.contains("All 16384 slots covered"), "{made}");
        for node in &nodes {
            let is_up = || node.cli(&["CLUSTER", "INFO"]).is_some_and(|i| i.contains("state:ok"));
            assert!(wait_until(is_up), "every node knows the cluster within ten seconds");
        }
        nodes
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn url(&self) -> String {
        format!("valkey://127.0.0.1:{}", self.port)
    }

    /// Starts or restarts it, and waits until it answers.
    pub fn resume(&self) {
        self.write_clock();
        let program = program("redis-server").expect("redis-server is there: `cargo xtask test`");
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).arg(program);
        command.current_dir(self.directory.path()).args(["--port", &self.port.to_string()]);
        command.args(["--save", "", "--appendonly", "no", "--bind", "127.0.0.1"]);
        // A replica need not wait for others that might come.
        command.args(["--repl-diskless-sync-delay", "0"]);
        command.args(self.options.iter().flat_map(|option| option.split(' ')));
        if self.clock.is_some() {
            let library = clock().expect("libfaketime is there: `cargo xtask test`");
            // The allocator of Debian's server uses the clock before libfaketime is ready;
            // that of the C library does not.
            let preload = format!("{}:libc.so.6", library.display());
            command.env("LD_PRELOAD", preload).env("FAKETIME_NO_CACHE", "1");
            command.env("FAKETIME_TIMESTAMP_FILE", self.directory.path().join("clock"));
            command.env("DONT_FAKE_MONOTONIC", "1").env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
            command.env("TZ", "UTC");
        }
        let started = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = started.spawn().expect("redis-server starts");
        *self.process.lock().expect("no test panicked here") = Some(child);
        let is_up = wait_until(|| self.cli(&["PING"]).is_some_and(|said| !said.is_empty()));
        assert!(is_up, "redis-server answers within ten seconds");
    }

    /// Kills it without warning.
    pub fn kill(&self) {
        if let Some(mut child) = self.process.lock().expect("no test panicked here").take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Sends a signal, such as `STOP` and `CONT`: to clients a stopped server looks like a
    /// broken network.
    pub fn signal(&self, name: &str) {
        let process = self.process.lock().expect("no test panicked here");
        let id = process.as_ref().expect("it runs").id().to_string();
        let sent = Command::new("kill").args([&format!("-{name}"), &id]).status();
        assert!(sent.is_ok_and(|sent| sent.success()), "the server takes {name}");
    }

    /// Moves the fake clock forward.
    pub fn advance(&self, by: Duration) {
        let clock = self.clock.as_ref().expect("started with a clock");
        *clock.lock().expect("no test panicked here") += by.as_secs();
        self.write_clock();
    }

    fn write_clock(&self) {
        let Some(clock) = &self.clock else { return };
        let seconds = *clock.lock().expect("no test panicked here");
        let (days, rest) =
            ((seconds - FAKE_CLOCK_START) / 86_400, (seconds - FAKE_CLOCK_START) % 86_400);
        let time = format!("{:02}:{:02}:{:02}", rest / 3600, rest / 60 % 60, rest % 60);
        let (fresh, file) =
            (self.directory.path().join("next"), self.directory.path().join("clock"));
        let written = std::fs::File::create(&fresh)
            .and_then(|mut file| write!(file, "2026-01-{:02} {time}", days + 1))
            .and_then(|()| std::fs::rename(&fresh, &file));
        written.expect("the clock can be set");
    }

    /// Waits until its replica has what was written so far. (`WAIT` waits for what its own
    /// client wrote.)
    pub fn wait_for_replica(&self) {
        let number = |text: &str, key: &str| {
            let (_, rest) = text.split_once(key)?;
            rest.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u64>().ok()
        };
        let info = || self.cli(&["INFO", "replication"]).unwrap_or_default();
        let written = number(&info(), "master_repl_offset:").expect("a server has an offset");
        let has_it = || {
            let info = info();
            let replica = info.lines().find(|line| line.starts_with("slave0:"));
            let replica = replica.filter(|line| line.contains("state=online"));
            replica.and_then(|line| number(line, "offset=")).is_some_and(|has| written <= has)
        };
        assert!(wait_until(has_it), "the replica has everything within ten seconds");
    }

    /// Returns the output of `redis-cli` for a command; `None` when it fails.
    pub fn cli(&self, words: &[&str]) -> Option<String> {
        let mut command = Command::new(program("redis-cli")?);
        command.args(["-p", &self.port.to_string()]);
        if let Some(authority) = &self.authority {
            command.args(["-h", "localhost", "--tls", "--cacert"]).arg(authority);
        }
        let said = command.args(words).output().ok()?;
        let text = String::from_utf8_lossy(&said.stdout).trim().to_owned();
        said.status.success().then_some(text)
    }
}

/// Waits up to ten seconds for a condition, and returns whether it came true.
pub(crate) fn wait_until(is_so: impl Fn() -> bool) -> bool {
    (0..400).any(|_| {
        let is_so = is_so();
        if !is_so {
            std::thread::sleep(Duration::from_millis(25));
        }
        is_so
    })
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}
