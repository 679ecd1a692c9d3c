//! Programs that may do what their sandbox allows, and nothing else.

use std::net::TcpListener;

use serde_json::{Value, json};

use crate::kit::{Home, node, npm_server, program, shell};

/// The interpreter itself, not a script that looks for it.
fn python() -> String {
    let code = "import os, sys; print(os.path.realpath(sys.executable))";
    let output = std::process::Command::new("python3").args(["-c", code]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A server whose `act` tries everything and tells how each went.
fn trying(home: &Home, port: u16) -> String {
    let attempts = format!(
        r#"
import json, os, socket, subprocess
HOME, PORT = {home:?}, {port}
def connect(family, address):
    s = socket.socket(family); s.settimeout(5); s.connect(address); s.close()
def attempts():
    told = {{}}
    def go(name, act):
        try:
            act(); told[name] = "ok"
        except Exception as error:
            told[name] = type(error).__name__
    at = lambda path: os.path.join(HOME, path)
    go("read inside", lambda: open(at("in/a.txt")).read())
    go("read outside", lambda: open(at("secret.txt")).read())
    go("read by dots", lambda: open(at("in/../secret.txt")).read())
    go("read by link", lambda: open(at("in/link")).read())
    go("list outside", lambda: os.listdir(HOME))
    go("write inside", lambda: open(at("out/b.txt"), "w").write("x"))
    go("write where it reads", lambda: open(at("in/b.txt"), "w").write("x"))
    go("write outside", lambda: open(at("b.txt"), "w").write("x"))
    go("truncate outside", lambda: os.truncate(at("secret.txt"), 0))
    go("link in", lambda: os.link(at("secret.txt"), at("out/hard")))
    go("move out", lambda: os.rename(at("out/b.txt"), at("moved.txt")))
    go("remove outside", lambda: os.remove(at("secret.txt")))
    go("child reads outside", lambda: subprocess.run(["cat", at("secret.txt")], check=True, capture_output=True))
    go("parent's environment", lambda: open("/proc/%d/environ" % os.getppid()).read())
    go("shadow", lambda: open("/etc/shadow").read())
    go("tcp", lambda: connect(socket.AF_INET, ("127.0.0.1", PORT)))
    go("udp", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    go("local socket", lambda: socket.socket(socket.AF_UNIX))
    return told
"#,
        home = home.path().display().to_string(),
    );
    let deed = "say(id, {\"content\": [{\"type\": \"text\", \"text\": json.dumps(attempts())}]})";
    format!("{attempts}\n{}", program(deed))
}

fn tried(home: &Home, sandbox: &str) -> Value {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let code = trying(home, listener.local_addr().unwrap().port());
    let args = json!(["-c", code]);
    let python = python();
    home.write(
        "gatelet.toml",
        &format!("[[upstream]]\nlabel = \"one\"\ncommand = {python:?}\nargs = {args}\n{sandbox}\n"),
    );
    home.write("in/a.txt", "inside");
    home.write("out/.keep", "");
    home.write("secret.txt", "secret");
    let link = home.path().join("in/link");
    if !link.exists() {
        std::os::unix::fs::symlink(home.path().join("secret.txt"), link).unwrap();
    }
    let called = shell(home, &["call", "one.act", "--text"]);
    assert_eq!(called.code, 0, "{called:?}");
    serde_json::from_str(called.out.trim()).unwrap_or_else(|_| panic!("{called:?}"))
}

/// Whether this kernel can confine programs; where it cannot, they do not start.
pub(crate) fn is_supported() -> bool {
    std::path::Path::new("/proc/sys/kernel/seccomp").exists()
        && std::fs::read_to_string("/sys/kernel/security/lsm")
            .map_or(true, |lsm| lsm.contains("landlock"))
}

#[test]
fn a_sandboxed_program_reaches_what_it_may_and_nothing_else() {
    if !is_supported() {
        return;
    }
    let home = Home::new();
    let told = tried(&home, "sandbox = { read = [\"in\"], write = [\"out\"], network = \"none\" }");
    let refused: Vec<&String> = told
        .as_object()
        .unwrap()
        .iter()
        .filter(|(_, how)| *how != "ok")
        .map(|(name, _)| name)
        .collect();
    let allowed: Vec<&String> = told
        .as_object()
        .unwrap()
        .iter()
        .filter(|(_, how)| *how == "ok")
        .map(|(name, _)| name)
        .collect();
    assert_eq!(allowed, ["read inside", "write inside"], "{told}");
    assert_eq!(refused.len(), 16, "{told}");
    assert_eq!(home.read("secret.txt"), "secret");
    // Without one everything goes, so it is the sandbox that refuses.
    let free = tried(&home, "");
    for name in ["read outside", "read by link", "write outside", "tcp", "udp", "local socket"] {
        assert_eq!(free[name], "ok", "{name}: {free}");
    }
}

#[test]
fn the_network_is_open_when_the_sandbox_says_so() {
    if !is_supported() {
        return;
    }
    let home = Home::new();
    let told = tried(&home, "sandbox = { network = \"all\", files = 64, memory = \"1GB\" }");
    assert_eq!(
        (&told["tcp"], &told["read outside"]),
        (&json!("ok"), &json!("PermissionError")),
        "{told}"
    );
    assert_eq!(told["local socket"], "PermissionError", "it leads to what nothing confines");
}

/// Whether a user may make namespaces here, by what the kernel says of it.
fn has_namespaces() -> bool {
    std::process::Command::new("unshare")
        .args(["--user", "--net", "true"])
        .status()
        .is_ok_and(|status| status.success())
}

/// A server whose `act` tells whom it reaches on loopback.
fn reaching(listed: u16, other: u16) -> String {
    let attempts = format!(
        r#"
import json, os, socket, subprocess, threading
def say_hello(family, port):
    s = socket.socket(family); s.settimeout(20)
    s.connect(("127.0.0.1" if family == socket.AF_INET else "::1", port))
    s.sendall(b"hello"); s.shutdown(socket.SHUT_WR)
    heard = b""
    while part := s.recv(100): heard += part
    return heard.decode()
def own():
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=lambda: listener.accept()[0].sendall(b"own"), daemon=True).start()
    return socket.create_connection(listener.getsockname(), 20).recv(10).decode()
def attempts():
    told = {{}}
    def go(name, act):
        try: told[name] = act()
        except Exception as error: told[name] = type(error).__name__
    go("own", own)
    go("listed", lambda: say_hello(socket.AF_INET, {listed}))
    go("other", lambda: say_hello(socket.AF_INET, {other}))
    go("outside", lambda: socket.create_connection(("192.0.2.1", 80), 20) and "reached")
    go("datagram", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("192.0.2.1", 53)))
    go("local socket", lambda: socket.socket(socket.AF_UNIX) and "made")
    go("interfaces", lambda: [name for _, name in socket.if_nameindex()])
    go("user", lambda: os.getuid())
    return told
"#
    );
    let deed = "say(id, {\"content\": [{\"type\": \"text\", \"text\": json.dumps(attempts())}]})";
    format!("{attempts}\n{}", program(deed))
}

/// Answers every connection with what was said, backwards.
fn reversing() -> (u16, std::thread::JoinHandle<()>) {
    use std::io::{Read, Write};
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let answers = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut heard = String::new();
        stream.read_to_string(&mut heard).unwrap();
        let _ = stream.write_all(heard.chars().rev().collect::<String>().as_bytes());
    });
    (port, answers)
}

