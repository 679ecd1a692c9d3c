//! The console in a real browser: log in, look at every page, decide.

mod looks;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::kit::{Answer, Home, Served, eventually, node, program, shell, tool, upstream};

/// A gate that asks about conversions of units.
fn asking() -> Home {
    let rule = "[[controls.rule]]\naction = \"ask\"\ntool = \"units.convert\"\nreason = \"conversions are asked about\"\n";
    Home::with(&format!("[builtin]\ntools = true\n\n{rule}"))
}

/// Where pictures of the run are kept.
fn pictures() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("console")
}

/// A browser that is driven by our script.
struct Browser {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Browser {
    fn start(home: &Home, link: &str, pages: &Value) -> Browser {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/console.mjs");
        let mut command = std::process::Command::new(node());
        home.settle(&mut command);
        command.arg(script).arg(tool("browser").parent().unwrap()).arg(link);
        command.arg(pictures()).arg(pages.to_string());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Browser { child, lines }
    }

    /// What the script says next.
    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("the browser said: {line:?}"))
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn link(home: &Home) -> String {
    let printed = shell(home, &["console", "--print"]);
    assert_eq!(printed.code, 0, "{}", printed.err);
    printed.out.trim().to_owned()
}

#[test]
fn a_waiting_call_goes_through_when_it_is_allowed_in_the_browser() {
    testkit::needs!(Tools);
    let home = asking();
    let served = Served::start(&home);
    let pages = json!([
        ["", "overview"],
        ["/approvals", "approvals-decided"],
        ["/calls", "calls"],
        ["/calls?ending=fine", "calls-filtered"],
        ["/upstreams", "upstreams"],
        ["/tools", "tools"],
        ["/tools?q=convert%20units", "tools-search"],
        ["/artifacts", "artifacts"],
        ["/callers?q=time", "callers"],
        ["/findings", "findings"],
        ["/config", "config"],
    ]);
    let mut browser = Browser::start(&home, &link(&home), &pages);
    assert_eq!(browser.next()["at"], "ready");
    let call = json!({"namespace": "units", "function": "convert",
                      "kwargs": {"value": 26.2, "from": "mi", "to": "km"}});
    let answer = std::thread::scope(|scope| {
        let calling = scope.spawn(|| served.call("call", &call));
        assert_eq!(browser.next()["at"], "allowed");
        calling.join().unwrap()
    });
    assert!(answer.to_string().contains("42.16"), "{answer}");
    let found = browser.next()["found"].clone();
    assert_eq!(found["troubles"], json!([]), "{found}");
    assert_eq!(found["violations"], json!([]), "{found}");
    assert_eq!(found["pages"].as_array().unwrap().len(), 11, "{found}");
    let cookie = &found["cookies"][0];
    assert!(cookie["httpOnly"] == true && cookie["sameSite"] == "Strict", "{found}");
    let audited = home.read("state/audit.jsonl");
    assert!(found["answer"].as_str().unwrap().contains("\"words\""), "{found}");
    for action in ["console.login", "approvals.allow", "tools.call", "console.logout"] {
        assert!(audited.contains(action), "{audited}");
    }
}

#[test]
fn the_console_is_off_where_the_operator_says_so_and_on_pipes() {
    let home = Home::with("[console]\nenabled = false\n");
    let served = Served::start(&home);
    assert_eq!(served.path("/console").send("GET", &[], "").status, 404);
    let told = shell(&home, &["console", "--print"]);
    assert_eq!(told.code, 1, "{}", told.err);
    assert!(told.err.contains("[console]"), "{}", told.err);
}

#[test]
fn without_a_link_or_a_key_there_is_a_login_page_and_nothing_else() {
    let home = asking();
    let served = Served::start(&home);
    let page = served.path("/console").send("GET", &[], "");
    assert_eq!(page.status, 401);
    assert!(page.body.contains("gatelet console"), "{}", page.body);
    assert!(page.head.to_lowercase().contains("content-security-policy"), "{}", page.head);
    let made = shell(&home, &["key", "create", "ann", "--role", "operator"]);
    let key = made.out.trim();
    let form = [("Content-Type", "application/x-www-form-urlencoded")];
    let login = served.path("/console/login");
    assert_eq!(login.send("POST", &form, &format!("key={key}")).status, 303);
    assert_eq!(login.send("POST", &form, "key=guess").status, 403);
}

#[test]
fn an_operators_key_makes_a_call_by_a_form_and_cannot_agree_to_it() {
    let home = Home::with(
        "[builtin]\ntools = true\n[records]\nfile = \"calls.jsonl\"\n\
         [[controls.rule]]\naction = \"ask\"\ntool = \"units.convert\"\nreason = \"sums\"\n",
    );
    let served = Served::start(&home);
    let key = |name: &str| {
        let made = shell(&home, &["key", "create", name, "--role", "operator"]);
        assert_eq!(made.code, 0, "{}", made.err);
        made.out.trim().to_owned()
    };
    // Both before the first login: the file of keys is looked at once in 20 ms.
    let (ann, bob) = (key("ann"), key("bob"));
    let (ann, bob) = (Operator::by_key(&served, &ann), Operator::by_key(&served, &bob));
    let link = Operator { served: &served, cookie: cookie(&served, &link(&home)) };
    let fields = "argument.value=26.2&argument.from=mi&argument.to=km";
    let convert = |who: &Operator<'_>| who.send("/tools/units.convert", "/call", fields);
    let asked = convert(&ann).body;
    assert!(asked.contains("approval request 1"), "{asked}");
    let state = || shell(&home, &["approvals", "list", "--all", "--json"]).json()[0].clone();
    assert_eq!(state()["caller"], "key:ann");
    // As was tried: agreeing to it with the same key.
    assert_eq!(ann.send("/approvals/1", "", "verdict=allow").status, 303);
    assert_eq!(state()["state"]["is"], "waiting");
    assert!(!convert(&ann).body.contains("42.16"));
    assert_eq!(bob.send("/approvals/1", "", "verdict=allow").status, 303);
    assert_eq!(state()["state"]["is"], "allowed");
    assert!(convert(&ann).body.contains("42.16"));
    // Whoever runs the program decides about everything, their own calls included.
    assert!(convert(&link).body.contains("approval request 2"));
    assert_eq!(link.send("/approvals/2", "", "verdict=allow").status, 303);
    assert!(convert(&link).body.contains("42.16"));
    let audited = home.read("state/audit.jsonl");
    for part in ["\"tools.call\"", "it is a call of the same identity", "key:bob"] {
        assert!(audited.contains(part), "no {part}: {audited}");
    }
    assert!(served.terminate().success());
    let callers = shell(&home, &["stats", "--by", "caller"]).json();
    assert!(callers["callers"]["key:ann"]["calls"].as_u64().is_some_and(|n| 1 < n), "{callers}");
}

#[test]
fn a_rule_that_is_added_in_the_console_is_read_first_and_then_counts() {
    let home = Home::with(
        "[builtin]\ntools = true\n[approvals]\nwait = \"0s\"\n\
         [[controls.rule]]\naction = \"ask\"\ntool = \"units.convert\"\nreason = \"sums\"\n",
    );
    let served = Served::start(&home);
    let call = json!({"namespace": "units", "function": "convert",
                      "kwargs": {"value": 26.2, "from": "mi", "to": "km"}});
    let call = || served.call("call", &call).to_string();
    assert!(call().contains("approval request 1"));
    let before = home.read("gatelet.toml");
    let operator = Operator { served: &served, cookie: cookie(&served, &link(&home)) };
    let rule = "[[approvals.remember]]\ntool = \"units:convert\"\n";
    let page = operator.page("/approvals/1").replace("&quot;", "\"");
    assert!(page.contains(rule), "{page}");
    assert_eq!(home.read("gatelet.toml"), before, "looking at it adds nothing");
    assert_eq!(operator.send("/approvals/1", "", "verdict=remember").status, 303);
    let config = home.read("gatelet.toml");
    assert!(config.starts_with(&before) && config.contains(rule), "{config}");
    assert!(config.contains("exactly = { value = 26.2 }"), "{config}");
    // Once by the agreement, and from then on by the rule.
    eventually("the rule counts", || (0..2).all(|_| call().contains("42.16")));
    assert!(home.read("state/audit.jsonl").contains("approvals.remember"));
}

/// Somebody who is logged in, without a browser.
pub(crate) struct Operator<'a> {
    pub(crate) served: &'a Served,
    pub(crate) cookie: String,
}

