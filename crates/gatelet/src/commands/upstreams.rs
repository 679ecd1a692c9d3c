//! `gatelet upstreams`: what is connected and how it fares.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use comfy_table::{Cell, CellAlignment};
use gateway::roster::{Link, Phase, Snapshot, Status, inspect};
use mcp::revision::{Revision, method};
use serde_json::json;
use tool::{Ask, CredentialHealth, Object};

use super::verb::{self, Output, Wait};
use crate::exit::Done;
use crate::paths::Paths;
use crate::terminal::{self, out, paint, say};
use crate::wire::Pace;

/// Connect to every upstream and show how each fares
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Show instead everything that is not as its upstream listed it: skipped, renamed, damaged, changed
    #[arg(long)]
    report: bool,

    #[command(flatten)]
    output: Output,
}

/// One upstream and how quickly it answers.
struct Row {
    status: Status,
    /// What its tool definitions would cost a model.
    tokens: usize,
    ping: Option<Duration>,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> anyhow::Result<Done> {
    verb::with_gateway(paths, Pace::AtOnce, async |gateway| {
        verb::settle(gateway, Wait::All).await;
        if args.report {
            return report(args, &gateway.roster().default_hall().snapshot());
        }
        let links = gateway.roster().default_hall().snapshot().links().to_vec();
        let rows = futures::future::join_all(links.iter().map(row)).await;
        if args.output.is_json() {
            out(&serde_json::to_string_pretty(&rows.iter().map(Row::json).collect::<Vec<_>>())?);
        } else if rows.is_empty() {
            say("no upstreams are configured");
        } else {
            out(&table(&rows));
        }
        let down = rows.iter().any(|row| matches!(row.status.phase, Phase::Down { .. }));
        Ok(if down { Done::AnswerIsError } else { Done::Fine })
    })
}

/// What the last refresh found out, and the hash of each upstream for a pin.
fn report(args: &Args, snapshot: &Snapshot) -> anyhow::Result<Done> {
    let findings = snapshot.report();
    let hash = |link: &Arc<Link>| {
        let status = link.status();
        (status.label.clone(), inspect::hash(&status.label, &status.listing))
    };
    let hashes: BTreeMap<String, String> = snapshot.links().iter().map(hash).collect();
    let registered: usize = snapshot.links().iter().map(|link| link.listing().tools.len()).sum();
    if args.output.is_json() {
        let told = json!({"registered": registered, "findings": findings, "hashes": hashes});
        out(&serde_json::to_string_pretty(&told)?);
    } else {
        for (label, hash) in &hashes {
            out(&format!("{label} {hash}"));
        }
        for finding in &findings {
            out(&finding.to_string());
        }
        say(&format!("{registered} tools, {} findings", findings.len()));
    }
    Ok(Done::Fine)
}

async fn row(link: &Arc<Link>) -> Row {
    let status = link.status();
    let up = status.phase == Phase::Up;
    let ping = if up { ping(link).await } else { None };
    let tokens = super::tokens::of_tools(&status.listing);
    Row { status, tokens, ping }
}

/// How long the smallest question takes that the server answers itself.
/// Servers of the newest revision have no `ping`.
async fn ping(link: &Link) -> Option<Duration> {
    let is_modern = Revision::LATEST.as_str() <= link.listing().server.protocol.as_str();
    let method = if is_modern { method::DISCOVER } else { method::PING };
    let ask = Ask::Other { method: method.to_owned(), params: Object::new() };
    let since = Instant::now();
    link.ask(ask, &verb::context()).await.ok().map(|_| since.elapsed())
}

impl Row {
    /// What stands in each column.
    fn texts(&self) -> Vec<String> {
        let listing = &self.status.listing;
        let server = format!("{} {}", listing.server.name, listing.server.version);
        let ping = self.ping.map(|ping| format!("{:.1}", ping.as_secs_f64() * 1000.0));
        vec![
            self.status.label.clone(),
            state(&self.status.phase).0.to_owned(),
            server.trim().to_owned(),
            listing.server.protocol.clone(),
            listing.tools.len().to_string(),
            (listing.resources.len() + listing.templates.len()).to_string(),
            listing.prompts.len().to_string(),
            self.tokens.to_string(),
            ping.unwrap_or_default(),
        ]
    }