#[test]
fn a_program_with_loopback_reaches_itself_and_the_listed_ports_and_nobody_else() {
    if !is_supported() || !has_namespaces() {
        return;
    }
    let home = Home::new();
    let (listed, answers) = reversing();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let code = reaching(listed, other.local_addr().unwrap().port());
    let (args, python) = (json!(["-c", code]), python());
    home.write(
        "gatelet.toml",
        &format!(
            "[[upstream]]\nlabel = \"one\"\ncommand = {python:?}\nargs = {args}\n\
             sandbox = {{ network = \"loopback\", ports = [{listed}] }}\n"
        ),
    );
    let called = shell(&home, &["call", "one.act", "--text"]);
    let told: Value =
        serde_json::from_str(called.out.trim()).unwrap_or_else(|_| panic!("{called:?}"));
    assert_eq!((&told["own"], &told["listed"]), (&json!("own"), &json!("olleh")), "{told}");
    assert_eq!(told["other"], "ConnectionRefusedError", "{told}");
    assert_eq!(
        (&told["outside"], &told["datagram"]),
        (&json!("OSError"), &json!("OSError")),
        "{told}"
    );
    assert_eq!(told["local socket"], "PermissionError", "{told}");
    assert_eq!(told["interfaces"], json!(["lo"]), "{told}");
    assert_eq!(told["user"], rustix::process::getuid().as_raw(), "{told}");
    answers.join().unwrap();

    drop(other);
}

