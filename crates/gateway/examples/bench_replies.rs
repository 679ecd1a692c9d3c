//! How long the replies are that a model reads: `bench_replies LISTINGS QUERIES.jsonl`.
//!
//! `LISTINGS` has one JSON file per server, with its `tools`; a line of `QUERIES` has
//! a `query`. Printed are tokens: median, ninth decile and maximum of every kind of
//! reply, on the surfaces `cash` and `gateway`. The program fails when a bound is
//! broken.

#![expect(clippy::disallowed_methods, reason = "a program of its own, with files and a clock")]
#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use catalog::{Catalog, Slot, tokens};
use gateway::{Gateway, GatewayParts, Surface};
use roster::{Connector, Upstream};
use serde_json::{Value, json};
use store::clock::System;
use testkit::{Scripted, listing};
use tool::{Ask, Call, Client, Context, Failure, Listing, Provider, Reply, Tool};

type Failed = Box<dyn std::error::Error>;

/// No reply to a search has more tokens, and half of them have no more than this.
const SEARCH: usize = 400;
const SEARCH_MEDIAN: usize = 300;
/// No reply in place of a long answer has more.
const GATED: usize = 450;

struct Ready(Arc<Scripted>);

#[async_trait]
impl Connector for Ready {
    async fn connect(&self, _: &Client) -> Result<Arc<dyn Provider>, Failure> {
        Ok(Arc::clone(&self.0) as _)
    }
}

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [listings, queries] = &*arguments else {
        return Err("usage: bench_replies LISTINGS QUERIES.jsonl".into());
    };
    let servers = servers(Path::new(listings))?;
    let queries = queries_of(&std::fs::read_to_string(queries)?)?;
    let n_tools: usize = servers.iter().map(|(_, listing)| listing.tools.len()).sum();
    let gateway = open(servers);
    while gateway.roster().default_pool().snapshot().catalog.functions().len() < n_tools {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    println!("{n_tools} tools, {} queries\n", queries.len());
    println!("| reply | n | median | p90 | max |\n|---|---|---|---|---|");
    let snapshot = gateway.roster().default_pool().snapshot();
    cash(&surface(&gateway, Surface::Cash), &snapshot.catalog, &queries).await?;
    tool_browse(&surface(&gateway, Surface::Gateway), &queries).await
}

/// The replies of `help` and `call`.
async fn cash(
    surface: &Arc<dyn Provider>,
    catalog: &Catalog,
    queries: &[String],
) -> Result<(), Failed> {
    let help = async |arguments| said(surface, "help", arguments).await;
    row("help()", vec![help(json!({})).await?]);
    let mut sizes = Vec::new();
    for namespace in catalog.namespaces().iter().filter(|it| !it.functions.is_empty()) {
        sizes.push(help(json!({"namespace": namespace.path})).await?);
    }
    row("help(namespace)", sizes);
    let slots: Vec<Slot> = catalog.slots().filter(|slot| !catalog.is_builtin(*slot)).collect();
    let mut sizes = Vec::new();
    for slot in &slots {
        let (namespace, function) = (catalog.path(*slot), &catalog.function(*slot).name);
        sizes.push(help(json!({"namespace": namespace, "function": function})).await?);
    }
    row("help(function)", sizes);
    let mut sizes = Vec::new();
    for query in queries {
        sizes.push(help(json!({"kwargs": {"query": query}})).await?);
    }
    let (median, most) = row("help(query)", sizes);
    bound("help(query)", (median, most), (SEARCH_MEDIAN, SEARCH))?;
    let mut sizes = Vec::new();
    for slot in slots.iter().filter(|slot| catalog.contract(**slot).parameters.is_empty()) {
        let (namespace, function) = (catalog.path(*slot), &catalog.function(*slot).name);
        let call = json!({"namespace": namespace, "function": function});
        sizes.push(said(surface, "call", call).await?);
    }
    let (median, most) = row("call, gated", sizes);
    bound("call, gated", (median, most), (GATED, GATED))
}

