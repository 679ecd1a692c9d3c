//! Scripts that call functions: what they do, what they cannot do, and how they
//! go on after they stopped.

use serde_json::{Value, json};

use crate::kit::{Home, Mark, Pipe, Served, eventually, npm_upstream, shell, text, tool, upstream};

/// A server that lists twelve orders, prices each, and notes in a file what it
/// creates.
const SHOP: &str = r#"
import json, os, sys
reads, changes = {"readOnlyHint": True}, {"readOnlyHint": False, "destructiveHint": True}
anything = {"type": "object"}
def tool(name, hints): return {"name": name, "description": name + " orders.", "inputSchema": anything, "annotations": hints}
tools = [tool("list", reads), tool("price", reads), tool("create", changes), tool("big", reads), tool("hang", reads), tool("wait", reads)]
def answer(name, given):
    if name == "list": return [{"id": n, "name": "order %d" % n} for n in range(12)]
    if name == "price": return {"price": given["id"] * 10}
    if name == "big": return [{"id": n, "text": "x" * 500} for n in range(given.get("rows", 10000))]
    if name == "hang": import time; time.sleep(3600)
    if name == "wait":
        import time
        open(os.environ["CREATED"] + ".waits", "w").close()
        while not os.path.exists(os.environ["CREATED"] + ".go"): time.sleep(0.01)
        return "waited"
    with open(os.environ["CREATED"], "a") as file: file.write(json.dumps(given) + "\n")
    return {"created": given}
