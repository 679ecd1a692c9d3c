//! What the gateway surface costs: tokens, time, instructions, memory.
//!
//! `bench_gate [DIRECTORY]`; with a directory of recorded listings, the false
//! positives of the scrubber over them are counted too. Every line says the
//! figure and its bound; the program fails when a bound on tokens, which do
//! not depend on the machine, is broken. Times are times on the processor, so
//! that a busy machine changes them little.

#![expect(clippy::disallowed_methods, reason = "a program of its own, with files and a clock")]
#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use catalog::{Catalog, Directory, Source, tokens};
use gateway::{Gateway, GatewayParts, Surface};
use redact::Scrubber;
use roster::{Connector, Upstream};
use serde_json::{Value, json};
use store::clock::System;
use testkit::{Scripted, listing, tool};
use tool::{Ask, Call, Client, Context, Failure, Json, Listing, Prompt, Provider, Reply, Resource};

type Failed = Box<dyn std::error::Error>;

struct Ready(Arc<Scripted>);

#[async_trait]
impl Connector for Ready {
    async fn connect(&self, _: &Client) -> Result<Arc<dyn Provider>, Failure> {
        Ok(Arc::clone(&self.0) as _)
    }
}

const NOUNS: [&str; 25] = [
    "issue", "invoice", "branch", "message", "ticket", "customer", "contact", "incident", "table",
    "dataset", "runbook", "draft", "label", "refund", "schedule", "metric", "funnel", "page",
    "channel", "comment", "release", "secret", "alert", "order", "shipment",
];
const VERBS: [&str; 20] = [
    "create", "get", "list", "update", "delete", "search", "close", "archive", "export", "assign",
    "approve", "merge", "copy", "move", "count", "watch", "rename", "restore", "share", "tag",
];

/// The listing of one upstream: `n` tools, each with its own words.
fn upstream(at: usize, n: usize) -> Listing {
    let one = |k: usize| {
        let (verb, noun) = (VERBS[k % VERBS.len()], NOUNS[(k / VERBS.len()) % NOUNS.len()]);
        let schema = json!({
            "type": "object",
            "properties": {
                "id": {"type": "string", "description": format!("Which {noun}.")},
                "limit": {"type": "integer", "description": "How many at most.", "default": 20},
                "fields": {"type": "array", "items": {"type": "string"}},
                format!("{noun}_state"): {"type": "string", "enum": ["open", "closed", "all"]},
            },
            "required": ["id"],
        });
        let words = format!("{verb} one {noun} of workspace {at}. Returns the {noun} as JSON.");
        tool(&format!("{verb}_{noun}"), &words, &schema)
    };
    listing((0..n).map(one).collect())
}

fn open(listings: Vec<Listing>) -> (Gateway, Arc<dyn Provider>, Vec<Arc<Scripted>>) {
    let provider = |listing| Scripted::new(listing, |_| Ok(Reply::text("hello")));
    let providers: Vec<Arc<Scripted>> = listings.into_iter().map(provider).collect();
    let upstreams = providers.iter().enumerate().map(|(at, provider)| {
        Upstream::new(&format!("work{at}"), Arc::new(Ready(Arc::clone(provider))))
    });
    let gateway = Gateway::new(GatewayParts::new(upstreams.collect(), Arc::new(System::start())));
    let client = Arc::new(Client::named("bench", ""));
    let surface = gateway.surface(Surface::Gateway).provider_for(&client, &Arc::default());
    (gateway, surface, providers)
}

