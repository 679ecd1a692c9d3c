//! Adds up the records of calls by tool, upstream, caller, client, day or hour.

use std::collections::BTreeMap;

use comfy_table::{Cell, CellAlignment};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::chart;
use crate::terminal::{self, BAD, DIM, HEADING};

/// What records are grouped by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum GroupBy {
    Tool,
    Upstream,
    Caller,
    /// The program that callers use
    Client,
    /// In UTC
    Day,
    /// In UTC
    Hour,
}

/// The time span of the records that count.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Period {
    pub(super) since: Option<Timestamp>,
    pub(super) until: Option<Timestamp>,
}

/// One line of the file, with the members that are counted.
#[derive(Deserialize)]
struct Event {
    event: String,
    #[serde(default)]
    timestamp: String,
    tool_id: String,
    #[serde(default)]
    namespace: String,
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
    caller: String,
    client: String,
}

/// The sum of some records.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sum {
    pub(super) calls: usize,
    /// How many calls have a duration.
    timed: usize,
    /// The sum of those durations.
    milliseconds: f64,
    pub(super) errors: usize,
    /// Tokens of results as upstreams sent them.
    pub(super) raw: usize,
    /// Tokens of what went out to clients.
    pub(super) sent: usize,
    /// Tokens that were saved.
    saved: usize,
}

/// The sums of all records of some files.
#[derive(Debug)]
pub(super) struct Stats {
    by: GroupBy,
    period: Period,
    groups: BTreeMap<String, Sum>,
    pub(super) total: Sum,
    /// How often each kind of event occurs: calls, browses, views, refreshes.
    events: BTreeMap<String, usize>,
    /// How long calls took, in milliseconds.
    times: Vec<f64>,
    /// Lines that cannot be parsed, such as one that was cut off by a crash.
    pub(super) odd: usize,
    /// Records that could not be written, as far as the file says.
    pub(super) lost: usize,
}

impl GroupBy {
    /// What the groups are called.
    fn heading(self) -> &'static str {
        match self {
            GroupBy::Tool => "tool",
            GroupBy::Upstream => "upstream",
            GroupBy::Caller => "caller",
            GroupBy::Client => "client",
            GroupBy::Day => "day",
            GroupBy::Hour => "hour",
        }
    }

    /// The group of an event.
    fn group(self, event: &Event) -> &str {
        match self {
            GroupBy::Tool => &event.tool_id,
            GroupBy::Upstream => &event.namespace,
            GroupBy::Caller => &event.attributes.caller,
            GroupBy::Client => &event.attributes.client,
            GroupBy::Day => event.timestamp.get(..10).unwrap_or_default(),
            GroupBy::Hour => event.timestamp.get(..13).unwrap_or_default(),
        }
    }

    /// The name of the group of records that have none.
    fn unnamed_group(self) -> &'static str {
        match self {
            GroupBy::Tool => "(no such tool)",
            GroupBy::Upstream => "(none)",
            GroupBy::Caller => "(anonymous)",
            GroupBy::Client | GroupBy::Day | GroupBy::Hour => "(unknown)",
        }
    }

    fn is_time(self) -> bool {
        match self {
            GroupBy::Day | GroupBy::Hour => true,
            GroupBy::Tool | GroupBy::Upstream | GroupBy::Caller | GroupBy::Client => false,
        }
    }
}

impl Period {
    /// Whether an event counts. One without a time counts only where there are no limits.
    fn includes(&self, timestamp: &str) -> bool {
        if self.since.is_none() && self.until.is_none() {
            return true;
        }
        let Ok(at) = timestamp.parse::<Timestamp>() else { return false };
        self.since.is_none_or(|since| since <= at) && self.until.is_none_or(|until| at < until)
    }
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

impl Stats {
    pub(super) fn new(by: GroupBy, period: Period) -> Stats {
        Stats {
            by,
            period,
            groups: BTreeMap::new(),
            total: Sum::default(),
            events: BTreeMap::new(),
            times: Vec::new(),
            odd: 0,
            lost: 0,
        }
    }

