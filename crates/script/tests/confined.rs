//! What a worker cannot do once it has confined itself.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "what fails here is a failed test")]
#![expect(clippy::disallowed_methods, reason = "a probe tries what is forbidden")]

use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::process::{Command, exit};

/// Names what the probe tries.
const DEED: &str = "SCRIPT_PROBE";

const MEMORY: u64 = 64 << 20;

/// The exit status of a probe that was refused, and of one that was not.
const REFUSED: i32 = 40;
const DONE: i32 = 41;

/// Runs in a process of its own, which confines itself as a worker does.
#[test]
#[ignore = "the other test starts it"]
fn probe() {
    let deed = std::env::var(DEED).unwrap();
    let file = std::env::temp_dir().join(format!("probe-{}", std::process::id()));
    let (one, _other) = UnixStream::pair().unwrap();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    if deed != "unconfined" {
        sandbox::isolate(MEMORY).unwrap();
    }
    let done = match deed.as_str() {
        "read a file" => std::fs::read("/etc/hostname").is_ok(),
        "read a process" => std::fs::read("/proc/self/environ").is_ok(),
        "write a file" => std::fs::write(&file, "x").is_ok(),
        "list a directory" => std::fs::read_dir("/").is_ok(),
        "listen" => TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).is_ok(),
        "connect" => TcpStream::connect(address).is_ok(),
        "open a socket" => UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).is_ok(),
        "make a pair of sockets" => UnixStream::pair().is_ok(),
        "copy a descriptor" => one.try_clone().is_ok(),
        "start a program" => Command::new("/bin/true").status().is_ok(),
        "start a thread" => std::thread::Builder::new().spawn(|| {}).is_ok(),
        // The probe notices what is not refused.
        "unconfined" => UnixStream::pair().is_ok() && TcpStream::connect(address).is_ok(),
        other => panic!("no deed is called {other}"),
    };
    exit(if done { DONE } else { REFUSED });
}

fn try_to(deed: &str) -> Option<i32> {
    let probe = ["--exact", "probe", "--ignored", "--test-threads=1"];
    let program = std::env::current_exe().unwrap();
    Command::new(program).args(probe).env(DEED, deed).output().unwrap().status.code()
}

#[test]
fn a_confined_process_opens_no_file_no_socket_and_no_program() {
    assert_eq!(try_to("unconfined"), Some(DONE));
    for deed in [
        "read a file",
        "read a process",
        "write a file",
        "list a directory",
        "listen",
        "connect",
        "open a socket",
        "make a pair of sockets",
        "copy a descriptor",
        "start a program",
        "start a thread",
    ] {
        assert_eq!(try_to(deed), Some(REFUSED), "{deed}");
    }
}
