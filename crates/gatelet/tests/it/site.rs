//! A CMS site behind the gate, under the rules of its entry; and the guide's
//! own lines, run as they stand.

use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use crate::kit::{Home, PATIENCE, Served, Site, put_in_front, shell, signal};

/// A gate before the sample site: Ann acts for user 2 by the operator's word,
/// Bob for the administrator by his key's role, and Eve for nobody.
fn guarded() -> (Home, [String; 3]) {
    let home = Home::with(
        "[auth]\nrequired = true\n\
         [[upstream]]\nlabel = \"evo\"\nkind = \"content\"\n\
         [upstream.content]\nownership = \"required\"\nmax_items = 3\nmax_depth = 2\n\
         deny_tools = [\"evo.model.get\"]\n\
         [upstream.content.owners]\n\"key:ann\" = 2\n",
    );
    let key = |arguments: &[&str]| {
        let made = shell(&home, &[&["key", "create"], arguments].concat());
        assert_eq!(made.code, 0, "{}", made.err);
        made.out.trim().to_owned()
    };
    let keys = [key(&["ann"]), key(&["bob", "--role", "evo-user:1"]), key(&["eve"])];
    (home, keys)
}

/// The outcome of one function of the site, as the holder of a key gets it.
fn ask(served: &Served, key: &str, function: &str, kwargs: &Value) -> String {
    let (namespace, function) = function.rsplit_once('.').unwrap();
    let arguments = json!({"namespace": namespace, "function": function, "kwargs": kwargs});
    let params = json!({"name": "call", "arguments": arguments, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let headers = [
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "call"),
        ("X-Api-Key", key),
    ];
    let answer = served.post(&message, &headers);
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.message().to_string()
}

#[test]
fn behind_the_gate_everybody_sees_what_their_owner_may() {
    let (home, [ann, bob, eve]) = guarded();
    let served = Served::start(&home);
    // Document 6 is a draft, which the administrator alone may see.
    let draft = json!({"id": 6});
    for (key, sees) in [(&ann, false), (&bob, true), (&eve, false)] {
        let outcome = ask(&served, key, "evo.content.get", &draft);
        assert_eq!(outcome.contains("pagetitle"), sees, "{outcome}");
        let home = ask(&served, key, "evo.content.get", &json!({"id": 1}));
        assert!(home.contains("Welcome to the sample site"), "{home}");
    }
    // Templates are a screen of the manager, and Eve is nobody there.
    let templates = json!({"model": "SiteTemplate", "limit": 1});
    assert!(ask(&served, &bob, "evo.model.list", &templates).contains("templatename"));
    let refused = ask(&served, &eve, "evo.model.list", &templates);
    assert!(!refused.contains("templatename") && refused.contains("permission"), "{refused}");
}

#[test]
fn behind_the_gate_the_limits_of_a_site_apply() {
    let (home, [_, bob, _]) = guarded();
    let served = Served::start(&home);
    let outcome = ask(&served, &bob, "evo.content.search", &json!({"limit": 3}));
    assert!(outcome.contains("pagetitle"), "{outcome}");
    for (kwargs, said) in
        [(json!({"limit": 4}), "maximum of 3"), (json!({"limit": 1, "parent": 0, "depth": 3}), "2")]
    {
        let outcome = ask(&served, &bob, "evo.content.search", &kwargs);
        assert!(outcome.contains(r#""isError":true"#) && outcome.contains(said), "{outcome}");
    }
    let denied = ask(&served, &bob, "evo.model.get", &json!({"model": "User", "id": 1}));
    assert!(!denied.contains("username"), "{denied}");
}

#[test]
fn behind_the_gate_every_surface_says_which_toolset_is_there_to_who_sees_it() {
    let home = Home::with(
        "[[upstream]]\nlabel = \"evo\"\nkind = \"content\"\n\
         [[visibility.rule]]\ncallers = [\"role:blind\"]\nhide = [\"evo\", \"evo.*\"]\n",
    );
    let blind = shell(&home, &["key", "create", "blind", "--role", "blind"]);
    assert_eq!(blind.code, 0, "{}", blind.err);
    let served = Served::start(&home);
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params":
        {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}});
    for surface in ["cash", "gateway", "proxy", "direct"] {
        let said = served.at(surface).post(&hello, &[]).message()["result"].clone();
        assert_eq!(said["serverInfo"]["name"], "gatelet", "{surface}: {said}");
        assert_eq!(said["serverInfo"]["platform"], "eMCP", "{surface}: {said}");
        assert!(said["serverInfo"]["platformVersion"].is_string(), "{surface}: {said}");
        assert_eq!(said["capabilities"]["evo"]["toolsetVersion"], "1.0", "{surface}: {said}");
        let key = blind.out.trim();
        let unsaid = served.at(surface).post(&hello, &[("X-Api-Key", key)]).message();
        assert_eq!(unsaid["result"]["serverInfo"]["platform"], Value::Null, "{surface}: {unsaid}");
        assert_eq!(unsaid["result"]["capabilities"]["evo"], Value::Null, "{surface}: {unsaid}");
    }
}

/// A process that ends with the test.
struct Background(u32);

impl Drop for Background {
    fn drop(&mut self) {
        signal(self.0, "KILL");
    }
}

/// A server of our own that ends with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The sample site served alone over HTTP, with some more options.
fn serve_alone(home: &Home, options: &[&str]) -> (Server, Site) {
    let mut command = home.gatelet();
    command.args(["content", "serve", "--listen", "127.0.0.1:0"]).args(options);
    let mut server = Server(command.stderr(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(server.0.stderr.take().unwrap()).lines().map(Result::unwrap);
    let line = lines.find(|line| line.contains("serving the content tools")).unwrap();
    let url = line.split_whitespace().find(|word| word.starts_with("http://")).unwrap();
    (server, Site { url: url.to_owned() })
}

fn create_token(home: &Home, options: &[&str]) -> String {
    let made = shell(home, &[&["content", "token", "create", "test"], options].concat());
    assert_eq!(made.code, 0, "{}", made.err);
    format!("Bearer {}", made.out.trim())
}

/// In the sample site user 2 edits and user 3 is blocked; there is no user 77.
#[test]
fn owners_who_may_not_are_forbidden_over_http() {
    let home = Home::new();
    let search = json!({"name": "evo.content.search", "arguments": {"limit": 1}});
    let users = json!({"name": "evo.model.list", "arguments": {"limit": 1, "model": "User"}});
    for form in [&[][..], &["--errors-as-results"]] {
        let audit = home.path().join(format!("audit-{}.log", form.len()));
        let file = audit.to_str().unwrap();
        let (_server, site) = serve_alone(&home, &[&["--audit", file], form].concat());
        let call = |token: &str, params: &Value| {
            let message =
                json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
            site.post(&message, &[("Authorization", token)])
        };
        assert_eq!(call(&create_token(&home, &["--owner", "2"]), &search).status, 200);
        for (owner, params) in [("3", &search), ("77", &search), ("2", &users)] {
            let refused = call(&create_token(&home, &["--owner", owner]), params);
            assert_eq!(refused.status, 403, "{}", refused.body);
            let body: Value = serde_json::from_str(&refused.body).unwrap();
            assert_eq!(body["error"]["code"], "forbidden");
            assert!(body["error"]["trace_id"].is_string(), "{body}");
            let lines = std::fs::read_to_string(&audit).unwrap();
            let line: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
            assert_eq!(line["status"], 403);
        }
    }
    let (_server, site) = serve_alone(&home, &["--need-permission"]);
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": search});
    let token = create_token(&home, &["--owner", "2"]);
    assert_eq!(site.post(&message, &[("Authorization", &token)]).status, 403);
}

#[test]
fn a_caller_without_a_name_is_counted_by_its_address() {
    let home = Home::new();
    let audit = home.path().join("audit.log");
    let options = ["--auth", "open", "--audit", audit.to_str().unwrap()];
    let (_server, site) = serve_alone(&home, &options);
    site.post(&json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}), &[]).message();
    let lines = std::fs::read_to_string(&audit).unwrap();
    let line: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    assert_eq!(line["rate_limit_identity"], "ip:127.0.0.1");
}

#[test]
fn the_ids_of_messages_are_text_or_integers() {
    let home = Home::new();
    let (_server, site) = serve_alone(&home, &["--auth", "open"]);
    let ping = |id: Value| {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
        site.post(&message, &[]).message()
    };
    for odd in [json!(1.5), json!(1e30), json!(true), json!([1])] {
        assert_eq!(ping(odd.clone())["error"]["code"], -32600, "{odd}");
    }
    for good in [json!(-7), json!("1.5")] {
        assert_eq!(ping(good.clone()), json!({"jsonrpc": "2.0", "id": good, "result": {}}));
    }
}

#[test]
fn tokens_are_made_for_somebody_and_for_some_time_and_kept_private() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    for (option, said) in [("--owner", "from 1 up"), ("--expires", "at least one day")] {
        let made = shell(&home, &["content", "token", "create", "test", option, "0"]);
        assert_eq!((made.code, made.out.as_str()), (2, ""), "{}", made.err);
        assert!(made.err.contains(option) && made.err.contains(said), "{}", made.err);
    }
    create_token(&home, &["--owner", "1", "--expires", "1"]);
    let state = std::fs::metadata(home.path().join("state")).unwrap();
    assert_eq!(state.permissions().mode() & 0o777, 0o700);
}

