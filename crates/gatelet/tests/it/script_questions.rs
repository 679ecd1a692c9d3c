//! Scripts whose calls ask the client something: they stop, and go on with the
//! answer, without doing anything twice.

use serde_json::{Value, json};

use crate::kit::{Home, Served, Site, eventually, upstream};

/// A server of the revision without sessions that asks who a booking is for, and
/// notes in a file what it does.
const HOTEL: &str = r#"
import json, os, sys
anything = {"type": "object"}
def tool(name): return {"name": name, "description": name + " a room.", "inputSchema": anything, "annotations": {"readOnlyHint": False}}
tools = [tool("hold"), tool("book")]
def note(line):
    with open(os.environ["DEEDS"], "a") as file: file.write(line + "\n")
def call(params):
    given, said = params.get("arguments") or {}, params.get("inputResponses") or {}
    if params["name"] == "hold":
        note("hold %s" % given["room"])
        return {"content": [{"type": "text", "text": json.dumps({"held": given["room"]})}]}
    if "who" not in said:
        asked = {"method": "elicitation/create", "params": {"mode": "form", "message": "Who sleeps in %s?" % given["room"],
            "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}}
        return {"resultType": "input_required", "inputRequests": {"who": asked}, "requestState": "room-%s" % given["room"]}
    assert params["requestState"] == "room-%s" % given["room"]
    note("book %s for %s" % (given["room"], said["who"]["content"]["name"]))
    return {"content": [{"type": "text", "text": json.dumps({"booked": given["room"]})}]}
def say(message):
    sys.stdout.write(json.dumps(message) + "\n"); sys.stdout.flush()
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if id is None: continue
    if method == "server/discover":
        result = {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "serverInfo": {"name": "hotel", "version": "1"}}
    elif method == "tools/list": result = {"resultType": "complete", "tools": tools}
    elif method == "tools/call": result = call(message["params"])
    else:
        say({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no such method"}}); continue
    say({"jsonrpc": "2.0", "id": id, "result": result})
"#;

fn hotel() -> Home {
    let home = Home::new();
    home.write("hotel.py", HOTEL);
    let deeds = home.path().join("deeds");
    let hotel = upstream("hotel", std::path::Path::new("python3"), &["hotel.py"]);
    home.write(
        "gatelet.toml",
        &format!(
            "[scripts]\nenabled = true\n\n[trust]\nmode = \"off\"\n\n[artifacts]\nstore = \"disk\"\n\n\
             {hotel}env = {{ DEEDS = {deeds:?} }}\n"
        ),
    );
    home
}

fn deeds(home: &Home) -> Vec<String> {
    let text = std::fs::read_to_string(home.path().join("deeds")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// A call of `gatelet.run` by a client of the revision without sessions that can be
/// asked.
fn run(site: &Site, kwargs: &Value, beside: &Value) -> Value {
    let mut params = json!({
        "name": "call",
        "arguments": {"namespace": "gatelet", "function": "run", "kwargs": kwargs},
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "it", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
        },
    });
    for (key, value) in beside.as_object().into_iter().flatten() {
        params[key] = value.clone();
    }
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let headers = [
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "call"),
    ];
    site.post(&message, &headers).message()["result"].clone()
}

fn ready(home: &Home) -> Served {
    let served = Served::start(home);
    eventually("the hotel is listed", || {
        let code = "return (await tools.find('book a room')).includes('hotel')";
        run(&served, &json!({"code": code}), &json!({})).to_string().contains("true")
    });
    served
}

#[test]
fn a_script_whose_calls_ask_the_client_goes_on_with_the_answers_after_a_restart() {
    let home = hotel();
    let served = ready(&home);
    let code = "const held = await tools.hotel.hold({room: inputs.room});\n\
                const both = await Promise.all([7, 8].map(room => tools.hotel.book({room})));\n\
                const last = await tools.hotel.book({room: 9});\n\
                return [held.held, ...both.map(b => b.booked), last.booked]";
    let kwargs = json!({"code": code, "inputs": {"room": 1}});
    let asked = run(&served, &kwargs, &json!({}));
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let requests = asked["inputRequests"].as_object().unwrap();
    assert_eq!(requests.keys().collect::<Vec<_>>(), ["1.who", "2.who"], "{asked}");
    assert!(asked.to_string().contains("Who sleeps in 7?"), "{asked}");
    assert_eq!(deeds(&home), ["hold 1"]);

    // Another script, or other inputs, do not go on with this journal.
    let state = asked["requestState"].clone();
    let other = json!({"code": "return 1", "inputs": {"room": 1}});
    let refused = run(&served, &other, &json!({"requestState": state}));
    assert!(refused.to_string().contains("the code is not that of"), "{refused}");
    let other = json!({"code": code, "inputs": {"room": 2}});
    let refused = run(&served, &other, &json!({"requestState": state}));
    assert!(refused.to_string().contains("the inputs are not those of"), "{refused}");

    assert!(served.terminate().success());
    let served = ready(&home);
    let who = |name: &str| json!({"action": "accept", "content": {"name": name}});
    let said = json!({"requestState": state, "inputResponses": {"1.who": who("Ada"), "2.who": who("Bob")}});
    let asked = run(&served, &kwargs, &said);
    assert_eq!(asked["inputRequests"]["3.who"]["method"], "elicitation/create", "{asked}");
    let said =
        json!({"requestState": asked["requestState"], "inputResponses": {"3.who": who("Eve")}});
    let done = run(&served, &kwargs, &said);
    assert_eq!(done["content"][0]["text"], "[1,7,8,9]", "{done}");
    let mut booked = deeds(&home);
    booked.sort();
    assert_eq!(booked, ["book 7 for Ada", "book 8 for Bob", "book 9 for Eve", "hold 1"]);
    // The same answer once more does nothing.
    let again = run(&served, &kwargs, &said);
    assert!(again.to_string().contains("has ended"), "{again}");
    assert_eq!(deeds(&home).len(), 4);
}