def say(message):
    sys.stdout.write(json.dumps(message) + "\n"); sys.stdout.flush()
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if id is None: continue
    if method == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "shop", "version": "1"}}
    elif method == "tools/list": result = {"tools": tools}
    elif method == "tools/call":
        params = message["params"]
        result = {"content": [{"type": "text", "text": json.dumps(answer(params["name"], params.get("arguments") or {}))}]}
    else:
        say({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no such method"}}); continue
    say({"jsonrpc": "2.0", "id": id, "result": result})
"#;

/// A home with the shop and scripts; `more` stands at the end.
pub(crate) fn shop(more: &str) -> Home {
    let home = Home::new();
    home.write("shop.py", SHOP);
    let created = home.path().join("created");
    let shop = upstream("shop", std::path::Path::new("python3"), &["shop.py"]);
    let config = format!(
        "[scripts]\nenabled = true\n\n[trust]\nmode = \"off\"\n\n{shop}env = {{ CREATED = {created:?} }}\n\n{more}"
    );
    home.write("gatelet.toml", &config);
    home
}

/// The arguments of `call` for a script.
pub(crate) fn call_of(code: &str) -> Value {
    json!({"namespace": "gatelet", "function": "run", "kwargs": {"code": code}})
}

/// What a script returns to a client over HTTP.
pub(crate) fn told(served: &Served, key: Option<&str>, code: &str) -> String {
    served.told(key, "call", &call_of(code))
}

/// Serves the shop over HTTP, and waits until it is listed.
pub(crate) fn serve_shop(home: &Home, key: Option<&str>) -> Served {
    let served = Served::start(home);
    let is_listed = "return (await tools.find('wait orders')).includes('shop')";
    eventually("the shop is listed", || told(&served, key, is_listed) == "true");
    served
}

pub(crate) fn created(home: &Home) -> usize {
    std::fs::read_to_string(home.path().join("created")).unwrap_or_default().lines().count()
}

pub(crate) fn run(pipe: &mut Pipe, code: &str) -> Value {
    run_with(pipe, &json!({"code": code}))
}

pub(crate) fn run_with(pipe: &mut Pipe, kwargs: &Value) -> Value {
    pipe.verb("call", &json!({"namespace": "gatelet", "function": "run", "kwargs": kwargs}))
}

#[track_caller]
pub(crate) fn returns(pipe: &mut Pipe, code: &str, expected: &str) {
    let result = run(pipe, code);
    assert_ne!(result["isError"], true, "{}", text(&result));
    assert_eq!(text(&result), expected);
}

#[track_caller]
pub(crate) fn fails(pipe: &mut Pipe, code: &str, expected: &str) {
    let result = run(pipe, code);
    assert_eq!(result["isError"], true, "{code}: {}", text(&result));
    assert!(text(&result).contains(expected), "{code}: {}", text(&result));
}

pub(crate) fn handle(told: &str) -> String {
    let (_, rest) = told.split_once("\"resume\": \"").unwrap_or_else(|| panic!("{told}"));
    rest.split('"').next().unwrap().to_owned()
}

#[test]
fn a_script_joins_filters_and_counts_and_only_its_return_comes_back() {
    let home = shop("[records]\nfile = \"calls.jsonl\"\n");
    let mut pipe = Pipe::open(&home);
    let join = "const orders = await tools.shop.list({});\n\
                const prices = await Promise.all(orders.map(o => tools.shop.price({id: o.id})));\n\
                console.log('orders', orders.length);\n\
                return prices.reduce((sum, p) => sum + p.price, 0)";
    let result = run(&mut pipe, join);
    assert_eq!(text(&result), "660\nLog:\norders 12");
    returns(
        &mut pipe,
        "return (await tools.shop.big({})).filter(r => r.id % 1000 === 7).map(r => r.id)",
        "[7,1007,2007,3007,4007,5007,6007,7007,8007,9007]",
    );
    returns(&mut pipe, "return (await tools.find('price of an order')).includes('shop')", "true");
    returns(
        &mut pipe,
        "try { await tools.shop.nothing({}) } catch (e) { return e.code }",
        "UNKNOWN_FUNCTION",
    );
    returns(
        &mut pipe,
        "try { await tools.gatelet.run({code: '1'}) } catch (e) { return e.message }",
        "a script cannot run scripts",
    );
    let long = run(&mut pipe, "return await tools.shop.big({})");
    assert!(text(&long).contains("returned more than"), "{}", text(&long));
    let gated = run(&mut pipe, "return (await tools.shop.big({})).slice(0, 100)");
    assert!(text(&gated).starts_with("**Gated:**"), "what is returned passes the gate");
    assert!(pipe.close().success());
    let records = home.read("calls.jsonl");
    let inner = records.lines().filter(|line| line.contains("\"script_id\"")).count();
    assert!(13 <= inner, "{inner} calls were made by scripts:\n{records}");
}

#[test]
fn hostile_scripts_end_and_harm_nobody() {
    let home = shop("");
    let config = home.read("gatelet.toml").replace(
        "enabled = true",
        "enabled = true\nseconds = 20\nmillion_steps = 20\nmemory_mb = 16\ncalls = 5",
    );
    home.write("gatelet.toml", &config);
    let mut pipe = Pipe::open(&home);
    fails(&mut pipe, "while (true) {}", "it took more than 20000000 steps");
    fails(
        &mut pipe,
        "const a = []; while (true) a.push('x'.repeat(100000) + a.length)",
        "it used more than 16 MB",
    );
    fails(&mut pipe, "return /(a+)+$/.test('a'.repeat(40) + 'b')", "steps");
    fails(&mut pipe, "(function f() { return f() + 1 })()", "nest too deeply");
    fails(
        &mut pipe,
        "for (let i = 0; i < 9; i++) await tools.shop.price({id: i})",
        "more than 5 calls",
    );
    fails(&mut pipe, "return (", "the body of an async JavaScript function");
    fails(&mut pipe, "null.x", "TypeError");
    fails(&mut pipe, "await new Promise(() => {})", "never comes");
    fails(&mut pipe, "", "`code` is required");
    returns(
        &mut pipe,
        "return typeof process + typeof require + typeof fetch",
        "undefinedundefinedundefined",
    );
    returns(&mut pipe, "return 1 + 1", "2");
    assert_eq!(
        pipe.call("gatelet.status", &json!({})).lines().next(),
        Some("The only upstream is available.")
    );
}

#[test]
fn what_the_engine_does_not_count_ends_by_the_clock_and_the_next_script_runs() {
    let home = shop("");
    let config = home.read("gatelet.toml").replace("enabled = true", "enabled = true\nseconds = 2");
    home.write("gatelet.toml", &config);
    let mut pipe = Pipe::open(&home);
    for code in [
        "const a = []; a.length = 2 ** 32 - 1; a.reverse(); return 1",
        "return (10n ** 3000000n) % 7n === 1n ? 1 : (7n ** 3000000n).toString().length",
    ] {
        let result = run(&mut pipe, code);
        assert_eq!(result["isError"], true, "{code}: {}", text(&result));
        returns(&mut pipe, "return 1 + 1", "2");
    }
    for (code, expected) in [
        ("throw null", "null, which the script threw"),
        ("throw undefined", "it threw undefined"),
        (
            "await Promise.all(Array.from({length: 5000}, () => tools.shop.list({})))",
            "more than 200 calls",
        ),
    ] {
        fails(&mut pipe, code, expected);
    }
}

#[test]
fn what_a_script_poisons_is_not_there_for_the_next_one_nor_for_the_gate() {
    let home = shop("");
    let config = home.read("gatelet.toml").replace("enabled = true", "enabled = true\nseconds = 2");
    home.write("gatelet.toml", &config);
    let mut pipe = Pipe::open(&home);
    pipe.call("shop.list", &json!({}));
    let poison = "globalThis.seen = []; const note = x => { seen.push(x); return x };\n\
        Object.prototype.toJSON = function () { return note('stolen') };\n\
        Object.defineProperty(Object.prototype, 'price', {set: note, get: () => 666, configurable: true});\n\
        JSON.stringify = note; JSON.parse = note; Promise.prototype.then = note; Array.prototype.push = note;\n\
        Function.prototype.apply = note; Reflect.construct = note;\n\
        return 1";
    run(&mut pipe, poison);
    returns(
        &mut pipe,
        "const p = await tools.shop.price({id: 4}); return [p.price, typeof seen, JSON.stringify({a: 1})]",
        "[40,\"undefined\",\"{\\\"a\\\":1}\"]",
    );
    // What a script answers for its own calls does not become another call's answer.
    let result = run(
        &mut pipe,
        "Object.prototype.then = function (f) { f({price: 1}) }; return await tools.shop.price({id: 5})",
    );
    assert_eq!(result["isError"], true, "it resolves into itself for ever: {}", text(&result));
    assert_eq!(pipe.call("shop.price", &json!({"id": 7})), "{\"price\": 70}");
}

#[test]
fn a_journal_that_cannot_be_kept_stops_calls_that_change_something() {
    let home = shop("[artifacts]\nstore = \"disk\"\nowner_megabytes = 1\n");
    let mut pipe = Pipe::open(&home);
    let code = "await tools.shop.create({id: 1}); await tools.shop.big({}); \
                try { await tools.shop.create({id: 2}) } catch (e) { return e.code }";
    returns(&mut pipe, code, "JOURNAL_NOT_KEPT");
    assert_eq!(created(&home), 1);
}

#[test]
fn a_model_saves_a_recipe_only_once_somebody_else_agrees() {
    let home = shop("");
    let mut pipe = Pipe::open(&home);
    let draft = json!({
        "name": "order_total",
        "description": "Adds up the prices of all orders.",
        "inputs": {"type": "object", "properties": {"first": {"type": "integer"}}, "required": ["first"]},
        "functions": ["shop.list", "shop.price"],
        "code": "const orders = (await tools.shop.list({})).slice(inputs.first);\n\
                 const prices = await Promise.all(orders.map(o => tools.shop.price({id: o.id})));\n\
                 return prices.reduce((sum, p) => sum + p.price, 0)",
    });
    let save = json!({"namespace": "gatelet", "function": "save_recipe", "kwargs": draft});
    let mut later = save.clone();
    later["confirm"] = json!("confirm-later");
    let asked = text(&pipe.verb("call", &later));
    assert!(
        asked.contains("gatelet.recipes.order_total") && asked.contains("approval request"),
        "{asked}"
    );
    assert!(!home.path().join("recipes").exists(), "nothing is saved yet");
    let number = asked.split("approval request ").nth(1).unwrap();
    let number: String = number.chars().take_while(char::is_ascii_digit).collect();
    assert_eq!(shell(&home, &["approvals", "allow", &number, "--yes"]).code, 0);
    // Who agreed to this code did not agree to another.
    let mut other = later.clone();
    other["kwargs"]["code"] = json!("return await tools.shop.create({id: 1})");
    let refused = text(&pipe.verb("call", &other));
    assert!(refused.contains("approval request"), "{refused}");
    assert!(!home.path().join("recipes").exists());
    let saved = text(&pipe.verb("call", &save));
    assert!(saved.contains("Saved"), "{saved}");
    eventually("it is a function", || {
        let call = json!({"namespace": "gatelet.recipes", "function": "order_total", "kwargs": {"first": 10}});
        text(&pipe.verb("call", &call)) == "210"
    });
    let again = text(&pipe.verb("call", &save));
    assert!(again.contains("already"), "{again}");
    assert!(
        home.read("recipes/order_total.js").contains("functions: [\"shop.list\",\"shop.price\"]")
    );

    // Where the model itself is handed a token, nobody outside agrees.
    assert!(pipe.close().success());
    let config = home.read("gatelet.toml");
    let config = config.replace("mode = \"off\"", "mode = \"off\"\nconfirm = \"token\"");
    home.write("gatelet.toml", &config);
    let mut pipe = Pipe::open(&home);
    let mut second = save.clone();
    second["kwargs"]["name"] = json!("second");
    let refused = text(&pipe.verb("call", &second));
    assert!(refused.contains("gatelet recipe add"), "{refused}");
}

#[test]
fn the_operator_shapes_results_without_a_restart_and_the_records_say_which() {
    let shape = "[[shape]]\ntool = \"shop.list\"\npick = \"[.[].id]\"\n";
    let home = shop(&format!("[records]\nfile = \"calls.jsonl\"\n\n{shape}"));
    let mut pipe = Pipe::open(&home);
    let told = pipe.call("shop.list", &json!({}));
    assert!(told.starts_with("[0,1,2,3,4,5,6,7,8,9,10,11]"), "{told}");
    assert!(told.contains("shaped by the operator"), "{told}");
    let all = json!({"namespace": "shop", "function": "list", "pick": "."});
    assert!(text(&pipe.verb("call", &all)).contains("order 3"));
    let config = home.read("gatelet.toml").replace("[.[].id]", "length");
    home.write("gatelet.toml", &config);
    eventually("the new shape holds", || pipe.call("shop.list", &json!({})).starts_with("12\n"));
    for _ in 0..3 {
        let rows = json!({"rows": 400});
        let long = json!({"namespace": "shop", "function": "big", "kwargs": rows, "pick": ".[:8]"});
        assert_ne!(pipe.verb("call", &long)["isError"], true);
    }
    assert!(pipe.close().success());
    let told = shell(&home, &["tokens", "--results", "--json"]).json();
    let of = |name: &str| {
        let tools = told["tools"].as_array().unwrap();
        let found = tools.iter().find(|one| one["tool"].as_str().unwrap().contains(name));
        found.unwrap_or_else(|| panic!("{told}")).clone()
    };
    assert_eq!(of("list")["would_gain"], false, "{told}");
    assert_eq!(of("big")["calls"], 3, "each call may want its own answer: {told}");
    assert!(of("big")["tokens_sent"].as_u64() < of("big")["tokens_raw"].as_u64(), "{told}");
}

#[test]
fn a_skill_points_to_a_recipe() {
    let home = shop("[skills]\ndirectories = [\"skills\"]\n");
    home.write("recipes/order_total.js", TOTAL);
    home.write(
        "skills/totals/SKILL.md",
        "---\nname: totals\ndescription: How to add up orders.\nfunctions: gatelet.recipes.order_total\n---\n\
         Call `gatelet.recipes.order_total` with the first order to count.\n",
    );
    let mut pipe = Pipe::open(&home);
    let listed = text(&pipe.verb("skill", &json!({})));
    assert!(listed.contains("totals"), "{listed}");
    let told = text(&pipe.verb("skill", &json!({"name": "totals"})));
    assert!(told.contains("order_total"), "{told}");
    assert!(!told.contains("not available") && !told.contains("missing"), "{told}");
    assert_eq!(pipe.call("gatelet.recipes.order_total", &json!({"first": 10})), "210");
}

#[test]
fn a_script_that_takes_too_long_is_stopped_with_its_calls() {
    let home = shop("");
    let config = home.read("gatelet.toml").replace("enabled = true", "enabled = true\nseconds = 1");
    home.write("gatelet.toml", &config);
    let mut pipe = Pipe::open(&home);
    pipe.call("shop.list", &json!({}));
    fails(
        &mut pipe,
        "await tools.shop.list({}); await tools.shop.hang({})",
        "it took longer than 1 s",
    );
    returns(&mut pipe, "return 3", "3");
}

#[test]
fn a_script_that_waits_for_approval_goes_on_without_doing_anything_twice() {
    let rule = "[[controls.rule]]\naction = \"ask\"\ntool = \"shop.create\"\n\n[artifacts]\nstore = \"disk\"\n";
    let home = shop(rule);
    let mut pipe = Pipe::open(&home);
    let code = "const orders = await tools.shop.list({});\n\
                const one = await tools.shop.create({id: orders[0].id});\n\
                const two = await tools.shop.create({id: orders[1].id});\n\
                return [one.created.id, two.created.id, orders.length]";
    let mut told = text(&run(&mut pipe, code));
    assert!(
        told.starts_with("**Paused:** the script waits before\n- tools.shop.create({\"id\":0})"),
        "{told}"
    );
    assert_eq!(created(&home), 0);
    let first = told.clone();
    let again = text(&run(&mut pipe, code));
    assert!(again.contains("was begun before and did not end"), "{again}");
    for done in 0..2 {
        let number = told.split("approval request ").nth(1).unwrap_or_else(|| panic!("{told}"));
        let number: String = number.chars().take_while(char::is_ascii_digit).collect();
        let kwargs = json!({"resume": handle(&told)});
        // Nobody agreed yet.
        told = text(&run_with(&mut pipe, &kwargs));
        assert!(told.starts_with("**Paused:**"), "{told}");
        assert_eq!(created(&home), done);
        let allowed = shell(&home, &["approvals", "allow", &number, "--yes"]);
        assert_eq!(allowed.code, 0, "{}", allowed.err);
        // After a restart, too.
        pipe.kill();
        pipe = Pipe::open(&home);
        told = text(&run_with(&mut pipe, &kwargs));
        assert_eq!(created(&home), done + 1, "{told}");
    }
    assert_eq!(told, "[0,1,12]");
    let again = text(&run_with(&mut pipe, &json!({"resume": handle(&first)})));
    assert!(again.contains("has ended"), "{again}");
    assert_eq!(created(&home), 2);
}

#[test]
fn a_script_from_the_shell_that_stopped_for_approval_goes_on_when_it_is_run_again() {
    let rule = "[[controls.rule]]\naction = \"ask\"\ntool = \"shop.create\"\n\n[artifacts]\nstore = \"disk\"\n";
    let home = shop(rule);
    home.write(
        "make.js",
        "await tools.shop.list({}); const made = await tools.shop.create({id: 7}); return made.created.id",
    );
    let _pipe = Pipe::open(&home);
    let stopped = shell(&home, &["run", "make.js"]);
    assert_eq!(stopped.code, 1, "{stopped:?}");
    assert!(stopped.err.contains("gatelet approvals show 1"), "{stopped:?}");
    assert_eq!(created(&home), 0);
    let ran = shell(&home, &["run", "make.js", "--yes", "--text"]);
    assert!(ran.code == 0 && ran.out.contains('7'), "{ran:?}");
    assert!(ran.err.contains("goes on from there"), "{ran:?}");
    assert_eq!(created(&home), 1);
    // Stopped again, and started over.
    assert_eq!(shell(&home, &["run", "make.js"]).code, 1);
    let over = shell(&home, &["run", "make.js", "--fresh", "--yes", "--text"]);
    assert!(over.code == 0 && !over.err.contains("goes on"), "{over:?}");
    assert_eq!(created(&home), 2);
}

#[test]
fn scripts_of_a_gatelet_that_ends_end_with_it() {
    let home = shop("");
    let mark = Mark::new();
    let mut command = home.gatelet();
    command.args(["serve", "--stdio", "--log", "warn"]);
    mark.put_on(&mut command);
    let mut pipe = Pipe::start(command);
    returns(&mut pipe, "return 1", "1");
    let id = pipe.id();
    pipe.kill();
    eventually("no process is left", || {
        let command = format!("/proc/{id}");
        !std::path::Path::new(&command).exists() && mark.processes().is_empty()
    });
}

#[test]
fn scripts_are_off_until_they_are_switched_on() {
    let home = Home::with("[builtin]\ntools = true\n");
    let mut pipe = Pipe::open(&home);
    let result = run(&mut pipe, "return 1");
    assert_eq!(result["isError"], true);
    let told = text(&result);
    assert!(told.contains("Scripts are off") && told.contains("[scripts]"), "{told}");
    home.write("one.js", "return 1");
    let ran = shell(&home, &["run", "one.js"]);
    assert!(ran.code == 2 && ran.err.contains("[scripts] enabled = true"), "{ran:?}");
    home.write("gatelet.toml", "[builtin]\ntools = true\n[scripts]\nenabled = true\n");
    let ran = shell(&home, &["run", "one.js"]);
    assert!(ran.code == 1 && ran.err.contains("restart"), "{ran:?}");
}

#[test]
fn types_for_scripts_come_from_help() {
    let home = shop("");
    let mut pipe = Pipe::open(&home);
    pipe.call("shop.list", &json!({}));
    let told = pipe.verb("help", &json!({"namespace": "shop", "kwargs": {"format": "ts"}}));
    assert!(
        text(&told).contains("tools.shop.create(args?: {[key: string]: any}): Promise<any>"),
        "{}",
        text(&told)
    );
}

/// One gatelet serves all checks: the servers are not started twice.
#[test]
fn a_script_works_across_real_servers() {
    testkit::needs!(Tools);
    let home = Home::new();
    std::fs::create_dir_all(home.path().join("files")).unwrap();
    for n in 0..12 {
        home.write(&format!("files/note{n}.txt"), &format!("note {n}\n{}", "word ".repeat(n)));
    }
    let files = home.path().join("files");
    let repository = home.path().join("repository");
    let place = repository.to_str().unwrap();
    for words in [
        vec!["init", "-q", place],
        vec![
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
            "first",
        ],
    ] {
        assert!(std::process::Command::new("git").args(words).status().unwrap().success());
    }
    let database = home.path().join("data.db");
    let config = [
        "[scripts]\nenabled = true\n\n[trust]\nmode = \"off\"\n\n".to_owned(),
        npm_upstream("files", "server-filesystem", &[files.to_str().unwrap()]),
        npm_upstream("graph", "server-memory", &[])
            + &format!("env = {{ MEMORY_FILE_PATH = {:?} }}\n\n", home.path().join("graph.json")),
        upstream("git", &tool("py/bin/mcp-server-git"), &["--repository", place]),
        upstream(
            "sqlite",
            &tool("py1/bin/mcp-server-sqlite"),
            &["--db-path", database.to_str().unwrap()],
        ),
    ];
    home.write("gatelet.toml", &config.concat());
    let mut pipe = Pipe::open(&home);
    let code = "const listed = await tools.files.list_directory({path: inputs.files});\n\
        const names = (listed.content ?? listed).split('\\n').filter(l => l.startsWith('[FILE]')).map(l => l.slice(7));\n\
        await tools.sqlite.create_table({query: 'create table notes (name text, words integer)'});\n\
        for (const name of names) {\n\
          const read = await tools.files.read_text_file({path: inputs.files + '/' + name});\n\
          const words = (read.content ?? read).split(/\\s+/).filter(w => w === 'word').length;\n\
          await tools.sqlite.write_query({query: `insert into notes values ('${name}', ${words})`});\n\
        }\n\
        const rows = await tools.sqlite.read_query({query: 'select sum(words) as n from notes'});\n\
        const log = await tools.git.git_log({repo_path: inputs.repository});\n\
        await tools.graph.create_entities({entities: [{name: 'notes', entityType: 'set', observations: ['counted']}]});\n\
        const graph = await tools.graph.read_graph({});\n\
        return {files: names.length, rows, first: JSON.stringify(log).includes('first'), entities: graph.entities.length}";
    let inputs = json!({"files": files, "repository": repository});
    let result = run_with(&mut pipe, &json!({"code": code, "inputs": inputs}));
    let told = text(&result);
    assert_ne!(result["isError"], true, "{told}");
    assert!(told.contains("\"files\":12") && told.contains("66"), "{told}");
    assert!(told.contains("\"first\":true,\"entities\":1"), "{told}");
}

const TOTAL: &str = "/*---\nname: order_total\ndescription: Adds up the prices of all orders.\n\
    inputs: {type: object, properties: {first: {type: integer}}, required: [first]}\n\
    functions: [shop.list, shop.price]\n---*/\n\
    const orders = (await tools.shop.list({})).slice(inputs.first);\n\
    const prices = await Promise.all(orders.map(o => tools.shop.price({id: o.id})));\n\
    return prices.reduce((sum, p) => sum + p.price, 0)\n";

#[test]
fn a_recipe_is_a_function_like_any_other() {
    let home = shop("");
    home.write("total.js", TOTAL);
    assert_eq!(shell(&home, &["recipe", "add", "total.js"]).code, 0);
    assert_eq!(shell(&home, &["recipe", "add", "total.js"]).code, 2, "it is there already");
    home.write("bad.js", "return 1");
    let bad = shell(&home, &["recipe", "add", "bad.js"]);
    assert!(bad.code == 2 && bad.err.contains("begins with"), "{}", bad.err);
    let creates = TOTAL
        .replace("order_total", "creates")
        .replace("tools.shop.list({})", "tools.shop.create({})");
    home.write("recipes/creates.js", &creates);
    let listed = shell(&home, &["recipe", "list"]).json();
    assert_eq!(listed[1]["name"], "order_total", "{listed}");

    let mut pipe = Pipe::open(&home);
    assert_eq!(pipe.call("gatelet.recipes.order_total", &json!({"first": 10})), "210");
    let help = text(&pipe.verb("help", &json!({"namespace": "gatelet.recipes"})));
    assert!(help.contains("order_total") && help.contains("Adds up the prices"), "{help}");
    let found = text(&pipe.verb("help", &json!({"kwargs": {"query": "add up prices of orders"}})));
    assert!(found.contains("order_total"), "{found}");
    let call = |kwargs: Value, function: &str| json!({"namespace": "gatelet.recipes", "function": function, "kwargs": kwargs});
    let wrong = pipe.verb("call", &call(json!({"first": "x"}), "order_total"));
    assert!(text(&wrong).contains("do not fit"), "{}", text(&wrong));
    let refused = pipe.verb("call", &call(json!({"first": 1}), "creates"));
    assert!(text(&refused).contains("does not name tools.shop.create"), "{}", text(&refused));
    assert_eq!(created(&home), 0);

    // One that comes and goes while the gate runs.
    let later = TOTAL.replace("order_total", "later");
    home.write("later.js", &later);
    let is_there = |pipe: &mut Pipe| {
        let help = text(&pipe.verb("help", &json!({"namespace": "gatelet.recipes"})));
        help.contains("later")
    };
    assert_eq!(shell(&home, &["recipe", "add", "later.js"]).code, 0);
    eventually("the gate has the recipe", || is_there(&mut pipe));
    assert_eq!(shell(&home, &["recipe", "rm", "later"]).code, 0);
    eventually("the gate has it no more", || !is_there(&mut pipe));
    assert!(pipe.close().success());

    assert_eq!(shell(&home, &["recipe", "rm", "creates"]).code, 0);
    assert_eq!(shell(&home, &["recipe", "rm", "creates"]).code, 2);
    let ran =
        shell(&home, &["run", "recipes/order_total.js", "--inputs", "{\"first\": 11}", "--text"]);
    assert!(ran.code == 0 && ran.out.contains("110"), "{} {}", ran.out, ran.err);
}

#[test]
fn the_gateway_surface_runs_scripts_where_the_operator_wants_it() {
    let home = shop("");
    let served = Served::start(&home);
    assert!(!served.at("gateway").tools().contains(&"tool_run".to_owned()));
    drop(served);
    let config =
        home.read("gatelet.toml").replace("enabled = true", "enabled = true\ngateway = true");
    home.write("gatelet.toml", &config);
    let served = Served::start(&home);
    let site = served.at("gateway");
    assert!(site.tools().contains(&"tool_run".to_owned()));
    eventually("the shop is listed", || {
        let told =
            site.call("tool_run", &json!({"code": "return (await tools.shop.list({})).length"}));
        text(&told) == "12"
    });
}

#[test]
fn what_a_rule_denied_is_not_told_as_done() {
    let home = shop("[[controls.rule]]\naction = \"deny\"\ntool = \"shop.create\"\n");
    let mut pipe = Pipe::open(&home);
    let told = text(&run(&mut pipe, "return await tools.shop.create({n: 1})"));
    assert!(!told.contains("not undone"), "{told}");
    assert_eq!(created(&home), 0);
}

#[test]
#[cfg(target_os = "linux")]
fn a_script_that_computes_ends_with_a_gatelet_that_is_killed() {
    let home = shop("");
    // Its own limit does not end it meanwhile.
    let config =
        home.read("gatelet.toml").replace("enabled = true", "enabled = true\nseconds = 600");
    home.write("gatelet.toml", &config);
    let workers = |gate: u32| {
        let path = format!("/proc/{gate}/task");
        let tasks = std::fs::read_dir(path).into_iter().flatten().filter_map(Result::ok);
        let children = tasks
            .map(|task| std::fs::read_to_string(task.path().join("children")).unwrap_or_default());
        let children = children.collect::<String>();
        let is_worker = |id: &&str| {
            let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains("__script")
        };
        children.split_whitespace().filter(is_worker).map(str::to_owned).collect::<Vec<_>>()
    };
    // Busy: more than a moment of a core's time was used.
    let is_busy = |id: &String| {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        let ticks =
            stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(11)?.parse().ok());
        ticks.is_some_and(|ticks: u64| 5 < ticks)
    };
    let mut pipe = Pipe::open(&home);
    returns(&mut pipe, "return 1", "1");
    let code = "/^(a+)+$/.test('a'.repeat(60) + '!')";
    let call = json!({"namespace": "gatelet", "function": "run", "kwargs": {"code": code}});
    pipe.send(&json!({"jsonrpc": "2.0", "id": 900, "method": "tools/call",
                      "params": {"name": "call", "arguments": call}}));
    eventually("a worker computes", || workers(pipe.id()).iter().any(is_busy));
    let running = workers(pipe.id());
    pipe.kill();
    let is_there = |id: &String| {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        stat.rsplit(')')
            .next()
            .is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with('Z'))
    };
    eventually("no worker is left", || !running.iter().any(is_there));
}
