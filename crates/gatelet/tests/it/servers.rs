//! A dozen real servers at once, behind three tools.

use serde_json::{Value, json};

use crate::kit::{Home, Mark, Pipe, eventually, npm_upstream, shell, text, tool, upstream};

/// Twelve upstreams: official servers on npm and PyPI, some of them twice.
fn dozen(home: &Home) -> String {
    std::fs::create_dir_all(home.path().join("files")).unwrap();
    home.write("files/note.txt", "hello from a file\n");
    let repository = home.path().join("repository");
    let git = |words: &[&str]| {
        let ended = std::process::Command::new("git").args(words).output().unwrap();
        assert!(ended.status.success(), "{ended:?}");
    };
    let place = repository.to_str().unwrap();
    git(&["init", "-q", place]);
    git(&[
        "-C",
        place,
        "-c",
        "user.name=x",
        "-c",
        "user.email=x@x",
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        "first commit",
    ]);
    let files = home.path().join("files");
    let files = files.to_str().unwrap();
    let database = home.path().join("data.db");
    let python = |name: &str| tool(&format!("py/bin/{name}"));
    [
        "[builtin]\ntools = true\n\n".to_owned(),
        npm_upstream("everything", "server-everything", &[]),
        npm_upstream("everything2", "server-everything", &[]),
        npm_upstream("files", "server-filesystem", &[files]),
        npm_upstream("graph", "server-memory", &[])
            + &format!("env = {{ MEMORY_FILE_PATH = {:?} }}\n\n", home.path().join("graph.json")),
        npm_upstream("thinking", "server-sequential-thinking", &[]),
        npm_upstream("thinking2", "server-sequential-thinking", &[]),
        upstream("git", &python("mcp-server-git"), &["--repository", place]),
        upstream("clock", &python("mcp-server-time"), &["--local-timezone", "Europe/Berlin"]),
        upstream("clock2", &python("mcp-server-time"), &["--local-timezone", "Asia/Tokyo"]),
        upstream(
            "sqlite",
            &tool("py1/bin/mcp-server-sqlite"),
            &["--db-path", database.to_str().unwrap()],
        ),
        upstream("fetch", &tool("py1/bin/mcp-server-fetch"), &[]),
        upstream("broken", std::path::Path::new("/nowhere/mcp-server"), &[]),
    ]
    .concat()
}

fn function(namespace: &str, function: &str, kwargs: &Value) -> Value {
    json!({"namespace": namespace, "function": function, "kwargs": kwargs})
}

/// One gatelet serves all checks: a dozen processes are not started twice.
#[test]
fn a_dozen_real_servers_work_through_call_help_and_skill() {
    testkit::needs!(Tools);
    let home = Home::new();
    home.write("gatelet.toml", &dozen(&home));
    let mark = Mark::new();
    let mut command = home.gatelet();
    command.args(["serve", "--stdio", "--log", "warn"]);
    mark.put_on(&mut command);
    let mut pipe = Pipe::start(command);

    // A call waits for its own upstream only.
    let berlin = json!({"timezone": "Europe/Berlin"});
    assert!(pipe.call("clock.get_current_time", &berlin).contains("Europe/Berlin"));
    assert!(pipe.call("everything.echo", &json!({"message": "hi"})).contains("hi"));
    assert!(pipe.call("files.read_text_file", &json!({"path": "note.txt"})).contains("hello from"));
    let repository = home.path().join("repository");
    let log = pipe.call("git.git_log", &json!({"repo_path": repository}));
    assert!(log.contains("first commit"), "{log}");
    let entity =
        json!({"entities": [{"name": "gatelet", "entityType": "gate", "observations": []}]});
    pipe.call("graph.create_entities", &entity);
    assert!(pipe.call("graph.search_nodes", &json!({"query": "gate"})).contains("gatelet"));
    pipe.call("sqlite.create_table", &json!({"query": "CREATE TABLE t (x INTEGER)"}));
    pipe.call("sqlite.write_query", &json!({"query": "INSERT INTO t VALUES (42)"}));
    assert!(pipe.call("sqlite.read_query", &json!({"query": "SELECT x FROM t"})).contains("42"));
    let thought = json!({"thought": "one", "nextThoughtNeeded": false, "thoughtNumber": 1,
                         "totalThoughts": 1});
    assert!(pipe.call("thinking.sequentialthinking", &thought).contains("thoughtNumber"));

    // The broken one keeps its place, with the reason in one line.
    let mut help = String::new();
    eventually("every upstream is known", || {
        help = text(&pipe.verb("help", &json!({})));
        !help.contains("still starting")
    });
    let line = help.lines().find(|line| line.contains("broken")).expect("broken is listed");
    assert!(line.contains("/nowhere/mcp-server") || line.contains("No such file"), "{line}");
    for namespace in ["clock", "everything", "files", "git", "graph", "sqlite", "thinking", "units"]
    {
        assert!(help.contains(namespace), "no {namespace} in: {help}");
    }
    let call = pipe.verb("call", &function("broken", "anything", &json!({})));
    assert_eq!(call["isError"], true, "{call}");

    // What a server says of an error, and what is no text, arrives as it is.
    let missing = pipe.verb("call", &function("files", "read_text_file", &json!({"path": "nope"})));
    assert_eq!(missing["isError"], true, "{missing}");
    let image = pipe.verb("call", &function("everything", "get-tiny-image", &json!({})));
    let kinds: Vec<&str> =
        image["content"].as_array().unwrap().iter().filter_map(|b| b["type"].as_str()).collect();
    assert!(kinds.contains(&"image"), "{kinds:?}");

    // Finding works across all of them.
    let query = json!({"kwargs": {"query": "commit history of a repository"}});
    let found = text(&pipe.verb("help", &query));
    assert!(found.contains("git_log"), "{found}");

    let n_started = mark.processes().len();
    assert!(12 <= n_started, "only {n_started} processes");
    assert!(pipe.close().success());
    eventually("no child is left", || mark.processes().is_empty());

    restart_answers_from_memory(&home);
    the_shell_sees_the_same(&home);
}

