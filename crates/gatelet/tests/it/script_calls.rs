//! Calls inside of scripts, and of a batch, are calls like any other: the same limits,
//! cache, redaction, visibility, checks, retries and cancelling.

use std::io::Write;

use serde_json::{Value, json};

use crate::kit::{Home, Pipe, SECRET, eventually, shell, text, upstream};
#[cfg(target_os = "linux")]
use crate::script_stops::worker_with;
use crate::scripts::{
    call_of, created, fails, handle, returns, run, run_with, serve_shop, shop, told,
};

/// A server that notes what it is called for, and one of whose tools dies at first.
const LAB: &str = r#"
import json, os, sys
reads = {"readOnlyHint": True}
anything = {"type": "object"}
strict = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"], "additionalProperties": False}
counted = {"type": "object", "properties": {"count": {"type": "integer"}, "names": {"type": "array", "items": {"type": "string"}}}, "required": ["count"]}
def tool(name, schema=anything, **more): return {"name": name, "description": name + " things.", "inputSchema": schema, "annotations": reads, **more}
tools = [tool("limited"), tool("counted"), tool("secret"), tool("hidden"), tool("strict", strict), tool("flaky"), tool("typed", strict, outputSchema=counted)]
tools += [tool("many%03d" % n, strict, outputSchema=counted) for n in range(130)]
directory = os.environ["LAB"]
def note(name):
    with open(os.path.join(directory, "seen"), "a") as file: file.write(name + "\n")
def answer(name, given):
    note(name)
    if name == "secret": return {"token": os.environ["SECRET"], "n": 7}
    if name == "flaky" and not os.path.exists(os.path.join(directory, "died")):
        open(os.path.join(directory, "died"), "w").close()
        os._exit(3)
    return {"count": len(open(os.path.join(directory, "seen")).readlines())}
