//! Gates that would stand behind themselves.

use serde_json::json;

use crate::kit::{Home, Served, eventually, shell};

const BUILTIN: &str = "[builtin]\ntools = true\n\n";

fn upstream(label: &str, url: &str) -> String {
    format!("[[upstream]]\nlabel = {label:?}\nurl = {url:?}\n\n")
}

fn mount(served: &Served) -> String {
    let manifest = served.path("/.well-known/cash-mcp.yaml").url;
    format!("[[mount]]\nlabel = \"me\"\nmanifest = {manifest:?}\ninsecure_loopback = true\n\n")
}

fn status(served: &Served) -> String {
    served.told(None, "call", &json!({"namespace": "gatelet", "function": "status"}))
}

#[test]
fn a_gate_that_is_mounted_in_itself_says_so_and_stays_as_it_is() {
    let home = Home::with(BUILTIN);
    let served = Served::start(&home);
    home.write("gatelet.toml", &(BUILTIN.to_owned() + &mount(&served)));
    eventually("it is noticed", || status(&served).contains("this is gatelet itself"));
    let below = served.told(None, "help", &json!({"namespace": "me"}));
    assert!(!below.contains("**time**"), "{below}");
    let manifest = served.path("/.well-known/cash-mcp.yaml").url;
    home.write("gatelet.toml", BUILTIN);
    eventually("it is gone", || !status(&served).contains("- me:"));
    let refused = shell(&home, &["mount", &manifest, "--insecure-loopback"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.err.contains("is this gate itself"), "{refused:?}");
}

#[test]
fn the_address_of_the_gate_is_no_upstream_of_it() {
    // The address is free in a moment, and ours before anybody else takes it.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://localhost:{port}/mcp");
    let home = Home::with(&(BUILTIN.to_owned() + &upstream("me", &url)));
    let listen = format!("127.0.0.1:{port}");
    let ended = shell(&home, &["serve", "--listen", &listen]);
    assert_eq!(ended.code, 2, "{ended:?}");
    assert!(ended.err.contains("is where this gate listens"), "{ended:?}");
    // Another client's file names the gate, and is served without it.
    let file =
        json!({"mcpServers": {"gatelet": {"url": url}, "off": {"command": "x", "disabled": true}}});
    home.write("mcp.json", &file.to_string());
    let served = Served::start_at(&home, &listen, &["--config", "mcp.json"]);
    assert!(served.greeting.contains("is gatelet itself and was left out"), "{}", served.greeting);
    assert!(served.greeting.contains("0 upstreams"), "{}", served.greeting);
}

#[test]
fn of_two_gates_only_one_stands_behind_the_other() {
    let (near_home, far_home) = (Home::with(BUILTIN), Home::with(BUILTIN));
    let near = Served::start(&near_home);
    far_home.write("gatelet.toml", &(BUILTIN.to_owned() + &upstream("near", &near.url)));
    let far = Served::start(&far_home);
    let time = json!({"namespace": "near.time", "function": "now"});
    eventually("one is behind", || far.told(None, "call", &time).contains("UTC"));
    near_home.write("gatelet.toml", &(BUILTIN.to_owned() + &upstream("far", &far.url)));
    eventually("the other is not", || status(&near).contains("this gatelet is behind it"));
    assert!(far.told(None, "call", &time).contains("UTC"));
}

#[test]
fn a_gate_that_starts_itself_is_stopped() {
    let home = Home::new();
    let gatelet = env!("CARGO_BIN_EXE_gatelet");
    let script = format!("exec {gatelet} serve --stdio");
    home.write(
        "gatelet.toml",
        &format!("[[upstream]]\nlabel = \"me\"\ncommand = \"sh\"\nargs = [\"-c\", {script:?}]\n"),
    );
    let ended = shell(&home, &["upstreams", "--text"]);
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(ended.out.contains("starts the gate itself as an upstream"), "{ended:?}");
}

#[test]
fn how_long_a_gate_takes_is_measured_there_and_it_learns_who_asks() {
    let far_home = Home::new();
    let far = Served::start(&far_home);
    let home = Home::with(&upstream("far", &far.url));
    let rows = shell(&home, &["upstreams"]).json();
    // Nobody is asked over HTTP in less.
    assert!(0.1 < rows[0]["latency_ms"].as_f64().unwrap(), "{rows}");
    assert_eq!(rows[0]["protocol"], "2026-07-28");
}