/// After a restart, what there is is known before anything has started.
fn restart_answers_from_memory(home: &Home) {
    let mark = Mark::new();
    let mut command = home.gatelet();
    command.args(["serve", "--stdio", "--log", "warn"]);
    mark.put_on(&mut command);
    // Programs that cannot start any more show that memory alone answers.
    let config =
        home.read("gatelet.toml").replace("[[upstream]]", "[[upstream]]\nstart = \"on-demand\"");
    home.write("gatelet.toml", &config);
    let mut pipe = Pipe::start(command);
    let help = text(&pipe.verb("help", &json!({"namespace": "git"})));
    assert!(help.contains("git_log"), "{help}");
    let line_of = |id| std::fs::read_to_string(format!("/proc/{id}/cmdline"));
    let lines = || -> Vec<String> {
        let others = mark.processes().into_iter().filter(|id| *id != pipe.id());
        others.flat_map(line_of).collect()
    };
    // A child has the gate's own line until it has become another program.
    let own = line_of(pipe.id()).unwrap();
    eventually("every child is a program", || !lines().contains(&own));
    let lines = lines().into_iter().filter(|line| *line != own);
    // The guard stands by before there is anything to guard, and what nobody has
    // ever heard of is looked for whoever asks what.
    let expected = |line: &String| line.contains("__reaper") || line.contains("/nowhere/");
    let started: Vec<String> = lines.filter(|line| !expected(line)).collect();
    assert!(started.is_empty(), "these were started to answer help: {started:#?}");
    let log = pipe.call("git.git_log", &json!({"repo_path": home.path().join("repository")}));
    assert!(log.contains("first commit"), "{log}");
    assert!(pipe.close().success());
}

fn the_shell_sees_the_same(home: &Home) {
    let tokens = shell(home, &["tokens"]);
    assert_eq!(tokens.code, 0, "{}", tokens.err);
    let tokens = tokens.json();
    assert!(tokens["gatelet"]["tokens"].as_u64().unwrap() <= 350, "{tokens}");
    assert!(10_000 < tokens["direct"]["tokens"].as_u64().unwrap(), "{tokens}");
    let bench = shell(home, &["bench"]);
    assert_eq!(bench.code, 0, "{}", bench.err);
    let bench = bench.json();
    assert_eq!(bench["definitions"]["direct"], tokens["direct"]["tokens"], "{bench}");
    let searches = &bench["searches"];
    assert!(searches["longest_tokens"].as_u64().unwrap() <= 400, "{searches}");
    assert!(30 < searches["found"].as_u64().unwrap(), "of forty: {searches}");
    let sends_all = &bench["hosts"][0];
    assert!(0.5 < sends_all["saving"].as_f64().unwrap(), "{sends_all}");
    let call = shell(home, &["call", "everything.get-sum", "a=2", "b=3", "--text"]);
    assert_eq!(call.code, 0, "{}", call.err);
    assert!(call.out.contains('5'), "{}", call.out);
    let upstreams = shell(home, &["upstreams"]);
    assert_eq!(upstreams.code, 1, "one of them is broken");
    let rows = upstreams.json();
    let row = |label: &str| {
        let rows = rows.as_array().unwrap();
        rows.iter()
            .find(|row| row["label"] == label)
            .unwrap_or_else(|| panic!("no {label}"))
            .clone()
    };
    assert_eq!(row("broken")["state"], "down");
    assert_eq!(row("git")["state"], "up");
    assert!(row("git")["latency_ms"].is_number(), "{}", row("git"));
}