    fn json(&self) -> serde_json::Value {
        let listing = &self.status.listing;
        let (state, reason) = state(&self.status.phase);
        json!({
            "label": self.status.label,
            "state": state,
            "reason": reason,
            "credentials": self.status.credential.as_ref().map(credentials),
            "server": listing.server.name,
            "version": listing.server.version,
            "protocol": listing.server.protocol,
            "tools": listing.tools.len(),
            "resources": listing.resources.len() + listing.templates.len(),
            "prompts": listing.prompts.len(),
            "tokens": self.tokens,
            "latency_ms": self.ping.map(|ping| ping.as_secs_f64() * 1000.0),
            "findings": listing.findings,
        })
    }
}

fn credentials(health: &CredentialHealth) -> serde_json::Value {
    match health {
        CredentialHealth::Fine | CredentialHealth::Refreshing => json!({"state": health.word()}),
        CredentialHealth::NeedsHuman { todo } => json!({"state": health.word(), "todo": todo}),
        CredentialHealth::Broken { reason } => json!({"state": health.word(), "reason": reason}),
    }
}

/// The columns in the order in which they are given up where there is no room.
const GIVEN_UP: [usize; 5] = [5, 6, 3, 2, 7];

/// Which columns fit: a word that is broken over three lines tells nothing.
fn fitting(rows: &[Vec<String>], room: usize) -> Vec<usize> {
    let widest = |at: &usize| rows.iter().map(|row| row[*at].chars().count()).max().unwrap_or(0);
    let mut columns: Vec<usize> = (0..rows.first().map_or(0, Vec::len)).collect();
    for gone in GIVEN_UP {
        let wide: usize = columns.iter().map(|at| widest(at) + 2).sum();
        if wide <= room {
            break;
        }
        columns.retain(|at| *at != gone);
    }
    columns
}

fn table(rows: &[Row]) -> String {
    let head =
        ["upstream", "state", "server", "protocol", "tools", "res.", "prompts", "tokens", "ms"];
    let mut texts = vec![head.map(str::to_owned).to_vec()];
    texts.extend(rows.iter().map(Row::texts));
    let room = match terminal::is_read_by_a_person() {
        true => usize::from(terminal::width()),
        false => usize::MAX,
    };
    let columns = fitting(&texts, room);
    let mut table = terminal::table(&columns.iter().map(|at| head[*at]).collect::<Vec<_>>());
    for row in rows {
        let down = matches!(row.status.phase, Phase::Down { .. });
        let style = if down { terminal::BAD } else { terminal::GOOD };
        let texts = row.texts();
        table.add_row(columns.iter().map(|at| match at {
            1 => terminal::cell(style, &texts[*at]),
            4.. => Cell::new(&texts[*at]).set_alignment(CellAlignment::Right),
            _ => Cell::new(&texts[*at]),
        }));
    }
    let mut text = table.to_string();
    for row in rows {
        if let (_, Some(reason)) = state(&row.status.phase) {
            text += &format!("\n{}: {reason}", paint(terminal::BAD, &row.status.label));
        }
        if let Some(health) =
            row.status.credential.as_ref().filter(|s| **s != CredentialHealth::Fine)
        {
            let label = paint(terminal::BAD, &row.status.label);
            text += &format!("\n{label}: credentials: {health}");
        }
    }
    text
}

fn state(phase: &Phase) -> (&'static str, Option<&str>) {
    match phase {
        Phase::Asleep => ("ready", None),
        Phase::Starting => ("starting", None),
        Phase::Up => ("up", None),
        Phase::Down { reason, .. } => ("down", Some(reason)),
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
        assert_eq!(fitting(&rows, 200).len(), 9);
        assert_eq!(fitting(&rows, 40), [0, 1, 4, 7, 8]);
        assert_eq!(fitting(&rows, 10), [0, 1, 4, 8]);
    }
}