impl<'a> Operator<'a> {
    fn by_key(served: &'a Served, key: &str) -> Operator<'a> {
        let form = [("Content-Type", "application/x-www-form-urlencoded")];
        let got = served.path("/console/login").send("POST", &form, &format!("key={key}"));
        let cookie = got.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
        Operator { served, cookie }
    }

    pub(crate) fn page(&self, path: &str) -> String {
        let cookie = [("Cookie", self.cookie.as_str())];
        self.served.path(&format!("/console{path}")).send("GET", &cookie, "").body
    }

    /// Sends a form of a page to a path below it.
    pub(crate) fn send(&self, page: &str, below: &str, fields: &str) -> Answer {
        let shown = self.page(page);
        let token = shown.split("name=\"form_token\" value=\"").nth(1).unwrap();
        let body = format!("form_token={}&{fields}", token.split('"').next().unwrap());
        let headers = [
            ("Cookie", self.cookie.as_str()),
            ("Content-Type", "application/x-www-form-urlencoded"),
        ];
        self.served.path(&format!("/console{page}{below}")).send("POST", &headers, &body)
    }
}

/// Logs in by a link, without a browser; the cookie that it gives.
pub(crate) fn cookie(served: &Served, link: &str) -> String {
    let path = link.split_once("/console").unwrap().1;
    let got = served.path(&format!("/console{path}")).send("GET", &[], "");
    let set = got.head.lines().find_map(|line| line.strip_prefix("set-cookie: "));
    set.unwrap_or_else(|| panic!("no cookie: {}", got.head)).split(';').next().unwrap().to_owned()
}

/// A server whose tool says what stands in a file.
const CHANGING: &str = r#"
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    about = open(sys.argv[1]).read()
    tool = {"name": "act", "description": about, "inputSchema": {"type": "object"},
            "annotations": {"destructiveHint": True}}
    server = {"name": "changing", "version": "1"}
    result = {
        "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": server},
        "tools/list": {"tools": [tool]},
    }.get(asked["method"], {"content": [{"type": "text", "text": "acted"}]})
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"#;

