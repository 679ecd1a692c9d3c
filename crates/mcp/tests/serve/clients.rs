//! Real clients, in both eras, over HTTP and over a pipe.
//!
//! The provider asks its questions while it runs, so the modern clients go
//! through a parked call here and the older ones are asked directly.

use crate::tools;
use std::path::PathBuf;
use std::sync::Arc;

use mcp::serve::http::{Endpoint, Options, at};
use serde_json::{Value, json};
use testkit::everything::{Everything, Style};
use tokio::net::TcpListener;
use tokio::process::Command;
use tool::FixedProvider;
use web::listen::listen_plain;

/// How a client reaches the provider.
enum Over {
    Http,
    Pipe,
}

#[tokio::test]
async fn the_python_sdk_over_http() {
    testkit::needs!(Tools);
    for mode in ["auto", "legacy", "2026-07-28"] {
        let seen = run(python(mode), Over::Http).await;
        assert_eq!((&seen["progress"], &seen["logged"]), (&json!([0.0, 50.0, 100.0]), &json!(3)));
    }
}

#[tokio::test]
async fn the_python_sdk_over_a_pipe() {
    testkit::needs!(Tools);
    for mode in ["auto", "legacy"] {
        let seen = run(python(mode), Over::Pipe).await;
        assert_eq!((&seen["progress"], &seen["logged"]), (&json!([0.0, 50.0, 100.0]), &json!(3)));
    }
}

#[tokio::test]
async fn the_typescript_sdk_1() {
    testkit::needs!(Tools);
    for over in [Over::Http, Over::Pipe] {
        let seen = run(script("sdk1.mjs"), over).await;
        assert_eq!((&seen["logged"], &seen["changed"]), (&json!(3), &json!(true)));
        // This client forgets progress that comes together with the answer.
        assert_eq!(seen["progress"].as_array().unwrap()[..2], [json!(0), json!(50)]);
    }
}

#[tokio::test]
async fn the_typescript_sdk_2() {
    testkit::needs!(Tools);
    for mode in ["legacy", "auto"] {
        for over in [Over::Http, Over::Pipe] {
            let mut client = script("sdk2.mjs");
            client.arg(mode);
            run(client, over).await;
        }
    }
}

#[tokio::test]
async fn the_inspector() {
    testkit::needs!(Tools);
    let (url, serving) = serve().await;
    for era in ["legacy", "modern"] {
        let mut client = tools::node("npm/node_modules/.bin/mcp-inspector");
        client.args(["--cli", &url, "--protocol-era", era, "--format", "json", "-q"]);
        client.args(["--method", "tools/call", "--tool-name", "test_simple_text"]);
        let seen = tools::output(client).await;
        assert!(seen.contains("This is a simple text response for testing."), "{era}: {seen}");
    }
    serving.abort();
}

/// Runs a client and checks what every client sees.
async fn run(mut client: Command, over: Over) -> Value {
    let said = match over {
        Over::Http => {
            let (url, serving) = serve().await;
            client.arg(url);
            let said = tools::output(client).await;
            serving.abort();
            said
        }
        Over::Pipe => {
            client.arg(tools::example("everything")).args(["stdio", "asking"]);
            tools::output(client).await
        }
    };
    let seen: Value = serde_json::from_str(said.trim()).unwrap();
    assert_eq!(seen["tools"], 28);
    assert_eq!(seen["text"], "This is a simple text response for testing.");
    assert!(seen["elicited"].as_str().unwrap().contains(r#""username":"ann""#), "{seen}");
    assert_eq!(seen["sampled"], "LLM response: sampled");
    assert_eq!(seen["read"], "This is the content of the static text resource.");
    seen
}

async fn serve() -> (String, tokio::task::JoinHandle<std::io::Result<()>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let source = Arc::new(FixedProvider(Everything::new(Style::Asking)));
    let endpoint = Endpoint::new(source, Options::default());
    (url, tokio::spawn(listen_plain(listener, at("/mcp", endpoint))))
}

fn python(mode: &str) -> Command {
    let mut command = Command::new(tools::tool("py/bin/python"));
    command.arg(ours("client.py")).arg(mode);
    command
}

fn script(name: &str) -> Command {
    let mut command = Command::new(tools::tool("node/bin/node"));
    command.arg(ours(name));
    command
}

fn ours(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/serve/clients").join(name)
}