/// Waits until all tools are listed.
async fn listed(gateway: &Gateway, n: usize) {
    while gateway.roster().default_pool().snapshot().catalog.functions().len() < n {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn ask(surface: &Arc<dyn Provider>, name: &str, arguments: Value) -> Result<Json, Failed> {
    let ask = Ask::Call(Call::new(name, arguments.into()));
    match surface.ask(ask, &Context::anonymous()).await? {
        Reply::Result(json) => Ok(json),
        Reply::Error(error) => Err(error.message.into()),
    }
}

fn text(result: &Json) -> String {
    Reply::Result(result.clone()).tool_result().map(|result| result.text()).unwrap_or_default()
}

/// A figure, its bound, and whether it is kept.
fn line(what: &str, figure: f64, bound: f64, unit: &str) -> bool {
    let kept = figure <= bound;
    let mark = if kept { "ok" } else { "OVER" };
    println!("{what:<58} {figure:>10.2} {unit:<7} at most {bound:<7} {mark}");
    kept
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

fn percentile(times: &mut [Duration], share: f64) -> Duration {
    times.sort_unstable();
    times[((times.len() - 1) as f64 * share) as usize]
}

async fn tokens_of_everything() -> Result<bool, Failed> {
    let mut first = upstream(0, 60);
    first.resources = Resource::parse(json!({"uri": "file:///a"}).into()).into_iter().collect();
    first.prompts = Prompt::parse(json!({"name": "p"}).into()).into_iter().collect();
    let (gateway, surface, _) = open(vec![first]);
    listed(&gateway, 60).await;
    let tools = surface.listing().tools.clone();
    let cost = |n: usize| tokens::count(Json::encode(&tools[..n]).as_str()) as f64;
    let mut kept = line("definitions of the three meta-tools", cost(3), 200.0, "tokens");
    kept &= line("definitions of all seven", cost(tools.len()), 420.0, "tokens");
    let mut most = 0;
    for query in ["create an issue", "find invoices", "archive", "messages of a customer"] {
        let found = ask(&surface, "tool_browse", json!({"query": query, "top_k": 10})).await?;
        most = most.max(tokens::count(&text(&found)));
    }
    kept &= line("the longest browse of ten cards over sixty tools", most as f64, 600.0, "tokens");
    let found = ask(&surface, "tool_browse", json!({"query": "get issue", "top_k": 1})).await?;
    let id = text(&found).split_whitespace().next().unwrap_or_default().to_owned();
    let small = ask(&surface, "tool_execute", json!({"tool_id": id, "args": {"id": "1"}})).await?;
    let over = tokens::count(&text(&small)) as f64 - tokens::count("hello") as f64;
    kept &= line("what a result of five characters costs more", over, 10.0, "tokens");
    Ok(kept)
}

async fn times() -> Result<(), Failed> {
    let listings: Vec<Listing> = (0..20).map(|at| upstream(at, 500)).collect();
    let sources = listings.iter().enumerate();
    let sources: Vec<Source> = sources
        .map(|(at, listing)| Source::new(&format!("work{at}"), Arc::new(listing.clone())))
        .collect();
    let since = on_processor();
    let (catalog, _) = Catalog::build(sources);
    let directory = Directory::build(&catalog);
    catalog.warm();
    let built = (on_processor() - since).as_secs_f64();
    line("catalog, ids, cards, paths and index of 10,000 tools", built, 1.5, "s");
    drop((catalog, directory));

    let (gateway, surface, _) = open(listings);
    listed(&gateway, 10_000).await;
    ask(&surface, "tool_browse", json!({"query": "warm up"})).await?;
    let mut queries = Vec::new();
    for (at, noun) in NOUNS.iter().enumerate() {
        for verb in VERBS {
            let query = json!({"query": format!("{verb} the {noun} of workspace {}", at % 20)});
            queries.push(best(&surface, &query).await?);
        }
    }
    line("browse by query, p50", micros(percentile(&mut queries, 0.5)), 2_000.0, "µs");
    line("browse by query, p99", micros(percentile(&mut queries, 0.99)), 2_000.0, "µs");
    for path in ["/", "/work7"] {
        let mut paths = Vec::new();
        for _ in 0..200 {
            paths.push(best(&surface, &json!({"path": path})).await?);
        }
        let what = format!("browse by path {path}, p50");
        line(&what, micros(percentile(&mut paths, 0.5)), 100.0, "µs");
    }
    Ok(())
}

/// The best time of five browses: whatever else the machine does only adds.
async fn best(surface: &Arc<dyn Provider>, arguments: &Value) -> Result<Duration, Failed> {
    let mut best = Duration::MAX;
    for _ in 0..5 {
        let since = Instant::now();
        ask(surface, "tool_browse", arguments.clone()).await?;
        best = best.min(since.elapsed());
    }
    Ok(best)
}

/// Time on the processor, of this process. Counted in ticks: good for long work.
fn on_processor() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    Duration::from_nanos(stat.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or_default())
}

/// Makes `n` small calls; the processor time of each beyond the upstream's.
async fn execute(n: u32) -> Result<Duration, Failed> {
    let (gateway, surface, providers) = open(vec![upstream(0, 60)]);
    listed(&gateway, 60).await;
    let found = ask(&surface, "tool_browse", json!({"query": "get issue", "top_k": 1})).await?;
    let id = text(&found).split_whitespace().next().unwrap_or_default().to_owned();
    let arguments = Json::from(json!({"tool_id": id, "args": {"id": "1"}}));
    let context = Context::anonymous();
    let before = on_processor();
    for _ in 0..n {
        surface.ask(Ask::Call(Call::new("tool_execute", arguments.clone())), &context).await?;
    }
    let through = on_processor() - before;
    let own = Json::from(json!({"id": "1"}));
    let before = on_processor();
    for _ in 0..n {
        providers[0].ask(Ask::Call(Call::new("get_issue", own.clone())), &context).await?;
    }
    Ok((through.saturating_sub(on_processor() - before)) / n.max(1))
}

/// Instructions of one call: the difference between many and few.
fn instructions() -> Result<f64, Failed> {
    let count = |n: u32| -> Result<f64, Failed> {
        let program = std::env::current_exe()?;
        let output = Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg(program)
            .args(["execute", &n.to_string()])
            .output()?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let counted = said.lines().find_map(|line| line.split_once("Collected : "));
        Ok(counted.ok_or("callgrind said nothing")?.1.trim().parse()?)
    };
    Ok((count(300)? - count(100)?) / 200.0)
}

/// Resident memory with 10,000 tools, listed, browsed and called.
async fn memory() -> Result<f64, Failed> {
    let (gateway, surface, _) = open((0..20).map(|at| upstream(at, 500)).collect());
    listed(&gateway, 10_000).await;
    ask(&surface, "tool_browse", json!({"query": "create an issue"})).await?;
    ask(&surface, "tool_browse", json!({"path": "/"})).await?;
    let status = std::fs::read_to_string("/proc/self/status")?;
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = resident.and_then(|line| line.split_whitespace().next()).unwrap_or_default();
    Ok(kilobytes.parse::<f64>()? / 1024.0)
}

/// What the scrubber would mask in recorded listings, which hold no secrets.
fn false_positives(directory: &Path) -> Result<(), Failed> {
    let scrubber = Scrubber::default();
    let (mut n_texts, mut masked) = (0, Vec::new());
    for entry in std::fs::read_dir(directory)? {
        let text = std::fs::read_to_string(entry?.path())?;
        if let Ok(value) = serde_json::from_str(&text) {
            walk(&value, &scrubber, &mut n_texts, &mut masked);
        }
    }
    for text in &masked {
        println!("  {text}");
    }
    println!("false positives of the scrubber: {} of {n_texts} texts", masked.len());
    Ok(())
}

fn walk(value: &Value, scrubber: &Scrubber, n_texts: &mut usize, masked: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            *n_texts += 1;
            let scrubbed = scrubber.scrub(text);
            if scrubbed != text.as_str() {
                let at = scrubbed.find('[').unwrap_or(0).saturating_sub(60);
                masked.push(scrubbed.chars().skip(at).take(120).collect());
            }
        }
        Value::Array(parts) => parts.iter().for_each(|p| walk(p, scrubber, n_texts, masked)),
        Value::Object(parts) => parts.values().for_each(|p| walk(p, scrubber, n_texts, masked)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

async fn whole(directory: Option<&str>) -> Result<(), Failed> {
    let kept = tokens_of_everything().await?;
    times().await?;
    line("processor time that execute adds", micros(execute(20_000).await?), 100.0, "µs");
    match instructions() {
        Ok(count) => println!("{:<58} {count:>10.0} instructions", "one execute, under callgrind"),
        Err(error) => println!("instructions are not counted: {error}"),
    }
    let output = Command::new(std::env::current_exe()?).arg("memory").output()?;
    let megabytes = String::from_utf8(output.stdout)?.trim().parse::<f64>()?;
    line("resident memory with 10,000 tools", megabytes, 120.0, "MB");
    if let Some(directory) = directory {
        false_positives(Path::new(directory))?;
    }
    if kept { Ok(()) } else { Err("a bound on tokens is broken".into()) }
}

fn main() -> Result<(), Failed> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["memory"] => println!("{}", memory().await?),
            ["execute", n] => {
                execute(n.parse()?).await?;
            }
            [directory] => whole(Some(directory)).await?,
            _ => whole(None).await?,
        }
        Ok(())
    })
}
