//! What a person reads when the gate opens: what there is, and how to connect.

use std::net::SocketAddr;

use gateway::Gateway;
use serde_json::json;

use crate::config::Loaded;
use crate::terminal::{DIM, GOOD, HEADING, PLACE, paint, say};

/// Says on stderr where the gate is and how the common clients reach it.
pub(super) fn greet(address: SocketAddr, loaded: &Loaded, gateway: &Gateway) {
    let snapshot = gateway.roster().default_hall().snapshot();
    let n_upstreams = snapshot.links().len();
    let source = match &loaded.file {
        Some(file) => format!("{n_upstreams} upstreams from {}", file.display()),
        None => "built-in tools; `gatelet init` or `gatelet import` to add servers".to_owned(),
    };
    let scheme = if loaded.config.serve.tls.is_some() { "https" } else { "http" };
    say(&greeting(&format!("{scheme}://{address}/mcp"), &source, &program()));
}

fn program() -> String {
    std::env::current_exe().map_or_else(|_| "gatelet".to_owned(), |path| path.display().to_string())
}

/// The greeting. Every line of it can be copied as it is.
fn greeting(url: &str, source: &str, program: &str) -> String {
    let desktop =
        json!({"mcpServers": {"gatelet": {"command": program, "args": ["serve", "--stdio"]}}});
    let cursor = json!({"mcpServers": {"gatelet": {"url": url}}});
    let code = json!({"name": "gatelet", "type": "http", "url": url});
    let ways = [
        ("Claude Code", format!("claude mcp add --transport http gatelet {url}")),
        ("Claude Desktop", format!("in claude_desktop_config.json: {desktop}")),
        ("Cursor", format!("in ~/.cursor/mcp.json: {cursor}")),
        ("VS Code", format!("code --add-mcp '{code}'")),
    ];
    let mut text = format!(
        "{} {} at {}\n{}\n\n{}\n",
        paint(HEADING, "gatelet"),
        paint(GOOD, "serves"),
        paint(PLACE, url),
        paint(DIM, source),
        paint(HEADING, "Connect"),
    );
    for (client, way) in ways {
        text += &format!("  {client:<15} {way}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greeting_says_how_four_clients_connect() {
        let text = greeting("http://127.0.0.1:4747/mcp", "built-in tools", "/bin/gatelet");
        for client in ["Claude Code", "Claude Desktop", "Cursor", "VS Code"] {
            assert!(text.contains(client), "{client}");
        }
        assert!(text.contains("claude mcp add --transport http gatelet http://127.0.0.1:4747/mcp"));
        assert!(text.contains(r#""command":"/bin/gatelet""#));
    }
}
