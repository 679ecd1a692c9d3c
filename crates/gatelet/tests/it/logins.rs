//! Upstreams that want OAuth, from the shell.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::json;
use testkit::oauth::Server;
use testkit::tls::Authority;

use crate::console;
use crate::kit::{Home, Served, eventually, shell};
use crate::tls::cover;

struct Stage {
    server: Server,
    home: Home,
    _runtime: tokio::runtime::Runtime,
}

impl Stage {
    fn new(more: &str) -> Stage {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let server = runtime.block_on(Server::start()).unwrap();
        let url = server.url();
        let home = Home::with(&format!(
            "[[upstream]]\nlabel = \"wiki\"\nurl = \"{url}\"\nrevision = \"2025-11-25\"\n{more}"
        ));
        Stage { server, home, _runtime: runtime }
    }

    /// Logs in, with the test as the browser.
    fn log_in(&self, more: &[&str]) -> String {
        self.log_in_through(more, str::to_owned)
    }

    /// As [`Stage::log_in`], with a browser that goes another way.
    fn log_in_through(&self, more: &[&str], way: impl Fn(&str) -> String) -> String {
        let mut command = self.home.gatelet();
        command.args(["login", "wiki", "--no-browser"]).args(more);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut url).unwrap();
        let back = get(&way(url.trim()));
        let back = back.lines().find_map(|line| line.strip_prefix("location: ")).unwrap();
        // Somebody else's visit changes nothing.
        assert!(get(&back.replace("state=", "state=x")).starts_with("HTTP/1.1 404"));
        assert!(get(back).contains("You are logged in"));
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }
}

/// What a browser gets, without following anything.
fn get(url: &str) -> String {
    let rest = url.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_once('/').unwrap();
    let mut stream = std::net::TcpStream::connect(host).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nhost: {host}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// The files below a directory that hold these bytes.
fn holding(directory: &Path, bytes: &[u8]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            found.extend(holding(&path, bytes));
        } else if std::fs::read(&path).unwrap().windows(bytes.len()).any(|part| part == bytes) {
            found.push(path);
        }
    }
    found
}

#[test]
fn a_login_opens_an_upstream_and_a_logout_closes_it() {
    let stage = Stage::new("");
    let call = || shell(&stage.home, &["call", "wiki.whoami", "--text"]);
    let before = call();
    assert_eq!(before.code, 3, "{before:?}");
    assert!(before.out.contains("run gatelet login wiki"), "{before:?}");
    let shown = || {
        let rows = shell(&stage.home, &["upstreams"]).json();
        let wiki = rows.as_array().unwrap().iter().find(|row| row["label"] == "wiki").cloned();
        wiki.unwrap()["credentials"].clone()
    };
    let todo = json!({"state": "needs a human", "todo": "run `gatelet login wiki`"});
    assert_eq!(shown(), todo);

    assert!(stage.log_in(&[]).contains("logged in"));
    let after = call();
    assert_eq!(after.code, 0, "{after:?}");
    assert!(after.out.starts_with("access-"), "{after:?}");
    let token = after.out.trim().to_owned();
    assert_eq!(shown(), json!({"state": "fine"}));
    let plain = holding(stage.home.path(), token.as_bytes());
    assert!(plain.is_empty(), "the token is readable in {plain:?}");

    // More is asked for beside what there is.
    assert!(stage.log_in(&["--scope", "write"]).contains("allowed: read write"));

    let out = shell(&stage.home, &["logout", "wiki"]);
    assert_eq!(out.code, 0, "{out:?}");
    assert!(out.err.contains("gave it back"), "{out:?}");
    let revoked = stage.server.book().revoked.clone();
    assert_eq!(revoked.len(), 2, "the token and the way to the next one: {revoked:?}");
    assert_eq!(shell(&stage.home, &["logout", "wiki"]).code, 2);
    assert_eq!(call().code, 3);
}

#[test]
fn a_login_that_cannot_be_says_why() {
    let stage = Stage::new("headers = { Authorization = \"Bearer x\" }\n");
    let told = |words: &[&str]| {
        let ended = shell(&stage.home, words);
        assert_eq!(ended.code, 2, "{ended:?}");
        ended.err
    };
    assert!(told(&["login", "wiki"]).contains("remove it to log in"));
    assert!(told(&["login", "wikki"]).contains("configured: wiki"));
    assert!(told(&["login", "wiki", "--as", "key:ann"]).contains("per_caller = true"));
    let call = shell(&stage.home, &["call", "wiki.whoami", "--text"]);
    assert!(call.out.contains("in the configuration is refused: change it"), "{call:?}");
    assert!(stage.server.asked("/mcp") < 3);
}