#[test]
fn a_tool_that_changed_is_shown_and_accepted_in_the_console() {
    let home = Home::new();
    home.write("about", "Deletes one thing.");
    let about = home.path().join("about");
    home.write(
        "gatelet.toml",
        &upstream("one", Path::new("python3"), &["-c", CHANGING, about.to_str().unwrap()]),
    );
    let served = Served::start(&home);
    let cookie = cookie(&served, &link(&home));
    let page =
        || served.path("/console/tools/one.act").send("GET", &[("Cookie", &cookie)], "").body;
    eventually("the tool is there", || page().contains("Deletes one thing."));
    assert_eq!(shell(&home, &["trust", "grant", "one/act"]).code, 0);
    assert!(!page().contains("Changed since"), "{}", page());
    home.write("about", "Deletes everything.");
    assert_eq!(shell(&home, &["restart", "one"]).code, 0);
    eventually("the change is noticed", || page().contains("Changed since it was trusted"));
    let token = page().split("name=\"form_token\" value=\"").nth(1).unwrap().to_owned();
    let form = format!("form_token={}", token.split('"').next().unwrap());
    let headers =
        [("Cookie", cookie.as_str()), ("Content-Type", "application/x-www-form-urlencoded")];
    let accept = served.path("/console/tools/one.act/accept");
    assert_eq!(accept.send("POST", &headers, &form).status, 303);
    assert!(page().contains("is accepted as it is now"), "{}", page());
    eventually("nothing is changed any more", || !page().contains("Changed since"));
    assert!(home.read("state/audit.jsonl").contains("tools.accept"));
}