#[test]
fn what_cannot_be_enforced_is_not_started_and_says_why() {
    let home = Home::new();
    let python = python();
    let code = program("say(id, {})");
    let entry = |sandbox: &str| {
        let args = json!(["-c", code]);
        format!(
            "[[upstream]]\nlabel = \"one\"\ncommand = {python:?}\nargs = {args}\nsandbox = {sandbox}\n"
        )
    };
    for (sandbox, said) in [
        ("{ read = [\"not-there\"] }", "not-there"),
        ("{ write = [\"../../../not/there\"] }", "not/there"),
    ] {
        home.write("gatelet.toml", &entry(sandbox));
        let rows = shell(&home, &["upstreams"]).json();
        assert!(
            rows[0]["state"] == "down" && rows[0]["reason"].as_str().unwrap().contains(said),
            "{sandbox}: {rows}"
        );
    }
    for (sandbox, said) in [
        ("\"auto\"", "write a table"),
        ("\"nonsense\"", "\\\"auto\\\""),
        ("{ memory = \"much\" }", "no amount of memory"),
        ("{ reed = [\"x\"] }", "unknown key"),
        ("{ network = \"some\" }", "must be"),
        ("{ ports = [80] }", "network = \\\"loopback\\\""),
        ("{ network = \"loopback\", ports = [0] }", "0 is no port"),
        ("{ network = \"loopback\", ports = [70000] }", "ports"),
    ] {
        home.write("gatelet.toml", &entry(sandbox));
        let check = shell(&home, &["config", "check"]);
        let said = said.replace('\\', "");
        assert!(check.code == 2 && check.err.contains(&said), "{sandbox}: {check:?}");
    }
    home.write(
        "gatelet.toml",
        "[[upstream]]\nlabel = \"one\"\nurl = \"http://127.0.0.1:9\"\nsandbox = \"auto\"\n",
    );
    assert_eq!(shell(&home, &["config", "check"]).code, 2);
}

#[test]
fn a_refusal_by_the_sandbox_is_told_as_such() {
    if !is_supported() {
        return;
    }
    let home = Home::new();
    home.write("secret.txt", "secret");
    let python = python();
    let deed = r#"
        try: open("secret.txt").read()
        except Exception as error: say(id, {"content": [{"type": "text", "text": str(error)}], "isError": True})"#;
    let args = json!(["-c", program(deed)]);
    home.write(
        "gatelet.toml",
        &format!(
            "[[upstream]]\nlabel = \"one\"\ncommand = {python:?}\nargs = {args}\nsandbox = {{}}\n"
        ),
    );
    let called = shell(&home, &["call", "one.act", "--text"]);
    assert!(
        called.out.contains("Permission denied") && called.out.contains("sandbox"),
        "{called:?}"
    );
    let args = json!(["secret.txt"]);
    home.write(
        "gatelet.toml",
        &format!(
            "[[upstream]]\nlabel = \"one\"\ncommand = {python:?}\nargs = {args}\nsandbox = {{}}\n"
        ),
    );
    let report = shell(&home, &["doctor"]).json();
    let codes =
        report["findings"].as_array().unwrap().iter().map(|finding| finding["code"].clone());
    assert!(codes.clone().any(|code| code == "upstream-sandboxed"), "{report}");
}

#[test]
fn a_real_npm_server_works_in_the_sandbox_that_gatelet_knows_for_it() {
    testkit::needs!(Tools);
    if !is_supported() {
        return;
    }
    let home = Home::new();
    home.write("data/hello.txt", "hello from a file");
    let root = std::fs::canonicalize(home.path()).unwrap().join("data").display().to_string();
    let args = json!([npm_server("server-filesystem"), root]);
    let node = node();
    home.write("gatelet.toml", &format!("[[upstream]]\nlabel = \"files\"\ncommand = {node:?}\nargs = {args}\nsandbox = \"auto\"\nstart_timeout = \"3m\"\n"));
    let called = shell(
        &home,
        &["call", "files.read_text_file", &format!("path={root}/hello.txt"), "--text"],
    );
    assert!(called.out.contains("hello from a file"), "{called:?}");
}
