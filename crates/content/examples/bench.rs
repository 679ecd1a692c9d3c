//! How long the tools take, what they cost over the bare statement, and how
//! that grows with the site.
//!
//! ```text
//! cargo run --release -p gatelet-content --example bench -- [--full] [--plans] [--mariadb URL]
//! ```
//!
//! Sites of 1,000 and 10,000 documents, and of 100,000 with `--full`, each with
//! ten template variables per document. SQLite in a temporary file; MariaDB in
//! databases `gatelet_bench_N` on the server that the URL names.

#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use std::time::{Duration, Instant};

use content::{Config, Content, generate};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection};
use tool::{Ask, Call, Context, Provider};

/// Calls that are measured, after as many that are not.
const N_CALLS: usize = 200;

type Problem = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Problem> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let flag = |name: &str| arguments.iter().any(|argument| argument == name);
    let value = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1).cloned()
    };
    let mut sizes = vec![1_000, 10_000];
    if flag("--full") {
        sizes.push(100_000);
    }
    let directory = tempfile::tempdir()?;
    let mut sites = Vec::new();
    for size in &sizes {
        let path = directory.path().join(format!("{size}.sqlite"));
        sites.push((*size, format!("sqlite:{}", path.display())));
    }
    measure("SQLite", &sites, flag("--plans")).await?;
    if let Some(server) = value("--mariadb") {
        let mut sites = Vec::new();
        for size in &sizes {
            let name = format!("gatelet_bench_{size}");
            let mut admin = sqlx::MySqlConnection::connect(&server).await?;
            let make = format!("drop database if exists {name}; create database {name}");
            sqlx::raw_sql(AssertSqlSafe(make)).execute(&mut admin).await?;
            sites.push((*size, format!("{}/{name}", server.trim_end_matches('/'))));
        }
        measure("MariaDB", &sites, flag("--plans")).await?;
    }
    Ok(())
}

/// The median of the calls of one tool on one site.
struct Median {
    tool: Duration,
    bare: Duration,
}

async fn measure(engine: &str, sites: &[(u64, String)], plans: bool) -> Result<(), Problem> {
    let mut table: Vec<Vec<Median>> = Vec::new();
    for (size, url) in sites {
        let started = Instant::now();
        generate::site(url, *size).await?;
        println!("{engine}: {size} documents written in {:.1?}", started.elapsed());
        let content = Content::open(&Config::new(url.as_str())).await?;
        let missing = content.missing_indexes().await?;
        let statements: Vec<String> = missing.into_iter().map(|(_, statement)| statement).collect();
        content.close().await;
        generate::run(url, &statements).await?;
        println!("{engine}: {} suggested indexes made", statements.len());
        let content = Content::open(&Config::new(url.as_str())).await?;
        let mut row = Vec::new();
        for (label, tool, arguments) in questions(*size) {
            row.push(median(&content, tool, &arguments).await?);
            let last = sites.last().is_some_and(|(last, _)| last == size);
            if plans && last {
                let prepared = content.prepare(tool, &arguments)?;
                println!("\n{engine}, {size} documents: {label}\n  {}", prepared.sql());
                for line in content.plan(&prepared).await? {
                    println!("    {line}");
                }
            }
        }
        content.close().await;
        table.push(row);
    }
    print_table(engine, sites, &table);
    Ok(())
}

async fn median(content: &Content, tool: &str, arguments: &Value) -> Result<Median, Problem> {
    let context = Context::anonymous();
    let prepared = content.prepare(tool, arguments)?;
    let (mut whole, mut bare) = (Vec::new(), Vec::new());
    for at in 0..2 * N_CALLS {
        let started = Instant::now();
        content.ask(Ask::Call(Call::new(tool, arguments.clone().into())), &context).await?;
        let spent = started.elapsed();
        let started = Instant::now();
        content.run_bare(&prepared).await?;
        if at >= N_CALLS {
            whole.push(spent);
            bare.push(started.elapsed());
        }
        // A slow question is not asked four hundred times.
        if at >= 20 && whole.iter().sum::<Duration>() > Duration::from_secs(5) {
            break;
        }
        if at == 10 && spent > Duration::from_millis(100) {
            return Ok(Median { tool: spent, bare: started.elapsed() });
        }
    }
    let middle = |mut times: Vec<Duration>| {
        times.sort_unstable();
        times.get(times.len() / 2).copied().unwrap_or_default()
    };
    Ok(Median { tool: middle(whole), bare: middle(bare) })
}

