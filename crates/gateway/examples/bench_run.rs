//! What scripts cost: their start, a call inside of one against a plain call,
//! memory, a thousand at once.
//!
//! `bench_run [SCRIPTS]`. The program is its own worker. Every figure that depends
//! on the machine stands beside one that was taken in the same run.

#![expect(clippy::disallowed_methods, reason = "a program of its own, with files and a clock")]
#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use gateway::dispatch::ScriptRunner;
use gateway::{Gateway, GatewayParts, Surface};
use roster::{Connector, Upstream};
use script::{Limits, Pool, pool};
use serde_json::{Value, json};
use store::clock::System;
use testkit::{Scripted, listing, tool};
use tool::{Ask, Call, Client, Context, Failure, Provider, Reply};

type Failed = Box<dyn std::error::Error>;

struct Ready(Arc<Scripted>);

#[async_trait]
impl Connector for Ready {
    async fn connect(&self, _: &Client) -> Result<Arc<dyn Provider>, Failure> {
        Ok(Arc::clone(&self.0) as _)
    }
}

fn main() -> Result<(), Failed> {
    if let Some(done) = script::worker::run_if_requested(std::env::args_os().skip(1)) {
        return Ok(done?);
    }
    let n_scripts = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(1_000);
    tokio::runtime::Runtime::new()?.block_on(measure(n_scripts))
}

fn open() -> Result<(Gateway, Arc<dyn Provider>), Failed> {
    let reads = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let listed = listing(vec![tool("get", "Get one.", &reads)]);
    let provider = Scripted::new(listed, |_| Ok(Reply::text("{\"value\": 1}")));
    let upstreams = vec![Upstream::new("shop", Arc::new(Ready(provider)))];
    let mut parts = GatewayParts::new(upstreams, Arc::new(System::start()));
    let limits = Limits { calls: 100_000, ..Limits::default() };
    parts.answers.scripting = Some(Arc::new(ScriptRunner::new(Pool::new(pool::Config {
        program: std::env::current_exe()?,
        arguments: Vec::new(),
        workers: 16,
        waiting: 10_000,
        idle: Duration::from_secs(300),
        limits,
    }))));
    let gateway = Gateway::new(parts);
    let client = Arc::new(Client::named("bench", ""));
    let surface = gateway.surface(Surface::Cash).provider_for(&client, &Arc::default());
    Ok((gateway, surface))
}

async fn call(
    surface: &Arc<dyn Provider>,
    function: &str,
    kwargs: Value,
) -> Result<String, Failed> {
    let namespace = if function == "run" { "gatelet" } else { "shop" };
    let arguments = json!({"namespace": namespace, "function": function, "kwargs": kwargs});
    let ask = Ask::Call(Call::new("call", arguments.into()));
    let reply = surface.ask(ask, &Context::anonymous()).await?;
    let result = reply.tool_result().ok_or("no result")?;
    if result.is_error { Err(result.text().into()) } else { Ok(result.text()) }
}

async fn run(surface: &Arc<dyn Provider>, code: &str) -> Result<String, Failed> {
    call(surface, "run", json!({"code": code})).await
}

async fn measure(n_scripts: usize) -> Result<(), Failed> {
    let (_gateway, surface) = open()?;
    while call(&surface, "get", json!({"n": 1})).await.is_err() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let cold = timed(1, async || run(&surface, "return 1").await).await?;
    let warm = timed(200, async || run(&surface, "return 1").await).await?;
    println!("in one process, with no client and no server on a pipe:");
    println!("start of a script, first of its caller   {:>9.3} ms", cold * 1e3);
    println!("start of a script, warm worker           {:>9.3} ms   to reach: 1", warm * 1e3);

    let plain = timed(2_000, async || call(&surface, "get", json!({"n": 1})).await).await?;
    let code = "for (let n = 0; n < 2000; n++) await tools.shop.get({n}); return 1";
    let inner = (timed(1, async || run(&surface, code).await).await? - warm) / 2_000.0;
    println!("a plain call on cash                     {:>9.1} us", plain * 1e6);
    println!(
        "a call inside of a script                {:>9.1} us   {:.2} times a plain one, which crosses no process",
        inner * 1e6,
        inner / plain
    );

    let memory = workers_memory();
    println!("memory of a worker after that            {:>9.1} MB", memory as f64 / 1e6);

    let began = Instant::now();
    let code =
        "const all = await Promise.all([1, 2, 3].map(n => tools.shop.get({n}))); return all.length";
    let scripts = (0..n_scripts).map(|_| run(&surface, code));
    let ended = futures::future::join_all(scripts).await;
    let right = ended.iter().filter(|told| told.as_deref().is_ok_and(|told| told == "3")).count();
    let took = began.elapsed().as_secs_f64();
    println!("{n_scripts} scripts at once, 3 calls each      {took:>9.2} s    {right} right");
    if right == n_scripts { Ok(()) } else { Err("not every script came to its end".into()) }
}

/// Seconds that one takes on average.
async fn timed<T>(times: u32, work: impl AsyncFn() -> Result<T, Failed>) -> Result<f64, Failed> {
    let began = Instant::now();
    for _ in 0..times {
        work().await?;
    }
    Ok(began.elapsed().as_secs_f64() / f64::from(times))
}

/// Bytes of the largest process that we started.
fn workers_memory() -> u64 {
    let ours = std::process::id().to_string();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let memory = |entry: std::fs::DirEntry| {
        let status = std::fs::read_to_string(entry.path().join("status")).ok()?;
        let field = |key: &str| {
            let line = status.lines().find(|line| line.starts_with(key))?;
            line.split_whitespace().nth(1).map(str::to_owned)
        };
        if field("PPid:")? != ours {
            return None;
        }
        field("VmRSS:")?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
    };
    entries.filter_map(memory).max().unwrap_or(0)
}
