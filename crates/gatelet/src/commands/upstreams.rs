//! `gatelet upstreams`: connects to every upstream and shows their states.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use comfy_table::{Cell, CellAlignment};
use gateway::Gateway;
use roster::{Phase, Snapshot, Status, SupervisedUpstream, listing_check};
use serde_json::{Value, json};
use tool::{Context, CredentialHealth};

use super::asking::{self, Wait};
use super::output::Output;
use super::running;
use crate::exit::{CliError, Done};
use crate::local_socket::LocalRequest;
use crate::paths::Paths;
use crate::terminal::{self, out, paint, say};
use crate::wire::{StartPolicy, cheapest_ask};

/// Connect to every upstream and show how each fares
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Show instead everything that is not as its upstream listed it: skipped, renamed, damaged, changed
    #[arg(long)]
    report: bool,

    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> anyhow::Result<Done> {
    if !args.report
        && let Some(rows) = running::ask(paths, &LocalRequest::Status)?
    {
        return show(rows, args.output);
    }
    asking::with_gateway(paths, StartPolicy::AllAtOnce, async |gateway| {
        asking::wait_until_known(gateway, Wait::All).await;
        if args.report {
            return report(args, &gateway.roster().default_pool().snapshot());
        }
        show(self::rows(gateway).await, args.output)
    })
}

/// Prints rows that [`rows`] made, here or in the running gatelet.
pub(super) fn show(rows: Value, output: Output) -> anyhow::Result<Done> {
    let Value::Array(rows) = rows else {
        return Err(CliError::NoAnswer("the gate that runs is another version".to_owned()).into());
    };
    let down = rows.iter().any(|row| row["state"] == "down");
    if output.is_json() {
        out(&crate::terminal::json_text(&rows)?);
    } else if rows.is_empty() {
        say("no upstreams are configured");
    } else {
        out(&table(&rows));
    }
    Ok(if down { Done::AnswerIsError } else { Done::Fine })
}

/// The state of every upstream of a gateway, with the time that a ping takes.
pub(super) async fn rows(gateway: &Gateway) -> Value {
    let upstreams = gateway.roster().default_pool().snapshot().upstreams().to_vec();
    futures::future::join_all(upstreams.iter().map(row)).await.into()
}

/// The definitions of all tools as they were listed, by the label of their upstream.
pub(super) fn definitions(gateway: &Gateway) -> Value {
    let snapshot = gateway.roster().default_pool().snapshot();
    let tools = |upstream: &Arc<SupervisedUpstream>| {
        let status = upstream.status();
        // As texts, so that they stay what digests were made of.
        let raw: Value = status.listing.tools.iter().map(|tool| tool.raw.as_str()).collect();
        (status.label, raw)
    };
    Value::Object(snapshot.upstreams().iter().map(tools).collect())
}

/// The state of every upstream of a gateway, without a ping.
pub(super) fn states(gateway: &Gateway) -> Value {
    let snapshot = gateway.roster().default_pool().snapshot();
    let state = |upstream: &Arc<SupervisedUpstream>| {
        let status = upstream.status();
        let (state, reason) = state(&status);
        json!({
            "label": status.label,
            "state": state,
            "reason": reason,
            "tools": status.listing.tools.len(),
        })
    };
    snapshot.upstreams().iter().map(state).collect()
}

/// Prints the findings of the last refresh, and the hash of each listing for a pin.
fn report(args: &Args, snapshot: &Snapshot) -> anyhow::Result<Done> {
    let findings = snapshot.report();
    let hash = |upstream: &Arc<SupervisedUpstream>| {
        let status = upstream.status();
        (status.label.clone(), listing_check::hash(&status.label, &status.listing))
    };
    let hashes: BTreeMap<String, String> = snapshot.upstreams().iter().map(hash).collect();
    let registered: usize =
        snapshot.upstreams().iter().map(|upstream| upstream.listing().tools.len()).sum();
    if args.output.is_json() {
        let told = json!({"registered": registered, "findings": findings, "hashes": hashes});
        out(&crate::terminal::json_text(&told)?);
    } else {
        for (label, hash) in &hashes {
            out(&format!("{label} {hash}"));
        }
        for finding in &findings {
            out(&terminal::foreign_line(&finding.to_string()));
        }
        say(&format!("{registered} tools, {} findings", findings.len()));
    }
    Ok(Done::Fine)
}

async fn row(upstream: &Arc<SupervisedUpstream>) -> Value {
    let is_up = upstream.status().phase == Phase::Up;
    let ping = if is_up { ping(upstream).await } else { None };
    // After the ping, so that an upstream that does not answer is shown as silent.
    let status = upstream.status();
    let listing = &status.listing;
    let (state, reason) = state(&status);
    json!({
        "label": status.label,
        "state": state,
        "reason": reason,
        "credentials": status.credential.as_ref().map(credentials),
        "server": listing.server.name,
        "version": listing.server.version,
        "protocol": listing.server.protocol,
        "tools": listing.tools.len(),
        "resources": listing.resources.len() + listing.templates.len(),
        "prompts": listing.prompts.len(),
        // What its tool definitions would cost a model.
        "tokens": super::tokens::count_definitions(listing),
        "latency_ms": ping.map(|ping| ping.as_secs_f64() * 1000.0),
        "start_ms": status.start_up.map(|took| took.as_secs_f64() * 1000.0),
        "findings": listing.findings,
    })
}

