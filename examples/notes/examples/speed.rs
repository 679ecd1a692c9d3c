//! How fast tools written in Rust are, beside the targets that the
//! specification of the module sets.
//!
//! `cargo run --release -p example-notes --example speed`
//!
//! Where there is valgrind, the instructions of each step are counted too: they
//! are the same whatever else the machine does.

#![expect(clippy::print_stdout, reason = "this is what it is for")]

use std::hint::black_box;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use native::{Definition, Output, Registry, tool};
use serde_json::json;
use tool::{Ask, Call, Client, Context, Json, Provider};

/// Adds two numbers.
#[tool(read_only, idempotent)]
async fn add(a: i64, #[default(1)] b: i64) -> i64 {
    a + b
}

/// Adds two numbers where it may block.
#[tool(read_only, idempotent)]
fn add_blocking(a: i64, #[default(1)] b: i64) -> i64 {
    a + b
}

fn definition(number: usize) -> Definition {
    Definition::new(format!("tool_{number}"))
        .module("bench", "bench.rs", 1)
        .description("One of many tools.")
        .input_schema(json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "Where it is."},
                "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 10},
                "tags": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["path"],
            "additionalProperties": false,
        }))
        .runs(|_| Ok(Output::done()))
}

/// Steps whose instructions are counted, by the words of their rows.
const COUNTED: &[&str] = &[
    "register one tool",
    "list 1,000 tools",
    "look a schema up",
    "refuse arguments",
    "call, in process",
];

/// Takes one step `times` times, and nothing else that grows with `times`.
fn repeat(what: &str, times: usize, runtime: &tokio::runtime::Runtime) {
    let mut registry = Registry::new("bench", "1");
    for number in 0..1000 {
        registry.register(definition(number)).expect("the names differ");
    }
    let provider = Registry::new("bench", "1").discover().into_provider();
    let context = Context::anonymous();
    let asked = match what {
        "refuse arguments" => json!({"a": "x"}),
        _ => json!({"a": 2, "b": 3}),
    };
    let ask = Ask::Call(Call::new("add", asked.into()));
    for number in 0..times {
        match what {
            "register one tool" => {
                registry.register(definition(1000 + number)).expect("the names differ");
            }
            "list 1,000 tools" => drop(black_box(registry.list_registered_tools().count())),
            "look a schema up" => drop(black_box(registry.get_tool_schema("tool_500"))),
            _ => drop(black_box(runtime.block_on(provider.ask(ask.clone(), &context)))),
        }
    }
}

/// Instructions of one step: the difference between many and few.
fn instructions(what: &str) -> Option<f64> {
    let count = |times: usize| -> Option<f64> {
        let output = Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg(std::env::current_exe().ok()?)
            .args(["--repeat", what, &times.to_string()])
            .output()
            .ok()?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let (_, counted) = said.lines().find_map(|line| line.split_once("Collected : "))?;
        counted.trim().parse().ok()
    };
    Some((count(220)? - count(20)?) / 200.0)
}

struct Row {
    what: &'static str,
    took: Duration,
    floor: Duration,
}

/// The time of one run, from as many as fit into a quarter of a second.
fn each(mut run: impl FnMut()) -> Duration {
    run();
    let (start, mut count) = (Instant::now(), 0_u32);
    while start.elapsed() < Duration::from_millis(250) {
        run();
        count += 1;
    }
    start.elapsed() / count.max(1)
}