    pub(super) fn add_line(&mut self, line: &[u8]) {
        let Ok(event) = serde_json::from_slice::<Event>(line) else {
            self.odd += 1;
            return;
        };
        if !self.period.includes(&event.timestamp) {
            return;
        }
        *self.events.entry(event.event.clone()).or_default() += 1;
        if event.event == records::events::LOST {
            self.lost += event.attributes.count;
        }
        if !event.event.starts_with("execute.") {
            return;
        }
        self.times.extend(event.duration_ms);
        self.total.add(&event);
        self.groups.entry(self.by.group(&event).to_owned()).or_default().add(&event);
    }

    /// Must be called after the last line.
    pub(super) fn finish(&mut self) {
        self.times.sort_by(f64::total_cmp);
    }

    /// The duration that a share of the calls did not exceed: a percentile.
    fn percentile(&self, share: f64) -> Option<f64> {
        let last = self.times.len().checked_sub(1)?;
        self.times.get((last as f64 * share) as usize).copied()
    }

    pub(super) fn to_json(&self) -> Value {
        let groups: serde_json::Map<String, Value> =
            self.groups.iter().map(|(name, sum)| (name.clone(), sum.to_json())).collect();
        let mut told = json!({
            "total": self.total.to_json(),
            "events": self.events,
            "duration_ms": {"p50": self.percentile(0.5), "p95": self.percentile(0.95), "max": self.percentile(1.0)},
            "odd_lines": self.odd,
            "lost": self.lost,
        });
        told[format!("{}s", self.by.heading())] = groups.into();
        told
    }

    /// The groups with their sums.
    pub(super) fn groups(&self) -> impl Iterator<Item = (&String, &Sum)> {
        self.groups.iter()
    }

    /// The groups in order of time, or else the most called first.
    fn ordered(&self) -> Vec<(&String, &Sum)> {
        let mut groups: Vec<(&String, &Sum)> = self.groups.iter().collect();
        if !self.by.is_time() {
            groups.sort_by(|one, other| other.1.calls.cmp(&one.1.calls).then(one.0.cmp(other.0)));
        }
        groups
    }

    pub(super) fn to_table(&self) -> String {
        let heading = self.by.heading();
        let head = [heading, "calls", "errors", "mean ms", "tokens raw", "tokens sent", "saved"];
        let mut table = terminal::table(&head);
        for (name, sum) in self.ordered() {
            table.add_row(row(Cell::new(self.group_name(name)), sum));
        }
        table.add_row(row(terminal::cell(HEADING, "total"), &self.total));
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        match (self.percentile(0.5), self.percentile(0.95), self.percentile(1.0)) {
            (Some(half), Some(most), Some(longest)) => format!(
                "{table}\n\nA call took {half:.1} ms (median), {most:.1} ms (95th percentile), \
                 {longest:.1} ms at most."
            ),
            (_, _, _) => table.to_string(),
        }
    }

    /// The calls as bars, where there is more than one group to compare.
    pub(super) fn to_chart(&self) -> Option<String> {
        let bars: Vec<chart::Bar> = self
            .ordered()
            .into_iter()
            .map(|(name, sum)| chart::Bar {
                label: self.group_name(name),
                value: sum.calls,
                bad: sum.errors,
            })
            .collect();
        let shown = match self.by.is_time() {
            true => &bars[bars.len().saturating_sub(chart::MAX_BARS)..],
            false => &bars[..bars.len().min(chart::MAX_BARS)],
        };
        (1 < shown.len()).then(|| chart::draw(shown))
    }

    /// The name of a group for the terminal.
    fn group_name(&self, name: &str) -> String {
        match name.is_empty() {
            true => self.by.unnamed_group().to_owned(),
            false => terminal::foreign_line(name).into_owned(),
        }
    }
}

fn row(name: Cell, sum: &Sum) -> Vec<Cell> {
    let number = |n: usize| Cell::new(terminal::thousands(n));
    let style = if sum.errors == 0 { DIM } else { BAD };
    let errors = terminal::cell(style, &terminal::thousands(sum.errors));
    let mean = Cell::new(sum.mean().map_or(String::new(), |mean| format!("{mean:.1}")));
    let (raw, sent, saved) = (number(sum.raw), number(sum.sent), number(sum.saved));
    vec![name, number(sum.calls), errors, mean, raw, sent, saved]
}