#[test]
fn a_check_says_what_is_true_of_a_file_that_is_not_there() {
    let home = Home::new();
    let checked = shell(&home, &["content", "check", "--database", "sqlite:nope.sqlite"]);
    assert_eq!(checked.code, 1, "{}", checked.err);
    assert!(checked.out.contains("there is no file `nope.sqlite`"), "{}", checked.out);
    assert!(!checked.out.contains("server"), "{}", checked.out);
}

#[test]
fn a_site_that_is_served_alone_ends_in_order_when_it_is_told_to() {
    let home = Home::new();
    let mut command = home.gatelet();
    command.args(["content", "serve", "--auth", "open", "--listen", "127.0.0.1:0"]);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    lines.find(|line| line.contains("serving the content tools")).unwrap();
    signal(child.id(), "TERM");
    assert!(child.wait().unwrap().success());
}

/// The guide's five lines, with another database, a free port, and a `claude`
/// that writes down what it is told; then a question, as an agent asks it.
#[test]
fn the_five_lines_of_the_guide_lead_to_an_answer() {
    let home = Home::new();
    let url = format!("sqlite:{}", home.path().join("site.sqlite").display());
    let made = shell(&home, &["content", "bench-site", "--database", &url, "--documents", "300"]);
    assert_eq!(made.code, 0, "{}", made.err);
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let guide = include_str!("../../../../docs/guide/content.md");
    let lines = guide.split("```sh\n").nth(1).unwrap().split("```").next().unwrap();
    assert_eq!(lines.lines().count(), 5, "{lines}");
    let lines = lines
        .replace("mysql://reader:secret@db.example/site", &url)
        .replace("4750", &port.to_string());
    let script = format!(
        "set -e\nclaude() {{ printf '%s\\n' \"$@\" > told.txt; }}\n{lines}\necho $! > server.pid\n"
    );
    home.write("lines.sh", &script);
    let mut bash = Command::new("bash");
    home.settle(&mut bash);
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_gatelet"));
    put_in_front(program.parent().unwrap(), &mut bash);
    let checked = std::fs::File::create(home.path().join("out.txt")).unwrap();
    bash.arg("lines.sh").stdin(Stdio::null()).stdout(checked).stderr(Stdio::null());
    let status = bash.status().unwrap();
    let checked = home.read("out.txt");
    assert!(status.success(), "{checked}");
    let _server = Background(home.read("server.pid").trim().parse().unwrap());
    assert_eq!(checked.matches("call: evo.").count(), 14, "{checked}");

    let told = home.read("told.txt");
    let told: Vec<&str> = told.lines().collect();
    let address = told.iter().find(|word| word.starts_with("http://")).unwrap();
    let credential = told.last().unwrap().strip_prefix("Authorization: ").unwrap();
    let deadline = Instant::now() + PATIENCE;
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(Instant::now() < deadline, "nobody listens on {port}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let site = Site { url: (*address).to_owned() };
    let ask = |method: &str, params: Value| {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let answer = site.post(&message, &[("Authorization", credential)]);
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.message()["result"].clone()
    };
    let welcome = ask("initialize", json!({"protocolVersion": "2025-06-18"}));
    assert_eq!(welcome["serverInfo"]["platform"], "eMCP");
    assert_eq!(ask("tools/list", json!({}))["tools"].as_array().unwrap().len(), 14);
    let cheap = json!({"limit": 5, "parent": 1, "with_tvs": ["tv1"], "tv_filters":
        [{"tv": "tv1", "op": "<", "value": 5000, "cast": "SIGNED"}]});
    let found = ask("tools/call", json!({"name": "evo.content.search", "arguments": cheap}));
    let items = found["structuredContent"]["items"].as_array().unwrap();
    assert!(!items.is_empty());
    for item in items {
        let value: i64 = item["tvs"]["tv1"].as_str().unwrap().parse().unwrap();
        assert!(value < 5000, "{item}");
    }
}