#[test]
fn ten_thousand_tools_and_many_calls_leave_every_page_small() {
    testkit::needs!(Tools);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/many_tools.mjs");
    let many = upstream("many", &node(), &[script.to_str().unwrap(), "10000"]);
    let home = Home::with(&many);
    let served = Served::start(&home);
    let cookie = cookie(&served, &link(&home));
    let page = |path: &str| {
        let got = served.path(&format!("/console{path}")).send("GET", &[("Cookie", &cookie)], "");
        assert_eq!(got.status, 200, "{path}: {}", got.body);
        assert!(got.body.len() < 200_000, "{path} has {} bytes", got.body.len());
        got.body
    };
    // From the first look on, calls are noted and counted.
    page("/calls");
    page("");
    // Three are gatelet's own.
    eventually("the tools are there", || page("/tools").contains("10,003 tools"));
    let names = json!({"namespace": "many", "function": "read_invoice_0", "kwargs": {"id": "1"}});
    for _ in 0..300 {
        served.call("call", &names);
    }
    let calls = page("/calls");
    assert!(calls.contains("100 of 300 noted calls"), "{calls}");
    let found = page("/tools?q=read%20an%20invoice%20of%20department%207");
    assert!(found.contains("many.read_invoice_7"), "{found}");
    assert!(found.contains(" +"), "no reasons: {found}");
    let overview = page("");
    assert!(overview.contains("<svg") && overview.contains("Calls per minute"), "{overview}");
    let tool = page("/tools/many.read_invoice_7");
    assert!(tool.contains("argument.id"), "{tool}");
    for path in ["/upstreams", "/upstreams/many", "/findings", "/artifacts", "/callers", "/config"]
    {
        page(path);
    }
    let top = shell(&home, &["top", "--once", "--format", "text"]);
    assert!(top.out.contains("many") && top.out.contains("300"), "{}", top.out);
}

#[test]
fn what_was_said_in_calls_is_shown_only_where_the_operator_wants_it_kept() {
    let code = "say(id, {\"content\": [{\"type\": \"text\", \"text\": 'answered-' + \
                message['params']['arguments']['word']}]})";
    let server = upstream("files", Path::new("python3"), &["-c", &program(code)]);
    for (switch, is_shown) in [
        ("", false),
        ("[console]\npayloads = false\n", false),
        ("[console]\npayloads = true\n", true),
    ] {
        let home = Home::with(&format!("{switch}{server}"));
        let served = Served::start(&home);
        let cookie = cookie(&served, &link(&home));
        let page = |path: &str| {
            served.path(&format!("/console{path}")).send("GET", &[("Cookie", &cookie)], "").body
        };
        // From the first look on, calls are noted.
        page("/calls");
        let asked = json!({"namespace": "files", "function": "act", "kwargs": {"word": "seven"}});
        let told = served.call("call", &asked);
        assert!(told.to_string().contains("answered-seven"), "{told}");
        let call = page("/calls/1");
        assert!(call.contains("files/act") && call.contains("word"), "{switch}: {call}");
        // Once as an argument, and once in the answer.
        let n_shown = call.matches("seven").count();
        assert_eq!(n_shown, if is_shown { 2 } else { 0 }, "{switch}: {call}");
        assert_eq!(call.contains("payloads = true"), !is_shown, "{switch}: {call}");
        // Nor does it stand anywhere else.
        for path in ["", "/calls", "/artifacts", "/upstreams/files", "/findings", "/callers"] {
            assert!(!page(path).contains("seven"), "{switch} {path}: {}", page(path));
        }
    }
}

#[test]
fn the_configuration_page_says_what_is_in_force_and_where_it_comes_from() {
    let home = Home::with("[gate]\nlimit = 7000\n[metrics]\non_gate = true\ntools = 3\n");
    let served = Served::start(&home);
    let cookie = cookie(&served, &link(&home));
    let row = |key: &str| {
        let page = served.path("/console/config").send("GET", &[("Cookie", &cookie)], "").body;
        let row = page.split("<tr>").find(|row| row.contains(&format!("<code>{key}</code>")));
        row.unwrap_or_else(|| panic!("no {key}: {page}")).to_owned()
    };
    let has = |key: &str, words: &[&str]| {
        let row = row(key);
        words.iter().all(|word| row.contains(word))
    };
    let limit = ["<td>7000</td>", "the file", "applies at once"];
    assert!(has("gate.limit", &limit), "{}", row("gate.limit"));
    assert!(has("console.payloads", &["<td>false</td>", "default", "needs a restart"]));
    // The address is the one that this test gave it as a flag.
    let listen = [served.authority(), "the command line"];
    assert!(has("serve.listen", &listen), "{}", row("serve.listen"));
    home.write("gatelet.toml", "[gate]\nlimit = 8000\n[metrics]\non_gate = true\ntools = 4\n");
    eventually("the limit is taken up", || has("gate.limit", &["<td>8000</td>"]));
    let waits = ["<td>3</td>", "the file says", "<code>4</code>"];
    assert!(has("metrics.tools", &waits), "{}", row("metrics.tools"));
}