fn main() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime can be made");
    if std::env::args().any(|word| word == "--serve") {
        return serve(&runtime);
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, what, times] = &words[..]
        && flag == "--repeat"
    {
        return repeat(what, times.parse().expect("a number of times"), &runtime);
    }
    let millis = Duration::from_millis;
    let thousand: Vec<Definition> = (0..1000).map(definition).collect();
    let mut rows = Vec::new();

    let mut number = 0;
    let mut registry = Registry::new("bench", "1");
    let took = each(|| {
        number += 1;
        registry.register(definition(number)).expect("the names differ");
    });
    rows.push(Row { what: "register one tool", took, floor: millis(1) });

    let start = Instant::now();
    let mut registry = Registry::new("bench", "1");
    for definition in thousand {
        registry.register(definition).expect("the names differ");
    }
    let took = start.elapsed();
    rows.push(Row { what: "discover 1,000 tools", took, floor: millis(2000) });

    let took = each(|| {
        black_box(registry.list_registered_tools().count());
    });
    rows.push(Row { what: "list 1,000 tools", took, floor: millis(5) });
    let took = each(|| {
        black_box(registry.get_tool_schema("tool_500").expect("it is there"));
    });
    rows.push(Row { what: "look a schema up", took, floor: millis(1) });

    let provider = Registry::new("bench", "1").discover().into_provider();
    let context = Context::anonymous();
    let call = |name: &str| Ask::Call(Call::new(name, json!({"a": 2, "b": 3}).into()));
    let wrong = Ask::Call(Call::new("add", json!({"a": "x"}).into()));
    let took = each(|| {
        runtime.block_on(async { black_box(provider.ask(wrong.clone(), &context).await).ok() });
    });
    rows.push(Row { what: "refuse arguments", took, floor: millis(1) });
    let took = each(|| {
        runtime.block_on(async { black_box(provider.ask(call("add"), &context).await).ok() });
    });
    rows.push(Row { what: "call, in process", took, floor: millis(10) });
    let took = each(|| {
        runtime
            .block_on(async { black_box(provider.ask(call("add_blocking"), &context).await).ok() });
    });
    rows.push(Row { what: "call, blocking pool", took, floor: millis(10) });

    let (over_pipe, per_second_pipe) = runtime.block_on(pipe());
    rows.push(Row { what: "call over a pipe", took: over_pipe, floor: millis(10) });
    let (over_http, per_second_http) = runtime.block_on(http(&provider));
    rows.push(Row { what: "call over HTTP", took: over_http, floor: millis(100) });

    println!(
        "{:<22} {:>12} {:>10} {:>9} {:>13}",
        "what", "took", "target", "faster", "instructions"
    );
    for row in &rows {
        let ratio = row.floor.as_secs_f64() / row.took.as_secs_f64();
        let took = format!("{:.1?}", row.took);
        let counted = COUNTED.contains(&row.what).then(|| instructions(row.what)).flatten();
        let counted = counted.map_or_else(String::new, |count| format!("{count:.0}"));
        let floor = format!("{:?}", row.floor);
        println!("{:<22} {took:>12} {floor:>10} {ratio:>8.0}x {counted:>13}", row.what);
    }
    for (what, per_second, floor) in
        [("pipe", per_second_pipe, 1000.0), ("HTTP", per_second_http, 100.0)]
    {
        println!(
            "{what}: {per_second:.0} calls/s, {:.0} times the target of {floor:.0}",
            per_second / floor
        );
    }
}

async fn one(provider: &dyn Provider, context: &Context) {
    let ask = Ask::Call(Call::new("add", Json::from(json!({"a": 2, "b": 3}))));
    black_box(provider.ask(ask, context).await.ok());
}

/// The time of a call alone, and calls per second with 32 at a time.
async fn measure(provider: Arc<dyn Provider>) -> (Duration, f64) {
    let context = Context::anonymous();
    for _ in 0..50 {
        one(&*provider, &context).await;
    }
    let start = Instant::now();
    for _ in 0..500 {
        one(&*provider, &context).await;
    }
    let alone = start.elapsed() / 500;
    let (start, total) = (Instant::now(), 6400);
    let lanes = (0..32).map(|_| async {
        for _ in 0..total / 32 {
            one(&*provider, &context).await;
        }
    });
    futures::future::join_all(lanes).await;
    (alone, f64::from(total) / start.elapsed().as_secs_f64())
}

/// Starts this very program as a server on its standard input and output.
async fn pipe() -> (Duration, f64) {
    let command = std::env::current_exe().expect("this program has a path");
    let program = mcp::connect::Program {
        command,
        args: vec!["--serve".to_owned()],
        ..mcp::connect::Program::default()
    };
    let client = Client::named("bench", "2025-11-25");
    let options = mcp::connect::Options::default();
    let target = mcp::connect::Target::Stdio(program);
    let upstream = mcp::connect::connect(&target, &options, &client).await.expect("it starts");
    let closing = Arc::clone(&upstream);
    let measured = measure(upstream).await;
    closing.close().await;
    measured
}

/// Serves the tools of this program until the client goes.
fn serve(runtime: &tokio::runtime::Runtime) {
    let source =
        Arc::new(tool::FixedProvider(Registry::new("bench", "1").discover().into_provider()));
    let options = mcp::serve::stdio::Options::default();
    runtime.block_on(mcp::serve::stdio::stdio(source, options)).expect("the pipe works");
}

async fn http(provider: &Arc<dyn Provider>) -> (Duration, f64) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("loopback has ports");
    let address = listener.local_addr().expect("it is bound");
    let source = Arc::new(tool::FixedProvider(Arc::clone(provider)));
    let endpoint = mcp::serve::http::Endpoint::new(source, mcp::serve::http::Options::default());
    let site = mcp::serve::http::at("/mcp", endpoint);
    let server = tokio::spawn(web::listen::listen_plain(listener, site));
    let url = format!("http://{address}/mcp");
    let target = mcp::connect::Target::Http(mcp::connect::Endpoint { url, ..Default::default() });
    let client = Client::named("bench", "2025-11-25");
    let options = mcp::connect::Options::default();
    let upstream = mcp::connect::connect(&target, &options, &client).await.expect("it is there");
    let measured = measure(upstream).await;
    server.abort();
    measured
}