#[test]
fn an_authority_of_ones_own_counts_for_logging_in_and_for_renewing() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let (authority, mut server) = (Authority::fresh(), None);
    let port = cover(&authority, |port| {
        let origin = format!("https://localhost:{port}");
        let (started, address) = runtime.block_on(Server::start_behind(&origin)).unwrap();
        server = Some((started, address));
        address
    });
    let (server, address) = server.unwrap();
    let url = server.url();
    let upstream =
        format!("[[upstream]]\nlabel = \"wiki\"\nurl = {url:?}\nrevision = \"2025-11-25\"\n");
    let strict = Home::with(&upstream);
    let refused = shell(&strict, &["login", "wiki", "--no-browser"]);
    assert_eq!(refused.code, 3, "{refused:?}");

    let home = Home::with(&format!("{upstream}ca = \"ca.pem\"\n"));
    home.write("ca.pem", &authority.pem);
    let stage = Stage { server, home, _runtime: runtime };
    // Every token has ended when it comes.
    stage.server.book().lifetime = 0;
    let there = format!("https://localhost:{port}");
    stage.log_in_through(&[], |url| url.replace(&there, &format!("http://{address}")));
    let before = stage.server.asked("/token");
    let called = shell(&stage.home, &["call", "wiki.whoami", "--text"]);
    assert_eq!(called.code, 0, "{called:?}");
    assert!(before < stage.server.asked("/token"), "it was renewed");
    assert_eq!(shell(&stage.home, &["logout", "wiki"]).code, 0);
    assert_eq!(stage.server.book().revoked.len(), 2);
}

#[test]
fn a_login_begun_in_the_console_opens_the_upstream() {
    let stage = Stage::new("");
    let served = Served::start(&stage.home);
    let cookie = console::cookie(&served, &console::link(&stage.home));
    let page = |path: &str| served.path(path).send("GET", &[("Cookie", &cookie)], "").body;
    eventually("the upstream asks for a login", || {
        page("/console/upstreams").contains("Log in to wiki")
    });
    let shown = page("/console/upstreams/wiki");
    let token = shown.split("name=\"form_token\" value=\"").nth(1).unwrap();
    let form = format!("form_token={}", token.split('"').next().unwrap());
    let headers =
        [("Cookie", cookie.as_str()), ("Content-Type", "application/x-www-form-urlencoded")];
    let begun = served.path("/console/upstreams/wiki/login").send("POST", &headers, &form).body;
    let address = begun.split("href=\"http").nth(1).unwrap().split('"').next().unwrap();
    let address = format!("http{}", address.replace("&amp;", "&"));
    let back = get(&address);
    let back = back.lines().find_map(|line| line.strip_prefix("location: ")).unwrap();
    assert!(get(back).contains("You are logged in"));
    let call = json!({"namespace": "wiki", "function": "whoami", "kwargs": {}});
    eventually("the upstream is open", || {
        served.call("call", &call).to_string().contains("access-")
    });
    let audited = stage.home.read("state/audit.jsonl");
    for action in ["upstreams.login", "upstreams.logged_in"] {
        assert!(audited.contains(action), "{audited}");
    }
    assert!(!audited.contains("access-"), "{audited}");
}

#[test]
fn a_registered_client_is_let_in_without_anybody_logging_in() {
    let stage = Stage::new("");
    let config = |secret: &str| {
        format!(
            "[[upstream]]\nlabel = \"wiki\"\nurl = \"{}\"\nrevision = \"2025-11-25\"\n[upstream.oauth]\n\
             grant = \"client_credentials\"\nissuer = \"{}\"\nclient_id = \"machine\"\n\
             client_secret = \"{secret}\"\n",
            stage.server.url(),
            stage.server.origin
        )
    };
    let call = || shell(&stage.home, &["call", "wiki.whoami", "--text"]);
    stage.home.write("gatelet.toml", &config("not its secret"));
    let refused = call();
    assert_eq!(refused.code, 3, "{refused:?}");
    assert!(!format!("{refused:?}").contains("not its secret"), "{refused:?}");
    stage.home.write("gatelet.toml", &config("its secret"));
    let called = call();
    assert_eq!(called.code, 0, "{called:?}");
    assert_eq!(stage.server.asked("/authorize"), 0);
    assert_eq!(stage.server.book().form["grant_type"], "client_credentials");
    // The token is kept in memory only.
    let token = called.out.trim().to_owned();
    assert!(!token.is_empty());
    assert_eq!(holding(stage.home.path(), token.as_bytes()), Vec::<PathBuf>::new());
}