def say(message):
    sys.stdout.write(json.dumps(message) + "\n"); sys.stdout.flush()
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if id is None: continue
    if method == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "lab", "version": "1"}}
    elif method == "tools/list": result = {"tools": tools}
    elif method == "tools/call":
        said = answer(message["params"]["name"], message["params"].get("arguments") or {})
        result = {"content": [{"type": "text", "text": json.dumps(said)}], "structuredContent": said}
    else:
        say({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no such method"}}); continue
    say({"jsonrpc": "2.0", "id": id, "result": result})
"#;

const CONTROLS: &str = "[builtin]\ntools = true\n\n[records]\nfile = \"calls.jsonl\"\n\n\
    [[controls.rate]]\ntool = \"lab.limited\"\nper_session = 2\n\n\
    [[visibility.rule]]\nhide = [\"lab.hidden\"]\n\n\
    [controls.cache]\nread_only = true\nallow = [\"lab.counted\"]\n\n\
    [controls.retry]\nattempts = 12\nbase_delay = \"100ms\"\nmax_delay = \"500ms\"\n\n";

fn lab() -> Home {
    let home = Home::new();
    home.write("lab.py", LAB);
    let lab = upstream("lab", std::path::Path::new("python3"), &["lab.py"]);
    let env = format!("env = {{ LAB = {:?}, SECRET = {SECRET:?} }}\n", home.path());
    let head = "[scripts]\nenabled = true\n\n[trust]\nmode = \"off\"\n\n";
    home.write("gatelet.toml", &format!("{head}{CONTROLS}{lab}{env}"));
    home
}

fn seen(home: &Home, tool: &str) -> usize {
    let seen = std::fs::read_to_string(home.path().join("seen")).unwrap_or_default();
    seen.lines().filter(|line| *line == tool).count()
}

#[test]
fn rules_for_calls_hold_inside_of_scripts() {
    let home = lab();
    let mut pipe = Pipe::open(&home);
    pipe.call("lab.strict", &json!({"n": 1}));
    // Limits count calls of scripts and of clients together.
    returns(
        &mut pipe,
        "const codes = []; for (let n = 0; n < 4; n++) try { await tools.lab.limited({}) } \
         catch (e) { codes.push(e.code) } return codes",
        r#"["rate-limited","rate-limited"]"#,
    );
    let limited = json!({"namespace": "lab", "function": "limited", "kwargs": {}});
    assert_eq!(pipe.verb("call", &limited)["isError"], true);
    assert_eq!(seen(&home, "limited"), 2);
    // The cache is one.
    let code = "const one = await tools.lab.counted({}), other = await tools.lab.counted({}); \
                return one.count === other.count";
    returns(&mut pipe, code, "true");
    pipe.call("lab.counted", &json!({}));
    assert_eq!(seen(&home, "counted"), 1);
    // Secrets are masked before a script sees them.
    let code =
        "const got = await tools.lab.secret({}); return [got.n, got.token.length, got.token]";
    let told = text(&run(&mut pipe, code));
    assert!(told.starts_with("[7,") && !told.contains(SECRET), "{told}");
    assert_eq!(seen(&home, "secret"), 1);
    // What is hidden is not there.
    let code = "try { await tools.lab.hidden({}) } catch (e) { return e.code + ' ' + e.message }";
    let told = text(&run(&mut pipe, code));
    assert!(told.starts_with("UNKNOWN_FUNCTION") && !told.contains("hidden things"), "{told}");
    assert_eq!(seen(&home, "hidden"), 0);
    // Errors teach in the words of a script.
    let code = "try { await tools.lab.strict({n: 0, m: 1}) } catch (e) { return e.code + ' ' + e.message }";
    let told = text(&run(&mut pipe, code));
    assert!(
        told.starts_with("ARGS_INVALID") && told.contains('m') && told.contains("minimum"),
        "{told}"
    );
    assert!(told.contains("tools.lab.strict(args: {n: number})"), "{told}");
    let code = "try { await tools.units.convrt({}) } catch (e) { return e.code + ' ' + e.message }";
    let told = text(&run(&mut pipe, code));
    assert!(told.contains("- tools.units.convert(args: {"), "{told}");
    // A call that only reads is tried again, and a script does not notice.
    returns(&mut pipe, "return 0 < (await tools.lab.flaky({})).count", "true");
    assert_eq!(seen(&home, "flaky"), 2);
    assert!(pipe.close().success());
    let records = home.read("calls.jsonl");
    let inner = records.lines().filter(|line| line.contains("\"script_id\""));
    for part in ["execute.cache_hit", "execute.failed", "\"attempts\":2"] {
        assert!(inner.clone().any(|line| line.contains(part)), "no {part} in\n{records}");
    }
}

#[test]
fn every_function_is_declared_on_one_page_and_with_its_types() {
    let home = lab();
    let mut pipe = Pipe::open(&home);
    pipe.call("lab.strict", &json!({"n": 1}));
    let help = |pipe: &mut Pipe, kwargs: Value| {
        text(&pipe.verb("help", &json!({"namespace": "lab", "kwargs": kwargs})))
    };
    for size in [1_000, 20_000] {
        let (mut declared, mut page) = (Vec::new(), 1);
        loop {
            let told = help(&mut pipe, json!({"format": "ts", "page": page, "sizelimit": size}));
            let lines = told.lines().filter(|line| line.starts_with("tools.lab."));
            let names = lines.map(|line| line.split(['(', '.']).nth(2).unwrap().to_owned());
            let before = declared.len();
            declared.extend(names);
            assert!(before < declared.len(), "page {page} is empty: {told}");
            if !told.contains(&format!("`page` {}", page + 1)) {
                break;
            }
            page += 1;
        }
        let n_all = declared.len();
        declared.sort();
        declared.dedup();
        assert_eq!((declared.len(), n_all), (136, 136), "each once, in {page} pages of {size}");
        assert!(2 < page);
    }
    let typed = json!({"namespace": "lab", "function": "typed", "kwargs": {"format": "ts"}});
    let told = text(&pipe.verb("help", &typed));
    assert!(
        told.contains(
            "tools.lab.typed(args: {n: number}): Promise<{count: number; names?: string[]}>"
        ),
        "{told}"
    );
}

#[test]
fn of_several_calls_one_asks_one_is_limited_and_the_others_are_answered() {
    let rules = "[[controls.rule]]\naction = \"ask\"\ntool = \"shop.create\"\n\n\
                 [[controls.rate]]\ntool = \"shop.big\"\nper_session = 1\n\n[approvals]\nwait = \"0s\"\n";
    let home = shop(rules);
    let mut pipe = Pipe::open(&home);
    let call = |function: &str, kwargs: Value, pick: &str| json!({"namespace": "shop", "function": function, "kwargs": kwargs, "pick": pick});
    let calls = json!([
        call("list", json!({}), "length"),
        call("create", json!({"id": 1}), "."),
        call("big", json!({"rows": 3}), "length"),
        call("big", json!({"rows": 4}), "length"),
        call("price", json!({"id": 4}), ".price"),
    ]);
    let told = text(&pipe.verb("call", &json!({"function": "calls", "calls": calls})));
    let parts: Vec<&str> = told.split("\n[").collect();
    assert_eq!(parts.len(), 5, "{told}");
    assert!(parts[0].ends_with("shop.list:\n12\n") || parts[0].contains(":\n12"), "{told}");
    assert!(parts[1].contains("(error)") && parts[1].contains("approval request"), "{told}");
    assert!(parts[2].contains(":\n3"), "{told}");
    assert!(parts[3].contains("(error)") && !parts[3].contains(":\n4"), "{told}");
    assert!(parts[4].contains(":\n40"), "{told}");
    assert_eq!(created(&home), 0);
    // The same in a script: it pauses for the one, and catches the other.
    let code = "const limited = await tools.shop.big({rows: 1}).catch(e => e.code); \
                const made = await tools.shop.create({id: 1}); return [limited, made.created.id]";
    let told = text(&run(&mut pipe, code));
    assert!(told.starts_with("**Paused:**"), "{told}");
    let number = told.split("approval request ").nth(1).unwrap();
    let number: String = number.chars().take_while(char::is_ascii_digit).collect();
    assert_eq!(shell(&home, &["approvals", "allow", &number, "--yes"]).code, 0);
    let told = text(&run_with(&mut pipe, &json!({"resume": handle(&told)})));
    assert_eq!((told.as_str(), created(&home)), (r#"["rate-limited",1]"#, 1));
    fails(&mut pipe, "await tools.shop.big({rows: 1})", "shop");
}

/// Waits in a call, with something large in memory, and would change something afterwards.
#[cfg(target_os = "linux")]
const WAITS: &str = "const large = 'x'.repeat(40 << 20); await tools.shop.wait({}); \
                     await tools.shop.create({id: 1}); return large.length";

#[cfg(target_os = "linux")]
fn is_running(home: &Home, gate: u32) -> bool {
    home.path().join("created.waits").exists() && worker_with(gate, 40).is_some()
}

#[test]
#[cfg(target_os = "linux")]
fn a_script_ends_with_the_request_that_its_client_cancels() {
    let home = shop("");
    let mut pipe = Pipe::open(&home);
    pipe.call("shop.list", &json!({}));
    let arguments = json!({"namespace": "gatelet", "function": "run", "kwargs": {"code": WAITS}});
    let params = json!({"name": "call", "arguments": arguments});
    pipe.send(&json!({"jsonrpc": "2.0", "id": 99, "method": "tools/call", "params": params}));
    eventually("it waits", || is_running(&home, pipe.id()));
    let cancelled = json!({"requestId": 99});
    pipe.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled}));
    eventually("its worker is gone", || !is_running(&home, pipe.id()));
    home.write("created.go", "");
    returns(&mut pipe, "return (await tools.shop.list({})).length", "12");
    assert_eq!(created(&home), 0);
}

#[test]
#[cfg(target_os = "linux")]
fn a_script_ends_with_the_http_request_that_is_closed() {
    let home = shop("");
    let served = serve_shop(&home, None);
    let told = |code: &str| told(&served, None, code);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "it", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({"name": "call", "arguments": call_of(WAITS), "_meta": meta});
    let body =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
         Mcp-Method: tools/call\r\nMcp-Name: call\r\nContent-Length: {}\r\n\r\n",
        served.authority(),
        body.len()
    );
    let mut stream = std::net::TcpStream::connect(served.authority()).unwrap();
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    eventually("it waits", || is_running(&home, served.id()));
    drop(stream);
    eventually("its worker is gone", || !is_running(&home, served.id()));
    assert_eq!(told("return 'next'"), "next");
    home.write("created.go", "");
    eventually("the shop answers", || told("return (await tools.shop.list({})).length") == "12");
    assert_eq!(created(&home), 0);
}
