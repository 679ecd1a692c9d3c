//! The shell beside a gate that runs for the same configuration.

use serde_json::json;

use crate::kit::{Home, Pipe, Served, eventually, program, shell};

/// An upstream that leaves a line in `starts` whenever it is started.
fn counted(home: &Home, label: &str, more: &str) -> String {
    let starts = home.path().join("starts");
    let code = format!(
        "open({starts:?}, 'a').write('{label}\\n')\n{}",
        program("say(id, {\"content\": [{\"type\": \"text\", \"text\": str(os.getpid())}]})")
    );
    let args = json!(["-c", code]);
    format!("[[upstream]]\nlabel = {label:?}\ncommand = \"python3\"\nargs = {args}\n{more}\n")
}

fn n_starts(home: &Home) -> usize {
    std::fs::read_to_string(home.path().join("starts")).unwrap_or_default().lines().count()
}

#[test]
fn the_shell_asks_the_gate_that_runs_and_starts_nothing_twice() {
    let home = Home::new();
    home.write("gatelet.toml", &counted(&home, "one", ""));
    let mut pipe = Pipe::open(&home);
    let first = pipe.call("one.act", &json!({}));
    assert_eq!(n_starts(&home), 1);
    let called = shell(&home, &["call", "one.act", "--text"]);
    assert_eq!(called.code, 0, "{called:?}");
    assert_eq!(called.out.trim(), first.trim(), "the very same process answers");
    assert!(shell(&home, &["help", "one"]).out.contains("act"));
    let rows = shell(&home, &["upstreams"]).json();
    assert_eq!(rows[0]["state"], "up", "{rows}");
    assert_eq!(shell(&home, &["status"]).json()[0]["label"], "one");
    for deed in ["grant", "show", "revoke", "grant"] {
        let done = shell(&home, &["trust", deed, "One.act"]);
        assert_eq!(done.code, 0, "{done:?}");
    }
    assert_eq!(n_starts(&home), 1);

    // Another configuration is another gate's business.
    home.write("other.toml", &counted(&home, "two", ""));
    let other = shell(&home, &["call", "two.act", "--config", "other.toml"]);
    assert_eq!(other.code, 0, "{other:?}");
    assert_eq!(n_starts(&home), 2);

    let restarted = shell(&home, &["restart", "ONE"]);
    assert_eq!(restarted.code, 0, "{restarted:?}");
    eventually("it is another process", || {
        let called = shell(&home, &["call", "one.act", "--text"]);
        called.code == 0 && called.out.trim() != first.trim()
    });
    assert_eq!(shell(&home, &["restart", "nobody"]).code, 2);

    assert!(pipe.close().success());
    let gone = shell(&home, &["status"]);
    assert_eq!(gone.code, 3, "{gone:?}");
    assert!(gone.err.contains("gatelet serve"), "{gone:?}");
    let sockets = std::fs::read_dir(home.path().join("state")).unwrap().filter_map(Result::ok);
    let left = sockets.filter(|entry| entry.path().extension().is_some_and(|e| e == "sock"));
    assert_eq!(left.count(), 0, "the socket is taken away");
}

#[test]
fn the_socket_is_its_owners_alone_and_the_log_is_kept_for_them() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    home.write("gatelet.toml", &counted(&home, "one", "[builtin]\ntools = true\n"));
    let served = Served::start(&home);
    let entries = std::fs::read_dir(home.path().join("state")).unwrap().filter_map(Result::ok);
    let socket = entries
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|e| e == "sock"));
    let mode = std::fs::metadata(socket.expect("a socket")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    eventually("what came up is counted once", || {
        shell(&home, &["logs", "--text"]).out.contains("upstreams ready")
    });
    let logs = shell(&home, &["logs"]).json();
    let ready = logs
        .as_array()
        .unwrap()
        .iter()
        .filter(|line| line.to_string().contains("6 of 6 upstreams ready"));
    assert_eq!(ready.count(), 1, "{logs}");
    assert!(served.terminate().success());
}

#[test]
fn a_socket_that_a_killed_gate_left_is_in_nobodys_way() {
    let home = Home::with("[builtin]\ntools = true\n");
    let pipe = Pipe::open(&home);
    crate::kit::signal(pipe.id(), "KILL");
    drop(pipe);
    assert_eq!(shell(&home, &["call", "time.now"]).code, 0);
    let mut pipe = Pipe::open(&home);
    assert!(pipe.call("time.now", &json!({})).contains("UTC"));
    assert_eq!(shell(&home, &["status"]).code, 0);
}
