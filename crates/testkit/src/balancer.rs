//! Starts real load balancers in front of replicas, with the configuration that
//! `examples/cluster` shows: one request to each replica in turn. They end when dropped.

use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::valkey::{free_port, wait_until};

/// A running load balancer.
pub struct Balancer {
    child: Child,
    address: SocketAddr,
    _directory: tempfile::TempDir,
}

const NGINX: &str = include_str!("../../../examples/cluster/nginx.conf");
const HAPROXY: &str = include_str!("../../../examples/cluster/haproxy.cfg");

impl Balancer {
    /// Starts nginx in front of replicas at these addresses.
    pub fn nginx(replicas: &[&str]) -> Balancer {
        Balancer::start(|place, address| {
            let directory = place.display();
            let kinds = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
            let places: String =
                kinds.iter().map(|kind| format!("{kind}_temp_path {directory}/{kind}; ")).collect();
            let shown = with_replicas(NGINX, replicas)
                .replace("listen 8080", &format!("listen {address}"))
                .replace("fail_timeout=5s", "fail_timeout=1s")
                .replacen("http {", &format!("http {{ access_log off; {places}"), 1);
            let head = format!("daemon off; pid {directory}/pid; error_log {directory}/log;\n");
            let file = place.join("nginx.conf");
            std::fs::write(&file, head + &shown).expect("the directory can be written");
            let mut command = Command::new("nginx");
            command.arg("-p").arg(place).arg("-c").arg(file);
            command
        })
    }

    /// Starts HAProxy in front of replicas at these addresses.
    pub fn haproxy(replicas: &[&str]) -> Balancer {
        Balancer::start(|place, address| {
            let shown = with_replicas(HAPROXY, replicas);
            let shown = shown.replace("bind :8080", &format!("bind {address}"));
            let file = place.join("haproxy.cfg");
            std::fs::write(&file, shown).expect("the directory can be written");
            let mut command = Command::new("haproxy");
            command.arg("-db").arg("-f").arg(file);
            command
        })
    }

    /// Returns the URL at which it serves MCP.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    fn start(configure: impl FnOnce(&Path, SocketAddr) -> Command) -> Balancer {
        let directory = tempfile::Builder::new().prefix("gatelet-balancer-").tempdir();
        let directory = directory.expect("a directory can be made");
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let balancer = configure(directory.path(), address);
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM"]).arg(balancer.get_program()).args(balancer.get_args());
        let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().expect("the balancer is there: `cargo xtask test`");
        let listens = wait_until(|| TcpStream::connect(address).is_ok());
        assert!(listens, "the balancer listens within ten seconds");
        Balancer { child, address, _directory: directory }
    }
}

/// Puts the addresses of replicas in the place of those that an example shows.
fn with_replicas(shown: &str, replicas: &[&str]) -> String {
    assert_eq!(shown.matches(":4747").count(), replicas.len(), "as many as the example has");
    replicas.iter().zip(1..).fold(shown.to_owned(), |shown, (address, n)| {
        shown.replace(&format!("gate-{n}:4747"), address)
    })
}

impl Drop for Balancer {
    fn drop(&mut self) {
        // Asked to end, because nginx ends its workers only then.
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        let _ = self.child.wait();
    }
}
