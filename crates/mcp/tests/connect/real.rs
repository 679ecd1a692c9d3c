//! Real servers, from the directory that `cargo xtask test` fills.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use mcp::connect::{Endpoint, Options, Program, Target, Upstream, connect};
use mcp::revision::Revision;
use serde_json::json;
use tool::{Ask, Client, Context, GetPrompt, Object, Provider, ReadResource};

use crate::support::{Listener, call, call_in, options, other, result};

pub(crate) fn tools() -> PathBuf {
    testkit::needs::tools().expect("GATELET_TOOLS is not set: run `cargo xtask test`")
}

pub(crate) fn node() -> PathBuf {
    tools().join("node/bin/node")
}

fn everything() -> PathBuf {
    tools().join("npm/node_modules/.bin/mcp-server-everything")
}

fn program(command: PathBuf, args: &[&str]) -> Target {
    let args = args.iter().map(|arg| (*arg).to_owned()).collect();
    Target::Stdio(Program { command, args, ..Program::default() })
}

async fn reach(target: &Target) -> Arc<Upstream> {
    let capabilities = json!({"sampling": {}, "elicitation": {}, "roots": {"listChanged": true}});
    let client =
        Client { capabilities: capabilities.into(), ..Client::named("test", "2025-11-25") };
    let options = Options { opening_timeout: Duration::from_secs(60), ..options() };
    connect(target, &options, &client).await.unwrap()
}

/// A server in a process of its own, on a port that was free a moment ago.
struct Served {
    process: Child,
    port: u16,
}

impl Served {
    fn everything(transport: &str) -> Served {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let process = Command::new(node())
            .arg(everything())
            .arg(transport)
            .env("PORT", port.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Served { process, port }
    }

    async fn up(&self) {
        for _ in 0..600 {
            if tokio::net::TcpStream::connect(("127.0.0.1", self.port)).await.is_ok() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("the server does not come up");
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// What every transport must carry.
async fn try_everything(upstream: &Upstream) {
    let listing = upstream.listing();
    assert!(listing.tools.iter().any(|tool| tool.name == "echo"), "{:?}", listing.server);
    assert!(!listing.prompts.is_empty() && !listing.resources.is_empty());
    let said = result(call(upstream, "echo", json!({"message": "grüße"})).await);
    assert!(said.as_str().contains("grüße"), "{said}");
    let sum = result(call(upstream, "get-sum", json!({"a": 2, "b": 3})).await);
    assert!(sum.as_str().contains('5'), "{sum}");
    let context = Context::anonymous();
    let uri = listing.resources[0].uri.clone();
    let read = upstream
        .ask(Ask::ReadResource(ReadResource { uri, other_params: Object::new() }), &context)
        .await;
    assert!(result(read).member("contents").is_some());
    let prompt = listing.prompts.iter().find(|prompt| prompt.arguments.is_empty()).unwrap();
    let name = prompt.name.clone();
    let prompt = Ask::Prompt(GetPrompt { name, arguments: None, other_params: Object::new() });
    assert!(result(upstream.ask(prompt, &context).await).member("messages").is_some());
    result(upstream.ask(other("ping", json!({})), &context).await);
    try_progress(upstream).await;
}

async fn try_progress(upstream: &Upstream) {
    let listener = Listener::answering("{}");
    let name = "trigger-long-running-operation";
    let params = json!({"name": name, "arguments": {"duration": 1, "steps": 2}, "_meta": {"progressToken": "t"}});
    let ask = Ask::parse("tools/call", &params.into()).unwrap();
    result(upstream.ask(ask, &listener.context("s")).await);
    let notes = listener.notes();
    let n_progress = notes.iter().filter(|note| note.contains(r#""progressToken":"t""#)).count();
    assert_eq!(n_progress, 2, "{notes:?}");
}

#[tokio::test]
async fn the_everything_server_over_stdio() {
    testkit::needs!(Tools);
    let server = everything().to_str().unwrap().to_owned();
    let upstream = reach(&program(node(), &[&server, "stdio"])).await;
    assert_eq!(upstream.revision(), Revision::V2025_11_25);
    try_everything(&upstream).await;
    let listener = Listener::answering(
        r#"{"role":"assistant","model":"m","content":{"type":"text","text":"sampled!"}}"#,
    );
    let arguments = json!({"prompt": "p", "maxTokens": 5});
    let sampled =
        call_in(&upstream, "trigger-sampling-request", arguments, &listener.context("s")).await;
    assert!(result(sampled).as_str().contains("sampled!"));
    upstream.close().await;
}

#[tokio::test]
async fn the_everything_server_over_streamable_http() {
    testkit::needs!(Tools);
    let served = Served::everything("streamableHttp");
    served.up().await;
    let url = format!("http://127.0.0.1:{}/mcp", served.port);
    let upstream = reach(&Target::Http(Endpoint { url, ..Endpoint::default() })).await;
    assert_eq!(upstream.revision(), Revision::V2025_11_25);
    try_everything(&upstream).await;
    upstream.close().await;
}

#[tokio::test]
async fn the_everything_server_over_sse() {
    testkit::needs!(Tools);
    let served = Served::everything("sse");
    served.up().await;
    let url = format!("http://127.0.0.1:{}/sse", served.port);
    let endpoint = Endpoint { url, ..Endpoint::default() };
    // An address that was written down as the newer kind is found out.
    for target in [Target::Sse(endpoint.clone()), Target::Http(endpoint)] {
        let upstream = reach(&target).await;
        try_everything(&upstream).await;
        upstream.close().await;
    }
}

#[tokio::test]
async fn a_python_server_speaks_the_modern_revision() {
    testkit::needs!(Tools);
    let upstream = reach(&program(tools().join("py/bin/mcp-server-time"), &[])).await;
    assert_eq!(upstream.revision(), Revision::V2026_07_28);
    let time = result(call(&upstream, "get_current_time", json!({"timezone": "UTC"})).await);
    assert!(time.as_str().contains("UTC"), "{time}");
}

#[tokio::test]
async fn the_memory_server_keeps_what_it_is_told() {
    testkit::needs!(Tools);
    let server = tools().join("npm/node_modules/.bin/mcp-server-memory");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("memory.jsonl");
    let target = Target::Stdio(Program {
        command: node(),
        args: vec![server.to_str().unwrap().to_owned()],
        env: [("MEMORY_FILE_PATH".to_owned(), file.to_str().unwrap().to_owned())].into(),
        inherit: mcp::connect::Inherit::Needed,
        cwd: Some(folder.path().to_owned()),
    });
    let upstream = reach(&target).await;
    let entity =
        json!({"entities": [{"name": "gate", "entityType": "thing", "observations": ["small"]}]});
    result(call(&upstream, "create_entities", entity).await);
    let graph = result(call(&upstream, "read_graph", json!({})).await);
    assert!(graph.as_str().contains("small"), "{graph}");
    assert!(file.exists());
}
