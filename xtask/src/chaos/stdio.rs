//! An upstream on a pipe with one fault: `xtask __upstream FAULT EFFECTS`.

use std::fs::OpenOptions;
use std::io::{BufRead, Write};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

/// Longer than gatelet waits for a call.
pub(crate) const LATE: Duration = Duration::from_secs(5);

/// Serves until the pipe is closed, or the fault ends it.
pub(crate) fn serve(arguments: &[String]) -> Result<()> {
    let fault = arguments.first().map_or("healthy", String::as_str);
    let effects = arguments.get(1).map_or("/dev/null", String::as_str);
    for line in std::io::stdin().lock().lines() {
        let Ok(message) = serde_json::from_str::<Value>(&line?) else { continue };
        let id = &message["id"];
        if id.is_null() {
            continue;
        }
        match message["method"].as_str().unwrap_or_default() {
            "tools/call" => {
                let key = message["params"]["arguments"]["key"].as_str().unwrap_or_default();
                note(Path::new(effects), key);
                answer(fault, id, key)?;
            }
            method => say(&reply(id, method))?,
        }
    }
    Ok(())
}

/// Notes that a call was carried out.
pub(crate) fn note(effects: &Path, key: &str) {
    let file = OpenOptions::new().append(true).create(true).open(effects);
    let _ = file.and_then(|mut file| file.write_all(format!("{key}\n").as_bytes()));
}

/// The answer to whatever is no call.
pub(crate) fn reply(id: &Value, method: &str) -> Value {
    let tool = json!({
        "name": "deed",
        "description": "Does a thing that must happen once.",
        "inputSchema": {"type": "object", "properties": {"key": {"type": "string"}}},
        "annotations": {"readOnlyHint": false, "destructiveHint": false, "idempotentHint": false},
    });
    let result = match method {
        "initialize" => json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "faulty", "version": "1"},
        }),
        "tools/list" => json!({"tools": [tool]}),
        "ping" => json!({}),
        _ => {
            let error = json!({"code": -32601, "message": "no such method"});
            return json!({"jsonrpc": "2.0", "id": id, "error": error});
        }
    };
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

/// The answer to a call that was carried out.
pub(crate) fn done(id: &Value, key: &str) -> Value {
    let content = json!([{"type": "text", "text": format!("done:{key}")}]);
    json!({"jsonrpc": "2.0", "id": id, "result": {"content": content}})
}

/// The answer to a call that was carried out, too long to be given at once.
pub(crate) fn kept(id: &Value, key: &str) -> Value {
    done(id, &format!("{key} {}", "long ".repeat(60_000)))
}

fn answer(fault: &str, id: &Value, key: &str) -> Result<()> {
    let answer = done(id, key);
    let text = answer.to_string();
    let half = &text.as_bytes()[..text.len() / 2];
    match fault {
        "die" => std::process::abort(),
        "exit" => std::process::exit(3),
        "die-after" => {
            say(&answer)?;
            std::process::abort();
        }
        "hang" => {}
        "late" => later(answer, LATE),
        "slow" => later(answer, Duration::from_millis(500)),
        "dup" => {
            say(&answer)?;
            say(&answer)?;
        }
        "garbage" => write(b"\x00\xff { not json\n")?,
        "garbage-ok" => {
            write(b"\x00\xff { not json\n")?;
            say(&answer)?;
        }
        "half" => write(half)?,
        "half-die" => {
            write(half)?;
            std::process::abort();
        }
        "wrong-id" => say(&done(&json!("nobody"), key))?,
        "error" => {
            let error = json!({"code": -32000, "message": "it broke"});
            say(&json!({"jsonrpc": "2.0", "id": id, "error": error}))?;
        }
        "tool-error" => {
            let content = json!([{"type": "text", "text": "it broke"}]);
            let result = json!({"content": content, "isError": true});
            say(&json!({"jsonrpc": "2.0", "id": id, "result": result}))?;
        }
        "no-object" => say(&json!({"jsonrpc": "2.0", "id": id, "result": [1]}))?,
        "flood" => {
            let params = json!({"level": "info", "data": "x".repeat(200)});
            let note =
                json!({"jsonrpc": "2.0", "method": "notifications/message", "params": params});
            for _ in 0..1000 {
                say(&note)?;
            }
            say(&answer)?;
        }
        "log-flood" => {
            let _ = std::io::stderr().write_all("noise ".repeat(170_000).as_bytes());
            say(&answer)?;
        }
        "stopped" => {
            // It goes on when somebody lets it; nobody does.
            let _ = Command::new("kill").args(["-STOP", &std::process::id().to_string()]).status();
            say(&answer)?;
        }
        "kept" => say(&kept(id, key))?,
        "slow-client" => say(&done(id, &format!("{key} {}", "x".repeat(9_000))))?,
        "big" => say(&done(id, &format!("{key} {}", "x".repeat(8_000))))?,
        "stop-reading" => {
            say(&answer)?;
            std::thread::sleep(Duration::from_millis(300));
        }
        _ => say(&answer)?,
    }
    Ok(())
}

/// Answers from a thread of its own, so that others are heard meanwhile.
fn later(answer: Value, after: Duration) {
    std::thread::spawn(move || {
        std::thread::sleep(after);
        let _ = say(&answer);
    });
}

fn say(message: &Value) -> Result<()> {
    write(format!("{message}\n").as_bytes())
}

fn write(bytes: &[u8]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()?;
    Ok(())
}