async fn tool_browse(surface: &Arc<dyn Provider>, queries: &[String]) -> Result<(), Failed> {
    row("tool_browse(/)", vec![said(surface, "tool_browse", json!({"path": "/"})).await?]);
    let mut sizes = Vec::new();
    for query in queries {
        sizes.push(said(surface, "tool_browse", json!({"query": query})).await?);
    }
    let (median, most) = row("tool_browse(query)", sizes);
    bound("tool_browse(query)", (median, most), (SEARCH_MEDIAN, SEARCH))
}

/// The tokens of one reply.
async fn said(surface: &Arc<dyn Provider>, name: &str, arguments: Value) -> Result<usize, Failed> {
    let ask = Ask::Call(Call::new(name, arguments.into()));
    let reply = surface.ask(ask, &Context::anonymous()).await?;
    Ok(tokens::count(&reply.tool_result().ok_or("no result")?.text()))
}

/// Prints a line; gives median and maximum.
fn row(kind: &str, mut sizes: Vec<usize>) -> (usize, usize) {
    sizes.sort_unstable();
    let at = |share: usize| sizes.get((sizes.len() * share / 10).min(sizes.len() - 1));
    let [median, decile, most] = [at(5), at(9), sizes.last()].map(|it| it.copied().unwrap_or(0));
    println!("| {kind} | {} | {median} | {decile} | {most} |", sizes.len());
    (median, most)
}

fn bound(kind: &str, found: (usize, usize), allowed: (usize, usize)) -> Result<(), Failed> {
    if allowed.0 < found.0 || allowed.1 < found.1 {
        return Err(format!("{kind}: median and maximum are {found:?}, allowed {allowed:?}").into());
    }
    Ok(())
}

fn servers(directory: &Path) -> Result<Vec<(String, Listing)>, Failed> {
    let mut files: Vec<_> = std::fs::read_dir(directory)?.collect::<Result<_, _>>()?;
    files.sort_by_key(std::fs::DirEntry::path);
    let mut servers = Vec::new();
    for file in files {
        let server: Value = serde_json::from_str(&std::fs::read_to_string(file.path())?)?;
        let label = file.path().file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let tools = server["tools"].as_array().cloned().unwrap_or_default();
        let tools = tools.into_iter().filter_map(|raw| Tool::parse(raw.into()).ok()).collect();
        servers.push((label, listing(tools)));
    }
    Ok(servers)
}

fn queries_of(lines: &str) -> Result<Vec<String>, Failed> {
    let query = |line: &str| -> Result<String, Failed> {
        let line: Value = serde_json::from_str(line)?;
        Ok(line["query"].as_str().ok_or("a line has no `query`")?.to_owned())
    };
    lines.lines().filter(|line| !line.trim().is_empty()).map(query).collect()
}

fn open(servers: Vec<(String, Listing)>) -> Gateway {
    let upstream = |(at, (label, listing)): (usize, (String, Listing))| {
        let provider = Scripted::new(listing, move |_| Ok(long_answer(at)));
        Upstream::new(&label, Arc::new(Ready(provider)))
    };
    let upstreams = servers.into_iter().enumerate().map(upstream).collect();
    Gateway::new(GatewayParts::new(upstreams, Arc::new(System::start())))
}

fn surface(gateway: &Gateway, surface: Surface) -> Arc<dyn Provider> {
    let client = Arc::new(Client::named("bench", ""));
    gateway.surface(surface).provider_for(&client, &Arc::default())
}

/// Answers over the size limit, of the kinds that servers send.
fn long_answer(at: usize) -> Reply {
    let words = |n: usize| format!("item {n} of a list that somebody made long on purpose");
    let record = |n: usize| {
        json!({"id": n, "title": words(n), "state": "open", "labels": [{"id": 7, "name": "bug"}],
            "user": {"login": "somebody", "type": "User"}, "body": words(n).repeat(3)})
    };
    match at % 4 {
        0 => Reply::text(&(0..900).map(|n| words(n) + "\n").collect::<String>()),
        1 => Reply::text(&Value::from((0..200).map(record).collect::<Vec<_>>()).to_string()),
        2 => {
            let items: Vec<Value> = (0..200).map(record).collect();
            Reply::text(&json!({"total": 200, "next": null, "items": items}).to_string())
        }
        _ => Reply::text(&format!("Found:\n{}", json!({"text": words(1).repeat(400)}))),
    }
}