fn print_table(engine: &str, sites: &[(u64, String)], table: &[Vec<Median>]) {
    println!("\n{engine}: median of a page of 20, in microseconds (tool, bare statement, over)");
    let heads: Vec<String> = sites.iter().map(|(size, _)| format!("{size:>26}")).collect();
    println!("{:34}{}", "", heads.join(""));
    for (at, (label, _, _)) in questions(1_000).into_iter().enumerate() {
        let mut line = format!("{label:34}");
        for row in table {
            let Median { tool, bare } = row[at];
            let over = tool.saturating_sub(bare);
            let allowed = Duration::from_micros(100).max(bare * 15 / 100);
            let mark = if over > allowed { "!" } else { " " };
            let cells = (tool.as_micros(), bare.as_micros(), over.as_micros());
            line.push_str(&format!("{:>10}{:>9}{:>6}{mark}", cells.0, cells.1, cells.2));
        }
        println!("{line}");
    }
    println!();
}

/// Every tool, and the searches that cost the most.
fn questions(n_documents: u64) -> Vec<(&'static str, &'static str, Value)> {
    // Deep in the tree, and a branch near the root.
    let leaf = n_documents - 3;
    let branch = 3;
    vec![
        ("search", "evo.content.search", json!({"limit": 20})),
        ("search, offset 5000", "evo.content.search", json!({"limit": 20, "offset": 5000})),
        ("search below a branch", "evo.content.search", json!({"limit": 20, "parent": branch})),
        ("search below the root", "evo.content.search", json!({"limit": 20, "parent": 0})),
        ("search by template", "evo.content.search", json!({"limit": 20, "template": 3})),
        (
            "search, order by title",
            "evo.content.search",
            json!({"limit": 20, "order_by": "pagetitle"}),
        ),
        (
            "search with 3 variables",
            "evo.content.search",
            json!({"limit": 20, "with_tvs": ["tv1", "tv2:d", "tv3"]}),
        ),
        (
            "search by a variable",
            "evo.content.search",
            json!({"limit": 20, "tv_filters":
                [{"tv": "tv1", "op": ">", "value": 5000, "cast": "UNSIGNED"}]}),
        ),
        (
            "search below, by variable order",
            "evo.content.search",
            json!({"limit": 20, "parent": 60, "depth": 2,
                "tv_order": [{"tv": "tv2", "cast": "SIGNED"}]}),
        ),
        (
            "get with 3 variables",
            "evo.content.get",
            json!({"id": leaf, "with_tvs": ["tv1", "tv2"]}),
        ),
        ("root_tree", "evo.content.root_tree", json!({"limit": 20, "depth": 2})),
        ("descendants", "evo.content.descendants", json!({"limit": 20, "id": branch})),
        (
            "descendants, depth 3",
            "evo.content.descendants",
            json!({"limit": 20, "id": branch, "depth": 3}),
        ),
        ("ancestors", "evo.content.ancestors", json!({"limit": 20, "id": leaf})),
        ("children", "evo.content.children", json!({"limit": 20, "id": branch})),
        ("siblings", "evo.content.siblings", json!({"limit": 20, "id": leaf})),
        ("neighbors", "evo.content.neighbors", json!({"limit": 20, "id": leaf})),
        ("prev_siblings", "evo.content.prev_siblings", json!({"limit": 20, "id": leaf})),
        ("next_siblings", "evo.content.next_siblings", json!({"limit": 20, "id": leaf})),
        (
            "children_range",
            "evo.content.children_range",
            json!({"limit": 20, "id": branch, "from": 3, "to": 9}),
        ),
        (
            "siblings_range",
            "evo.content.siblings_range",
            json!({"limit": 20, "id": leaf, "from": 3, "to": 9}),
        ),
        ("model.list", "evo.model.list", json!({"model": "SiteTmplvarContentvalue", "limit": 20})),
        ("model.get", "evo.model.get", json!({"model": "SiteTmplvarContentvalue", "id": leaf})),
    ]
}
