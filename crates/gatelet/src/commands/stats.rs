//! `gatelet stats`: what the records of calls add up to.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use comfy_table::{Cell, CellAlignment};
use serde::Deserialize;
use serde_json::{Value, json};

use super::output::Output;
use crate::config_loader;
use crate::exit::{CliError, Done};
use crate::paths::Paths;
use crate::terminal::{self, BAD, DIM, HEADING, out, say};

/// Add up the records of calls: how many, how they ended, and the tokens saved
///
/// Records are written when the configuration has a `file` in `[records]`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The file of records [default: the one in the configuration]
    file: Option<PathBuf>,

    #[command(flatten)]
    output: Output,
}

/// One line of the file, as far as it is counted.
#[derive(Deserialize)]
struct Event {
    event: String,
    tool_id: String,
    success: bool,
    duration_ms: Option<f64>,
    attributes: Attributes,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Attributes {
    raw_tokens: usize,
    compact_tokens: usize,
    tokens_saved: usize,
    count: usize,
}

/// What some events add up to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sum {
    calls: usize,
    /// How many of them say how long they took, and all that time together.
    timed: usize,
    milliseconds: f64,
    errors: usize,
    raw: usize,
    sent: usize,
    saved: usize,
}

/// A whole file, added up.
#[derive(Debug, Default, PartialEq)]
struct Stats {
    tools: BTreeMap<String, Sum>,
    total: Sum,
    /// How often each kind of event occurs: calls, browses, views, refreshes.
    events: BTreeMap<String, usize>,
    /// How long calls took, in milliseconds.
    times: Vec<f64>,
    /// Lines that are no events, such as one that was cut off by a crash.
    odd: usize,
    /// Records that could not be written, as far as the file says.
    lost: usize,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> anyhow::Result<Done> {
    let stats = Stats::open(args.file.as_ref(), paths)?;
    if args.output.is_json() {
        out(&serde_json::to_string_pretty(&stats.to_json())?);
    } else {
        out(&stats.to_table());
        if stats.lost != 0 {
            say(&format!("({} records were lost: they could not be written)", stats.lost));
        }
        if stats.odd != 0 {
            say(&format!("({} lines are no records)", stats.odd));
        }
    }
    Ok(Done::Fine)
}

impl Sum {
    fn add(&mut self, event: &Event) {
        self.calls += 1;
        if let Some(milliseconds) = event.duration_ms {
            self.timed += 1;
            self.milliseconds += milliseconds;
        }
        self.errors += usize::from(!event.success);
        self.raw += event.attributes.raw_tokens;
        self.sent += event.attributes.compact_tokens;
        self.saved += event.attributes.tokens_saved;
    }

    /// How long a call took on average.
    fn mean(&self) -> Option<f64> {
        (self.timed != 0).then(|| self.milliseconds / self.timed as f64)
    }

    fn to_json(self) -> Value {
        json!({
            "calls": self.calls,
            "errors": self.errors,
            "mean_ms": self.mean(),
            "tokens_raw": self.raw,
            "tokens_sent": self.sent,
            "tokens_saved": self.saved,
        })
    }
}

/// What the results of one tool cost models, by the records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ResultCost {
    pub(super) tool: String,
    pub(super) calls: usize,
    /// Tokens of all results as they came, and of what went out.
    pub(super) raw: usize,
    pub(super) sent: usize,
}

/// What the results of every tool cost, the dearest first.
pub(super) fn result_costs(paths: &Paths) -> anyhow::Result<Vec<ResultCost>> {
    let stats = Stats::open(None, paths)?;
    let cost = |(tool, Sum { calls, raw, sent, .. })| ResultCost { tool, calls, raw, sent };
    let mut costs: Vec<ResultCost> = stats.tools.into_iter().map(cost).collect();
    costs.sort_by(|one, other| other.sent.cmp(&one.sent).then(one.tool.cmp(&other.tool)));
    Ok(costs)
}

impl Stats {
    /// The file of records that is named, or the one in the configuration.
    fn open(file: Option<&PathBuf>, paths: &Paths) -> anyhow::Result<Stats> {
        let file = match file {
            Some(file) => file.clone(),
            None => config_loader::load(paths)?.config.records.file.ok_or_else(|| {
                let how = "switch them on with `[records]` and `file = \"calls.jsonl\"` in the \
                           configuration, or name a file of records";
                CliError::Usage(format!("records are off: {how}"))
            })?,
        };
        let opened = std::fs::File::open(&file);
        let opened = opened.map_err(|error| {
            CliError::Usage(format!("cannot read the records in `{}`: {error}", file.display()))
        })?;
        Ok(Stats::read(BufReader::new(opened))?)
    }

    fn read(lines: impl BufRead) -> std::io::Result<Stats> {
        let mut stats = Stats::default();
        for line in lines.split(b'\n') {
            let line = line?;
            if line.trim_ascii().is_empty() {
                continue;
            }
            match serde_json::from_slice::<Event>(&line) {
                Ok(event) => {
                    *stats.events.entry(event.event.clone()).or_default() += 1;
                    if event.event == store::events::LOST {
                        stats.lost += event.attributes.count;
                    }
                    if !event.event.starts_with("execute.") {
                        continue;
                    }
                    stats.times.extend(event.duration_ms);
                    stats.total.add(&event);
                    stats.tools.entry(event.tool_id.clone()).or_default().add(&event);
                }
                Err(_) => stats.odd += 1,
            }
        }
        stats.times.sort_by(f64::total_cmp);
        Ok(stats)
    }

