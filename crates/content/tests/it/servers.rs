//! Database servers of our own: their own directory, their own port, gone
//! when dropped and gone when the test process dies.
//!
//! The programs are those of Debian's packages `mariadb-server` and
//! `postgresql`; `cargo xtask test` installs them.

use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

pub(crate) struct Server {
    kind: Kind,
    directory: TempDir,
    port: u16,
    process: Option<Child>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    MariaDb,
    Postgres,
}

impl Server {
    pub(crate) fn start(kind: Kind) -> Server {
        let directory = tempfile::Builder::new().prefix("gatelet-db-").tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut server = Server { kind, directory, port, process: None };
        server.initialise();
        server.resume();
        server
    }

    /// Where a database on this server is.
    pub(crate) fn url(&self, database: &str) -> String {
        match self.kind {
            Kind::MariaDb => format!("mysql://root@127.0.0.1:{}/{database}", self.port),
            Kind::Postgres => format!("postgres://gatelet@127.0.0.1:{}/{database}", self.port),
        }
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    fn initialise(&self) {
        let data = self.data();
        let command = match self.kind {
            Kind::MariaDb => {
                let mut command = Command::new(find("mariadb-install-db", "mariadb-server"));
                command.args(["--no-defaults", "--auth-root-authentication-method=normal"]);
                command.args(["--skip-test-db", "--user", &user()]);
                command.arg(format!("--datadir={}", data.display()));
                command
            }
            Kind::Postgres => {
                if is_root() {
                    let mut own = Command::new("chown");
                    own.arg("postgres").arg(self.directory.path());
                    assert!(own.status().unwrap().success());
                }
                let mut command = unprivileged(&find("initdb", "postgresql"));
                command.args(["-U", "gatelet", "-A", "trust", "--no-locale", "-E", "UTF8", "-N"]);
                command.arg("-D").arg(&data);
                command
            }
        };
        let mut command = command;
        let made = command.current_dir(self.directory.path()).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }

    /// Starts the server, or starts it again, and waits until it answers.
    pub(crate) fn resume(&mut self) {
        let directory = self.directory.path().to_owned();
        let mut command = match self.kind {
            Kind::MariaDb => {
                let mut command = Command::new("setpriv");
                command.args(["--pdeathsig", "KILL"]);
                command.arg(find("mariadbd", "mariadb-server")).arg("--no-defaults");
                command.arg(format!("--datadir={}", self.data().display()));
                command.arg(format!("--socket={}", directory.join("sock").display()));
                command.arg(format!("--port={}", self.port));
                command.args(["--bind-address=127.0.0.1", "--user", &user()]);
                command.args(["--innodb-flush-log-at-trx-commit=0", "--skip-log-bin"]);
                command
            }
            Kind::Postgres => {
                let mut command = unprivileged(&find("postgres", "postgresql"));
                command.arg("-D").arg(self.data()).arg("-k").arg(&directory);
                command.args(["-p", &self.port.to_string(), "-c", "fsync=off"]);
                command.args(["-c", "listen_addresses=127.0.0.1"]);
                command
            }
        };
        command.current_dir(&directory).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        self.process = Some(command.spawn().unwrap());
        let deadline = Instant::now() + Duration::from_secs(60);
        while !self.answers() {
            assert!(Instant::now() < deadline, "the database server does not start");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Whether the server would answer a question now.
    fn answers(&self) -> bool {
        match self.kind {
            // MariaDB greets whoever connects as soon as it is ready.
            Kind::MariaDb => self.connect().is_some_and(|mut stream| {
                let patience = Some(Duration::from_secs(5));
                stream.set_read_timeout(patience).unwrap();
                stream.read_exact(&mut [0]).is_ok()
            }),
            Kind::Postgres => {
                let mut ask = Command::new(find("pg_isready", "postgresql"));
                ask.args(["-q", "-h", "127.0.0.1", "-p", &self.port.to_string()]);
                ask.status().unwrap().success()
            }
        }
    }

    fn connect(&self) -> Option<TcpStream> {
        TcpStream::connect(("127.0.0.1", self.port)).ok()
    }

    /// Kills the server, as a crash would.
    pub(crate) fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
            // PostgreSQL's workers notice a little later that it is gone.
            while self.connect().is_some() {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

/// PostgreSQL refuses to run as root.
fn unprivileged(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    if is_root() {
        command.args(["--reuid", "postgres", "--regid", "postgres", "--init-groups"]);
    }
    command.args(["--pdeathsig", "KILL"]).arg(program);
    command
}

fn user() -> String {
    let id = Command::new("id").arg("-un").output().unwrap();
    String::from_utf8(id.stdout).unwrap().trim().to_owned()
}

fn is_root() -> bool {
    user() == "root"
}

/// A server program.
fn find(program: &str, package: &str) -> PathBuf {
    testkit::program::program(program).unwrap_or_else(|| {
        panic!("`{program}` is missing: run `cargo xtask test`, or install `{package}`")
    })
}