/// How long a ping may take.
const PING_TIMEOUT: Duration = Duration::from_secs(3);

/// The round trip of the cheapest request.
async fn ping(upstream: &SupervisedUpstream) -> Option<Duration> {
    let ask = cheapest_ask(&upstream.listing().server.protocol);
    let since = Instant::now();
    let context = Context { timeout: Some(PING_TIMEOUT), ..asking::context() };
    upstream.ask(ask, &context).await.ok().map(|_| since.elapsed())
}

/// The texts of the columns of a row.
fn texts(row: &Value) -> Vec<String> {
    let text =
        |key: &str| terminal::foreign_line(row[key].as_str().unwrap_or_default()).into_owned();
    let number = |key: &str| row[key].to_string();
    let ping = row["latency_ms"].as_f64().map(|ping| format!("{ping:.1}"));
    vec![
        text("label"),
        text("state"),
        format!("{} {}", text("server"), text("version")).trim().to_owned(),
        text("protocol"),
        number("tools"),
        number("resources"),
        number("prompts"),
        number("tokens"),
        ping.unwrap_or_default(),
    ]
}

fn credentials(health: &CredentialHealth) -> serde_json::Value {
    match health {
        CredentialHealth::Fine | CredentialHealth::Refreshing => json!({"state": health.as_str()}),
        CredentialHealth::NeedsHuman { instruction: todo } => {
            json!({"state": health.as_str(), "todo": todo})
        }
        CredentialHealth::Broken { reason } => json!({"state": health.as_str(), "reason": reason}),
    }
}

/// The columns that are dropped on a narrow terminal, in this order.
const DROP_ORDER: [usize; 5] = [5, 6, 3, 2, 7];

/// The columns that fit into `width` without breaking words.
fn fitting_columns(rows: &[Vec<String>], width: usize) -> Vec<usize> {
    let widest = |at: &usize| rows.iter().map(|row| row[*at].chars().count()).max().unwrap_or(0);
    let mut columns: Vec<usize> = (0..rows.first().map_or(0, Vec::len)).collect();
    for dropped in DROP_ORDER {
        let needed: usize = columns.iter().map(|at| widest(at) + 2).sum();
        if needed <= width {
            break;
        }
        columns.retain(|at| *at != dropped);
    }
    columns
}

fn table(rows: &[Value]) -> String {
    let head =
        ["upstream", "state", "server", "protocol", "tools", "res.", "prompts", "tokens", "ms"];
    let mut texts = vec![head.map(str::to_owned).to_vec()];
    texts.extend(rows.iter().map(self::texts));
    let room = match terminal::is_read_by_a_person() {
        true => usize::from(terminal::width()),
        false => usize::MAX,
    };
    let columns = fitting_columns(&texts, room);
    let mut table = terminal::table(&columns.iter().map(|at| head[*at]).collect::<Vec<_>>());
    for row in rows {
        let style = if row["state"] == "down" || row["state"] == "silent" {
            terminal::BAD
        } else {
            terminal::GOOD
        };
        let texts = self::texts(row);
        table.add_row(columns.iter().map(|at| match at {
            1 => terminal::cell(style, &texts[*at]),
            4.. => Cell::new(&texts[*at]).set_alignment(CellAlignment::Right),
            _ => Cell::new(&texts[*at]),
        }));
    }
    let mut text = table.to_string();
    for row in rows {
        let label = paint(terminal::BAD, row["label"].as_str().unwrap_or_default());
        if let Some(reason) = row["reason"].as_str() {
            text += &format!("\n{label}: {}", terminal::foreign_line(reason));
        }
        let credentials = &row["credentials"];
        let why = credentials["todo"].as_str().or(credentials["reason"].as_str());
        if let Some(why) = why {
            let state = credentials["state"].as_str().unwrap_or_default();
            text += &format!("\n{label}: credentials: {state}: {}", terminal::foreign_line(why));
        }
    }
    text
}

/// The state in one word, and the reason if it is not well.
fn state(status: &Status) -> (&'static str, Option<String>) {
    match (&status.phase, status.unanswered) {
        (Phase::Asleep, _) => ("ready", None),
        (Phase::Starting, _) => ("starting", None),
        (Phase::Up, 0) => ("up", None),
        (Phase::Up, 1) => ("silent", Some("the last call got no answer in time".to_owned())),
        (Phase::Up, n) => ("silent", Some(format!("{n} calls in a row got no answer in time"))),
        (Phase::Down { reason, .. }, _) => ("down", Some(reason.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_terminal_shows_fewer_columns_and_no_broken_words() {
        let row =
            ["github", "up", "github-mcp-server 0.20", "2025-11-25", "40", "5", "2", "9000", "1"];
        let rows = [row.map(str::to_owned).to_vec()];
        assert_eq!(fitting_columns(&rows, 200).len(), 9);
        assert_eq!(fitting_columns(&rows, 40), [0, 1, 4, 7, 8]);
        assert_eq!(fitting_columns(&rows, 10), [0, 1, 4, 8]);
    }
}
