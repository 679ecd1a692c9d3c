//! Stores of our own: a real `redis-server` with its own directory and port, gone
//! when dropped.
//!
//! One that is started with [`Server::with_clock`] goes by a clock that stands
//! still until it is moved: `libfaketime` is put between the server and the system.

pub mod sentinel;

use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use crate::program::program;

/// What the clock that stands still says first, in seconds since 1970.
const BEGINNING: u64 = 1_767_225_600;

/// A server.
pub struct Server {
    directory: tempfile::TempDir,
    port: u16,
    options: Vec<String>,
    clock: Option<Mutex<u64>>,
    /// Who signed its certificate, where it has one.
    authority: Option<PathBuf>,
    process: Mutex<Option<Child>>,
}

/// A port that nobody uses.
pub(crate) fn free_port() -> u16 {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    free.expect("there is a free port").port()
}

/// The library that gives a program another time.
pub fn clock() -> Option<PathBuf> {
    let places = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"];
    let library = |place: &str| Path::new(place).join("faketime/libfaketime.so.1");
    places.into_iter().map(library).find(|library| library.exists())
}

impl Server {
    /// A server by the machine's clock, with more options such as `--requirepass x`.
    pub fn start(options: &[&str]) -> Server {
        Server::new(options, None)
    }

    /// A server whose clock is moved by [`Server::advance`].
    pub fn with_clock(options: &[&str]) -> Server {
        Server::new(options, Some(Mutex::new(BEGINNING)))
    }

    fn new(options: &[&str], clock: Option<Mutex<u64>>) -> Server {
        let server = Server::made(options, clock);
        server.resume();
        server
    }

    fn made(options: &[&str], clock: Option<Mutex<u64>>) -> Server {
        let directory = tempfile::Builder::new().prefix("gatelet-valkey-").tempdir();
        let directory = directory.expect("a directory can be made");
        let options = options.iter().map(|&option| option.to_owned()).collect();
        let (port, authority, process) = (free_port(), None, Mutex::default());
        Server { directory, port, options, clock, authority, process }
    }

    /// A server that speaks nothing but TLS, with a certificate for `localhost`.
    pub fn with_tls(authority: &crate::tls::Authority) -> Server {
        let mut server = Server::made(&[], None);
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

    /// Servers that are one cluster, each with a part of the keys.
    pub fn cluster<const N: usize>() -> [Server; N] {
        let nodes = [(); N].map(|()| {
            // The port for the others would be ten thousand higher, which there may not be.
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
            assert!(until(is_up), "every node knows the cluster within ten seconds");
        }
        nodes
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn url(&self) -> String {
        format!("valkey://127.0.0.1:{}", self.port)
    }

    /// Starts it, or starts it again, and waits until it answers.
    pub fn resume(&self) {
        self.write_clock();
        let program = program("redis-server").expect("redis-server is there: `cargo xtask test`");
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).arg(program);
        command.current_dir(self.directory.path()).args(["--port", &self.port.to_string()]);
        command.args(["--save", "", "--appendonly", "no", "--bind", "127.0.0.1"]);
        command.args(self.options.iter().flat_map(|option| option.split(' ')));
        if self.clock.is_some() {
            let library = clock().expect("libfaketime is there: `cargo xtask test`");
            // The allocator of Debian's server asks for the time before the library
            // is ready; the one of the C library does not.
            let preload = format!("{}:libc.so.6", library.display());
            command.env("LD_PRELOAD", preload).env("FAKETIME_NO_CACHE", "1");
            command.env("FAKETIME_TIMESTAMP_FILE", self.directory.path().join("clock"));
            command.env("DONT_FAKE_MONOTONIC", "1").env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
            command.env("TZ", "UTC");
        }
        let started = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = started.spawn().expect("redis-server starts");
        *self.process.lock().expect("no test panicked here") = Some(child);
        let is_up = until(|| self.cli(&["PING"]).is_some_and(|said| !said.is_empty()));
        assert!(is_up, "redis-server answers within ten seconds");
    }

    /// Ends it as a machine that loses its power does.
    pub fn kill(&self) {
        if let Some(mut child) = self.process.lock().expect("no test panicked here").take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Stops it in the middle of whatever it does, or lets it go on: to everybody
    /// else it looks like a link that was cut.
    pub fn signal(&self, name: &str) {
        let process = self.process.lock().expect("no test panicked here");
        let id = process.as_ref().expect("it runs").id().to_string();
        let sent = Command::new("kill").args([&format!("-{name}"), &id]).status();
        assert!(sent.is_ok_and(|sent| sent.success()), "the server takes {name}");
    }

    /// Moves the clock.
    pub fn advance(&self, by: Duration) {
        let clock = self.clock.as_ref().expect("started with a clock");
        *clock.lock().expect("no test panicked here") += by.as_secs();
        self.write_clock();
    }

    fn write_clock(&self) {
        let Some(clock) = &self.clock else { return };
        let seconds = *clock.lock().expect("no test panicked here");
        let (days, rest) = ((seconds - BEGINNING) / 86_400, (seconds - BEGINNING) % 86_400);
        let time = format!("{:02}:{:02}:{:02}", rest / 3600, rest / 60 % 60, rest % 60);
        let (fresh, file) =
            (self.directory.path().join("next"), self.directory.path().join("clock"));
        let written = std::fs::File::create(&fresh)
            .and_then(|mut file| write!(file, "2026-01-{:02} {time}", days + 1))
            .and_then(|()| std::fs::rename(&fresh, &file));
        written.expect("the clock can be set");
    }

    /// What the server answers to a command on its own command line.
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

/// Whether something comes true within ten seconds.
pub(crate) fn until(is_so: impl Fn() -> bool) -> bool {
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
