//! What a slow, broken or dying upstream does to the others: nothing.

use std::path::Path;

use serde_json::json;

use crate::kit::{
    Home, Mark, Pipe, Served, eventually, npm_upstream, signal, text, tool, upstream,
};

fn shell_upstream(label: &str, script: &str) -> String {
    upstream(label, Path::new("/bin/sh"), &["-c", script])
}

#[test]
fn slow_and_broken_upstreams_delay_nobody() {
    let config = [
        "[builtin]\ntools = true\n\n".to_owned(),
        shell_upstream("silent", "sleep 600"),
        shell_upstream("babbler", "yes this is no message"),
        shell_upstream("quitter", "echo I give up >&2; exit 3"),
        "[[upstream]]\nlabel = \"secretive\"\ncommand = \"x\"\nargs = [\"${env:NO_SUCH_SECRET}\"]\n\n".to_owned(),
        "[[upstream]]\nlabel = \"unreachable\"\nurl = \"http://127.0.0.1:1/mcp\"\n".to_owned(),
    ]
    .concat();
    let home = Home::with(&config);
    let mark = Mark::new();
    let mut command = home.gatelet();
    command.args(["serve", "--stdio", "--log", "error"]);
    mark.put_on(&mut command);
    let mut pipe = Pipe::start(command);
    assert!(pipe.call("time.now", &json!({})).contains("UTC"));

    let mut help = String::new();
    let mut reason = |label: &str| {
        help = text(&pipe.verb("help", &json!({})));
        help.lines().find(|line| line.contains(label)).unwrap_or_default().to_owned()
    };
    eventually("the quitter's last words are told", || reason("quitter").contains("I give up"));
    let secretive = reason("secretive");
    assert!(secretive.contains("NO_SUCH_SECRET"), "{secretive}");
    eventually("the unreachable one is known to be", || reason("unreachable").contains("refused"));
    assert!(pipe.close().success());
    eventually("no child is left", || mark.processes().is_empty());
}

#[test]
fn a_program_that_writes_its_log_without_end_delays_nobody_and_fills_no_disk() {
    let config = "[builtin]\ntools = true\n\n".to_owned() + &shell_upstream("noisy", "yes >&2");
    let home = Home::with(&config);
    let log = std::fs::File::create(home.path().join("log")).unwrap();
    let mut command = home.gatelet();
    command.args(["serve", "--stdio"]).stderr(log);
    let mut pipe = Pipe::start_quiet(command);
    let n_lines = || home.read("log").lines().filter(|line| line.contains("noisy")).count();
    // It is answered while the program writes, and however much it has written.
    eventually("the program has written", || {
        assert!(pipe.call("time.now", &json!({})).contains("UTC"));
        0 < n_lines()
    });
    for _ in 0..100 {
        assert!(pipe.call("time.now", &json!({})).contains("UTC"));
    }
    assert!(pipe.close().success());
    let n_lines = n_lines();
    assert!(0 < n_lines && n_lines < 10_000, "{n_lines} lines in the log");
}

#[test]
fn a_pipe_that_is_told_to_end_asks_its_upstreams_to_end_too() {
    let script = "touch started; cat > /dev/null; touch asked; sleep 600";
    let home = Home::with(&shell_upstream("listener", &format!("cd \"$HOME\"; {script}")));
    let mut command = home.gatelet();
    command.args(["serve", "--stdio"]);
    let pipe = Pipe::start(command);
    eventually("it runs", || home.path().join("started").exists());
    signal(pipe.id(), "TERM");
    assert!(pipe.wait().success());
    assert!(home.path().join("asked").exists());
}

#[test]
fn nobody_outlives_a_gatelet_that_is_killed() {
    testkit::needs!(Tools);
    let config = npm_upstream("everything", "server-everything", &[])
        + &shell_upstream("stubborn", "trap '' TERM INT HUP; while :; do sleep 1; done")
        + &shell_upstream("parent", "sleep 600 & sleep 600");
    let home = Home::with(&config);
    let mark = Mark::new();
    let mut command = home.gatelet();
    command.args(["serve", "--stdio", "--log", "error"]);
    mark.put_on(&mut command);
    let mut pipe = Pipe::start(command);
    assert!(pipe.call("everything.echo", &json!({"message": "x"})).contains('x'));
    eventually("all of them run", || 4 <= mark.processes().len());
    pipe.kill();
    eventually("the children and theirs are gone too", || mark.processes().is_empty());
}

#[test]
fn sigterm_ends_everything_in_order() {
    testkit::needs!(Tools);
    let config = npm_upstream("everything", "server-everything", &[])
        + &upstream("clock", &tool("py/bin/mcp-server-time"), &[]);
    let home = Home::with(&config);
    let served = Served::start(&home);
    let mark_of = served.id();
    let echo = json!({"namespace": "everything", "function": "echo", "kwargs": {"message": "x"}});
    assert!(text(&served.call("call", &echo)).contains('x'));
    let children = || {
        let path = format!("/proc/{mark_of}/task");
        let tasks = std::fs::read_dir(path).map(|tasks| tasks.filter_map(Result::ok).collect());
        let tasks: Vec<std::fs::DirEntry> = tasks.unwrap_or_default();
        let list = |task: &std::fs::DirEntry| {
            std::fs::read_to_string(task.path().join("children")).unwrap_or_default()
        };
        tasks.iter().map(list).collect::<String>()
    };
    let before: Vec<String> = children().split_whitespace().map(str::to_owned).collect();
    assert!(!before.is_empty(), "there are children to end");
    assert!(served.terminate().success());
    for id in before {
        assert!(!Path::new(&format!("/proc/{id}")).exists(), "{id} is still there");
    }
}

#[test]
fn an_upstream_that_dies_comes_back() {
    testkit::needs!(Tools);
    let config = npm_upstream("everything", "server-everything", &[]);
    let home = Home::with(&config);
    let mark = Mark::new();
    let mut command = home.gatelet();
    command.args(["serve", "--stdio", "--log", "error"]);
    mark.put_on(&mut command);
    let mut pipe = Pipe::start(command);
    let echo = json!({"message": "still here"});
    assert!(pipe.call("everything.echo", &echo).contains("still here"));
    let gatelet = pipe.id();
    for id in mark.processes().into_iter().filter(|id| *id != gatelet) {
        crate::kit::signal(id, "KILL");
    }
    eventually("it answers again", || {
        let arguments =
            json!({"namespace": "everything", "function": "echo", "kwargs": echo.clone()});
        text(&pipe.verb("call", &arguments)).contains("still here")
    });
}