    /// How long a share of the calls took at most.
    fn time(&self, share: f64) -> Option<f64> {
        let last = self.times.len().checked_sub(1)?;
        self.times.get((last as f64 * share) as usize).copied()
    }

    fn to_json(&self) -> Value {
        let tools: serde_json::Map<String, Value> =
            self.tools.iter().map(|(tool, sum)| (tool.clone(), sum.to_json())).collect();
        json!({
            "tools": tools,
            "total": self.total.to_json(),
            "events": self.events,
            "duration_ms": {"p50": self.time(0.5), "p95": self.time(0.95), "max": self.time(1.0)},
            "odd_lines": self.odd,
            "lost": self.lost,
        })
    }

    /// The tools that were called most come first.
    fn to_table(&self) -> String {
        let head = ["tool", "calls", "errors", "mean ms", "tokens raw", "tokens sent", "saved"];
        let mut table = terminal::table(&head);
        let mut tools: Vec<(&String, &Sum)> = self.tools.iter().collect();
        tools.sort_by(|one, other| other.1.calls.cmp(&one.1.calls).then(one.0.cmp(other.0)));
        for (tool, sum) in tools {
            table.add_row(row(Cell::new(shown(tool)), sum));
        }
        table.add_row(row(terminal::cell(HEADING, "total"), &self.total));
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        match (self.time(0.5), self.time(0.95), self.time(1.0)) {
            (Some(half), Some(most), Some(longest)) => format!(
                "{table}\n\nA call took {half:.1} ms (median), {most:.1} ms (95th percentile), \
                 {longest:.1} ms at most."
            ),
            (_, _, _) => table.to_string(),
        }
    }
}

/// A call that named no known tool has an empty one.
fn shown(tool: &str) -> &str {
    if tool.is_empty() { "(no such tool)" } else { tool }
}

fn row(name: Cell, sum: &Sum) -> Vec<Cell> {
    let number = |n: usize| Cell::new(terminal::thousands(n));
    let style = if sum.errors == 0 { DIM } else { BAD };
    let errors = terminal::cell(style, &terminal::thousands(sum.errors));
    let mean = Cell::new(sum.mean().map_or(String::new(), |mean| format!("{mean:.1}")));
    let (raw, sent, saved) = (number(sum.raw), number(sum.sent), number(sum.saved));
    vec![name, number(sum.calls), errors, mean, raw, sent, saved]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(tool: &str, success: bool, raw: usize, sent: usize) -> String {
        let saved = raw.saturating_sub(sent);
        let attributes = json!({"raw_tokens": raw, "compact_tokens": sent, "tokens_saved": saved});
        let (event, time) = ("execute.completed", 1.5);
        json!({"event": event, "tool_id": tool, "success": success, "duration_ms": time,
               "attributes": attributes})
        .to_string()
            + "\n"
    }

    #[test]
    fn calls_errors_and_tokens_are_added_up_by_tool() {
        let text =
            line("a:x", true, 100, 10) + &line("b:y", false, 5, 9) + &line("a:x", true, 7, 7);
        let browse = json!({"event": "browse.completed", "tool_id": "", "success": true,
                            "duration_ms": 99.0, "attributes": {"card_tokens": 7}});
        let stats = Stats::read((text + &format!("{browse}\n\n{{\"cut")).as_bytes()).unwrap();
        assert_eq!((stats.events["execute.completed"], stats.events["browse.completed"]), (3, 1));
        assert_eq!(stats.time(1.0), Some(1.5));
        let (timed, milliseconds) = (2, 3.0);
        let sum = Sum { calls: 2, errors: 0, raw: 107, sent: 17, saved: 90, timed, milliseconds };
        assert_eq!(stats.tools["a:x"], sum);
        let (timed, milliseconds) = (3, 4.5);
        let sum = Sum { calls: 3, errors: 1, raw: 112, sent: 26, saved: 90, timed, milliseconds };
        assert_eq!(stats.total, sum);
        assert_eq!(stats.to_json()["tools"]["a:x"]["mean_ms"], 1.5);
        assert_eq!((stats.odd, stats.lost), (1, 0));
        let table = stats.to_table();
        assert!(table.find("a:x") < table.find("b:y") && table.contains("107"), "{table}");
        assert!(table.contains("mean ms") && table.contains("1.5 ms (median)"), "{table}");
    }

    #[test]
    fn records_that_were_lost_are_added_up() {
        let gap = json!({"event": "records.lost", "tool_id": "", "success": false,
                         "duration_ms": null, "attributes": {"count": 3}});
        let stats = Stats::read(format!("{gap}\n{gap}\n").as_bytes()).unwrap();
        assert_eq!((stats.lost, stats.total.calls, stats.odd), (6, 0, 0));
        assert_eq!(stats.to_json()["lost"], 6);
    }
}
