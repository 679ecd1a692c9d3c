//! Starts a Redis Sentinel for a test, which promotes a replica when the primary dies.

use std::process::{Child, Command, Stdio};

use super::{Server, free_port, wait_until};
use crate::program::program;

/// A Sentinel that monitors one primary, under the name `main`.
pub struct Sentinel {
    _directory: tempfile::TempDir,
    port: u16,
    process: Child,
}

impl Sentinel {
    /// Starts it and waits until it knows the replica.
    pub fn start(primary: &Server) -> Sentinel {
        let directory = tempfile::tempdir().expect("a directory can be made");
        let port = free_port();
        // Sentinel writes its state into this file.
        let file = directory.path().join("sentinel.conf");
        let settings = format!(
            "port {port}\nbind 127.0.0.1\nsentinel monitor main 127.0.0.1 {} 1\n\
             sentinel down-after-milliseconds main 500\nsentinel failover-timeout main 5000\n",
            primary.port()
        );
        std::fs::write(&file, settings).expect("the directory can be written");
        let server = program("redis-server").expect("redis-server is there: `cargo xtask test`");
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).arg(server).arg(&file).arg("--sentinel");
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = quiet.spawn().expect("redis-server starts");
        let sentinel = Sentinel { _directory: directory, port, process };
        let knows = || sentinel.primary_property("num-slaves").as_deref() == Some("1");
        assert!(wait_until(knows), "Sentinel knows the replica within ten seconds");
        sentinel
    }

    pub fn url(&self) -> String {
        format!("valkey+sentinel://127.0.0.1:{}/main", self.port)
    }

    /// Returns a property of the primary.
    fn primary_property(&self, key: &str) -> Option<String> {
        let mut command = Command::new(program("redis-cli")?);
        command.args(["-p", &self.port.to_string(), "SENTINEL", "MASTER", "main"]);
        let said = command.output().ok()?;
        let text = String::from_utf8_lossy(&said.stdout).into_owned();
        text.lines().skip_while(|line| *line != key).nth(1).map(str::to_owned)
    }
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
