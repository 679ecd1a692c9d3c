//! The guide's page about scripts, done as it is printed.

use serde_json::json;

use crate::kit::{Home, Pipe, put_in_front, text, upstream};

const PAGE: &str = include_str!("../../../../docs/guide/scripts.md");

/// A block of the page, and the words before it.
struct Block {
    kind: String,
    text: String,
    before: String,
}

/// The blocks of the section of this name.
fn blocks(section: &str) -> Vec<Block> {
    let (_, rest) = PAGE.split_once(&format!("\n## {section}\n")).expect("the section is there");
    let rest = rest.split("\n## ").next().unwrap();
    let mut blocks = Vec::new();
    let mut parts = rest.split("```");
    let mut before = parts.next().unwrap().to_owned();
    while let (Some(block), after) = (parts.next(), parts.next()) {
        let (kind, text) = block.split_once('\n').unwrap();
        blocks.push(Block { kind: kind.to_owned(), text: text.to_owned(), before });
        before = after.unwrap_or_default().to_owned();
    }
    blocks
}

/// The last name in back quotes, which is that of a file.
fn file(before: &str) -> String {
    before.rsplit('`').nth(1).unwrap_or_else(|| panic!("no file is named in {before}")).to_owned()
}

#[test]
fn the_five_minutes_are_as_they_are_printed() {
    let home = Home::new();
    let (mut said, mut n_run) = (String::new(), 0);
    for Block { kind, text, before } in blocks("Five minutes") {
        match kind.as_str() {
            "toml" => home.write("fresh/gatelet.toml", &text),
            "js" => home.write(&format!("fresh/{}", file(&before)), &text),
            "sh" => {
                let program = home.gatelet().get_program().to_owned();
                let beside = std::path::Path::new(&program).parent().unwrap().to_owned();
                let mut shell = std::process::Command::new("sh");
                home.settle(&mut shell);
                put_in_front(&beside, &mut shell);
                // Not the home, whose configuration is trusted.
                shell.current_dir(home.path().join("fresh"));
                let ended = shell.args(["-ec", &text]).output().unwrap();
                let err = String::from_utf8_lossy(&ended.stderr);
                assert!(ended.status.success(), "{text}: {err}");
                said = String::from_utf8(ended.stdout).unwrap();
            }
            "text" => {
                assert_eq!(said.trim(), text.trim());
                n_run += 1;
            }
            other => panic!("a block of {other}"),
        }
    }
    assert_eq!(n_run, 2);
}

/// Orders and customers, by one program under two labels.
const SERVER: &str = r#"
import json, sys
label = sys.argv[1]
names = {"orders": ["list_orders"], "crm": ["get_customer"]}[label]
tools = [{"name": name, "description": name, "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}} for name in names]
def answer(name, given):
    if name == "list_orders":
        return {"orders": [{"id": n, "status": ["open", "paid"][n % 2], "customer_id": n % 3, "total": n} for n in range(12)]}
    return {"city": ["Kiel", "Porto", "Split"][given["customer_id"]]}
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if id is None: continue
    if method == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": label, "version": "1"}}
    elif method == "tools/list": result = {"tools": tools}
    elif method == "tools/call":
        said = answer(message["params"]["name"], message["params"].get("arguments") or {})
        result = {"content": [{"type": "text", "text": json.dumps(said)}]}
    else:
        print(json.dumps({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no such method"}}), flush=True); continue
    print(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}), flush=True)
"#;

#[test]
fn the_call_and_the_recipe_of_the_page_do_what_they_say() {
    let home = Home::new();
    home.write("server.py", SERVER);
    let python = std::path::Path::new("python3");
    let servers = ["orders", "crm"].map(|label| upstream(label, python, &["server.py", label]));
    let trust = "[trust]\nmode = \"off\"\n\n";
    home.write(
        "gatelet.toml",
        &format!("[scripts]\nenabled = true\n\n{trust}{}", servers.concat()),
    );
    let recipe = blocks("Recipes").into_iter().find(|block| block.kind == "js").unwrap();
    home.write("recipes/open_totals.js", &recipe.text);
    let mut pipe = Pipe::open(&home);
    let call = blocks("What a model does").into_iter().find(|block| block.kind == "text").unwrap();
    let (_, code) = call.text.split_once("\"code\": \"").unwrap();
    let (code, _) = code.rsplit_once("\"})").unwrap();
    let call = json!({"namespace": "gatelet", "function": "run", "kwargs": {"code": code}});
    assert_eq!(text(&pipe.verb("call", &call)), r#"{"Kiel":6,"Split":10,"Porto":14}"#);
    assert_eq!(pipe.call("gatelet.recipes.open_totals", &json!({"status": "paid"})), "6");
}
