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

mod bare;
mod questions;

use std::time::{Duration, Instant};

use content::{Config, Content, generate};
use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection};
use tool::{Ask, Call, Context, Provider};

use bare::{Bare, Field};
use questions::questions;

/// Calls that are measured in one lot; the first lot only warms up.
const N_CALLS: usize = 200;

/// Lots that are measured.
const N_LOTS: usize = 5;

/// How long one question may keep us.
const PATIENCE: Duration = Duration::from_secs(4);

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
        let url = format!("sqlite:{}", path.display());
        sites.push(Site { n_documents: *size, url });
    }
    measure("SQLite", &sites, flag("--plans")).await?;
    if let Some(server) = value("--mariadb") {
        let mut sites = Vec::new();
        for size in &sizes {
            let name = format!("gatelet_bench_{size}");
            let mut admin = sqlx::MySqlConnection::connect(&server).await?;
            let make = format!("drop database if exists {name}; create database {name}");
            sqlx::raw_sql(AssertSqlSafe(make)).execute(&mut admin).await?;
            let url = format!("{}/{name}", server.trim_end_matches('/'));
            sites.push(Site { n_documents: *size, url });
        }
        measure("MariaDB", &sites, flag("--plans")).await?;
    }
    Ok(())
}

/// What one question costs on one site: the lower quartile of a lot of calls,
/// since whatever else runs on the machine only ever adds, and of the lots the
/// one whose overhead is in the middle.
#[derive(Clone, Copy)]
struct Cost {
    tool: Duration,
    bare: Duration,
}

impl Cost {
    fn over(self) -> Duration {
        self.tool.saturating_sub(self.bare)
    }

    /// What the toolset may cost: 15 % of the statement or 100 µs, whichever
    /// is more.
    fn allowed(self) -> Duration {
        Duration::from_micros(100).max(self.bare * 15 / 100)
    }
}

/// A site of some size, and where it is.
struct Site {
    n_documents: u64,
    url: String,
}

async fn measure(engine: &str, sites: &[Site], plans: bool) -> Result<(), Problem> {
    let mut table: Vec<Vec<Cost>> = Vec::new();
    for (at, site) in sites.iter().enumerate() {
        write_site(engine, site).await?;
        let content = Content::open(&Config::new(site.url.as_str())).await?;
        let bare = Bare::open(&site.url).await?;
        let mut row = Vec::new();
        for (label, tool, arguments) in questions(site.n_documents) {
            row.push(cost(&content, &bare, tool, &arguments).await?);
            if plans && at + 1 == sites.len() {
                let prepared = content.prepare(tool, &arguments)?;
                println!("\n{engine}, {} documents: {label}", site.n_documents);
                println!("  {}", prepared.sql());
                for line in content.plan(&prepared).await? {
                    println!("    {line}");
                }
            }
        }
        bare.close().await;
        content.close().await;
        table.push(row);
    }
    if let (Some(site), Some(row)) = (sites.last(), table.last()) {
        print_overhead(engine, site.n_documents, row);
    }
    print_growth(engine, sites, &table);
    Ok(())
}

/// A site with the indexes of an installation and the suggested ones.
async fn write_site(engine: &str, site: &Site) -> Result<(), Problem> {
    let started = Instant::now();
    generate::site(&site.url, site.n_documents).await?;
    let content = Content::open(&Config::new(site.url.as_str())).await?;
    let missing = content.missing_indexes().await?;
    let statements: Vec<String> = missing.into_iter().map(|(_, statement)| statement).collect();
    content.close().await;
    generate::run(&site.url, &statements).await?;
    let (n, spent) = (site.n_documents, started.elapsed());
    println!("{engine}: {n} documents and {} suggested indexes in {spent:.1?}", statements.len());
    Ok(())
}

/// Asks both sides by turns, and each as often first as second, so that a busy
/// machine is as busy for both and a core is as often awake.
async fn cost(
    content: &Content,
    bare: &Bare,
    tool: &str,
    arguments: &Value,
) -> Result<Cost, Problem> {
    let prepared = content.prepare(tool, arguments)?;
    let (sql, values) = (prepared.sql(), prepared.values());
    let (mut whole, mut alone) = (Vec::new(), Vec::new());
    let mut spent = Duration::ZERO;
    for at in 0..(1 + N_LOTS) * N_CALLS {
        let (with, without) = if at % 2 == 0 {
            let with = asked(content, tool, arguments).await?;
            (with, asked_bare(bare, sql, &values).await?)
        } else {
            let without = asked_bare(bare, sql, &values).await?;
            (asked(content, tool, arguments).await?, without)
        };
        spent += with + without;
        // Both sides warm up, but nothing slow is asked a thousand times.
        if at >= N_CALLS || (at > 3 && spent > PATIENCE / 2) {
            whole.push(with);
            alone.push(without);
        }
        if spent > PATIENCE && whole.len() >= 3 {
            break;
        }
    }
    let lots = whole.chunks(N_CALLS).zip(alone.chunks(N_CALLS));
    let lots = lots.map(|(tool, bare)| Cost { tool: quartile(tool), bare: quartile(bare) });
    let mut lots: Vec<Cost> = lots.collect();
    lots.sort_by_key(|cost| cost.over());
    Ok(lots[lots.len() / 2])
}

async fn asked(content: &Content, tool: &str, arguments: &Value) -> Result<Duration, Problem> {
    let call = Ask::Call(Call::new(tool, arguments.clone().into()));
    let context = Context::anonymous();
    let started = Instant::now();
    content.ask(call, &context).await?;
    Ok(started.elapsed())
}

async fn asked_bare(bare: &Bare, sql: &str, values: &[Value]) -> Result<Duration, Problem> {
    let started = Instant::now();
    let rows = bare.ask(sql, values).await?;
    std::hint::black_box(rows.iter().flatten().map(Field::weight).sum::<usize>());
    Ok(started.elapsed())
}

fn quartile(times: &[Duration]) -> Duration {
    let mut times = times.to_vec();
    times.sort_unstable();
    times.get(times.len() / 4).copied().unwrap_or_default()
}

fn print_overhead(engine: &str, n_documents: u64, row: &[Cost]) {
    println!("\n{engine}, {n_documents} documents, a page of 20: microseconds, lower quartile");
    println!("{:34}{:>10}{:>10}{:>10}{:>10}", "", "bare", "tool", "over", "allowed");
    let mut n_over = 0;
    for ((label, _, _), cost) in questions(n_documents).iter().zip(row) {
        let verdict = if cost.over() <= cost.allowed() { "ok" } else { "OVER" };
        n_over += usize::from(verdict == "OVER");
        let cells = [cost.bare, cost.tool, cost.over(), cost.allowed()];
        let cells: String = cells.iter().map(|time| format!("{:>10}", time.as_micros())).collect();
        println!("{label:34}{cells}  {verdict}");
    }
    println!("{n_over} of {} questions over their allowance", row.len());
}

fn print_growth(engine: &str, sites: &[Site], table: &[Vec<Cost>]) {
    println!("\n{engine}: how the cost of a call grows, in microseconds");
    let head: String = sites.iter().map(|site| format!("{:>10}", site.n_documents)).collect();
    println!("{:34}{head}", "documents");
    for (at, (label, _, _)) in questions(1_000).iter().enumerate() {
        let cells = table.iter().map(|row| format!("{:>10}", row[at].tool.as_micros()));
        println!("{label:34}{}", cells.collect::<String>());
    }
    println!();
}
