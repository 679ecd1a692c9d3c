//! The pictures of the guide: the console of a gate with real servers, in a browser
//! without scripts. `GATELET_PICTURES=docs/guide/pictures cargo xtask test pictures`
//! renews those that the guide shows.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::console;
use crate::kit::{Home, Served, eventually, node, npm_upstream, tool, upstream};

/// The longest picture that is put into the repository, in bytes.
const LONGEST: u64 = 100_000;

/// What is taken: a page, the picture's name, a theme, and a link to follow first.
const PAGES: [(&str, &str, &str, &str); 7] = [
    ("", "overview", "light", ""),
    ("", "overview-dark", "dark", ""),
    ("/approvals", "approvals", "light", ""),
    ("/calls", "call", "light", "files/list_directory"),
    ("/upstreams", "upstreams", "light", ""),
    ("/tools?q=read%20a%20file", "tools", "light", ""),
    ("/callers?subject=key%3Aann&q=time", "look-as", "light", ""),
];

fn directory() -> PathBuf {
    #[expect(clippy::disallowed_methods, reason = "whoever renews the guide says where to")]
    let asked = std::env::var_os("GATELET_PICTURES");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    asked.map_or(Path::new(env!("CARGO_TARGET_TMPDIR")).join("pictures"), |below| root.join(below))
}

fn home() -> Home {
    let home = Home::new();
    home.write("notes/release.md", "What is new\n");
    let notes = home.path().join("notes");
    let config = [
        "[builtin]\ntools = true\n\n[approvals]\nwait = \"0s\"\n\n".to_owned(),
        npm_upstream("files", "server-filesystem", &[notes.to_str().unwrap()]),
        npm_upstream("memory", "server-memory", &[]),
        upstream("clock", &tool("py/bin/mcp-server-time"), &[]),
        "[[upstream]]\nlabel = \"billing\"\ncommand = \"/nowhere/billing\"\n".to_owned(),
    ];
    home.write("gatelet.toml", &config.concat());
    home
}

/// Works with the servers as somebody would, and leaves a call that waits.
fn work(home: &Home, served: &Served) {
    let notes = home.path().join("notes");
    let call = |namespace: &str, function: &str, kwargs: Value| {
        let call = json!({"namespace": namespace, "function": function, "kwargs": kwargs});
        served.call("call", &call).to_string()
    };
    eventually("the servers are up", || {
        call("clock", "get_current_time", json!({"timezone": "UTC"})).contains("datetime")
            && call("memory", "read_graph", json!({})).contains("entities")
            && call("files", "list_directory", json!({"path": notes})).contains("release.md")
    });
    for _ in 0..5 {
        call("files", "read_text_file", json!({"path": notes.join("release.md")}));
        call("files", "read_text_file", json!({"path": "/etc/passwd"}));
        call("files", "list_directory", json!({"path": notes}));
    }
    let new = json!({"path": notes.join("plan.md"), "content": "First the tests.\n"});
    let waits = call("files", "write_file", new);
    assert!(waits.contains("approval request 1"), "{waits}");
}

#[test]
fn the_pictures_of_the_guide_show_real_servers_and_need_no_script() {
    testkit::needs!(Tools);
    let home = home();
    let served = Served::start(&home);
    // From the first look on, calls are noted and counted.
    let cookie = console::cookie(&served, &console::link(&home));
    for path in ["/console", "/console/calls"] {
        served.path(path).send("GET", &[("Cookie", &cookie)], "");
    }
    work(&home, &served);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/pictures.mjs");
    let mut command = Command::new(node());
    home.settle(&mut command);
    command.arg(script).arg(tool("browser").parent().unwrap()).arg(console::link(&home));
    let ended = command.arg(directory()).arg(json!(PAGES).to_string()).output().unwrap();
    let found: Value = serde_json::from_slice(&ended.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&ended.stderr)));
    assert_eq!(found["troubles"], json!([]), "{found}");
    let text = |name: &str| found["taken"][name]["text"].as_str().unwrap().to_owned();
    for (_, name, ..) in PAGES {
        let bytes = found["taken"][name]["bytes"].as_u64().unwrap();
        assert!(bytes < LONGEST, "{name} has {bytes} bytes");
    }
    for (name, part) in [
        ("overview", "Calls per minute"),
        ("approvals", "files/write_file"),
        ("call", "upstream"),
        ("upstreams", "secure-filesystem-server"),
        ("tools", "files.read_text_file"),
        ("look-as", "What key:ann is told"),
    ] {
        assert!(text(name).contains(part), "{name}: {}", text(name));
    }
    assert_eq!(found["said"], "Request 1 was denied.");
}

#[test]
fn the_guide_shows_every_picture_and_no_other() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide");
    let page = std::fs::read_to_string(guide.join("console.md")).unwrap();
    for (_, name, ..) in PAGES {
        assert!(page.contains(&format!("](pictures/{name}.png)")), "{name} is not shown");
    }
    let kept = std::fs::read_dir(guide.join("pictures")).unwrap().map(Result::unwrap);
    for picture in kept {
        let name = picture.path().file_stem().unwrap().to_string_lossy().into_owned();
        assert!(PAGES.iter().any(|page| page.1 == name), "nothing takes {name}.png");
        assert!(picture.metadata().unwrap().len() < LONGEST, "{name}");
    }
}
