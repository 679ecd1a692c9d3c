//! `gatelet top`: shows calls, errors, latency and upstreams of the running gatelet, and
//! refreshes the page.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use telemetry::figures::{Overview, Total, UpstreamFigures};

use super::output::Output;
use super::running;
use crate::exit::{CliError, Done};
use crate::local_socket::LocalRequest;
use crate::paths::Paths;
use crate::terminal::{self, BAD, DIM, GOOD, HEADING, WARNING, foreign, out, paint, thousands};

/// Watch the running gatelet: calls, errors, latency, tokens saved, upstreams
///
/// Figures are of the last hour, and are collected from the first look on, or from the start with `[metrics]`.
/// In a pipe, one look as JSON.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Look once and end
    #[arg(long)]
    once: bool,

    /// Seconds between two looks
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=3600))]
    every: u64,

    #[command(flatten)]
    output: Output,
}

/// The answer of the running gatelet.
#[derive(Deserialize)]
struct OverviewAnswer {
    figures: Overview,
    upstreams: Vec<Upstream>,
}

/// The present state of one upstream.
#[derive(Deserialize)]
struct Upstream {
    label: String,
    state: String,
    reason: Option<String>,
    tools: usize,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> anyhow::Result<Done> {
    let watches = !args.once && !args.output.is_json();
    loop {
        let answer = running::ask_or_fail(paths, &LocalRequest::Overview)?;
        if args.output.is_json() {
            out(&crate::terminal::json_text(&answer)?);
            return Ok(Done::Fine);
        }
        let page = page(&parse(answer)?, usize::from(terminal::width()));
        if !watches {
            out(&page);
            return Ok(Done::Fine);
        }
        terminal::fill_screen(&page);
        std::thread::sleep(Duration::from_secs(args.every));
    }
}

fn parse(answer: Value) -> Result<OverviewAnswer, CliError> {
    let other = |_| CliError::NoAnswer("the gate that runs is another version".to_owned());
    serde_json::from_value(answer).map_err(other)
}

/// Renders the page for a terminal of this width.
fn page(answer: &OverviewAnswer, width: usize) -> String {
    let OverviewAnswer { figures, upstreams } = answer;
    let mut lines = vec![headline(figures), String::new()];
    lines.extend(plots(figures, width));
    lines.push(String::new());
    lines.extend(saved_tokens(figures));
    lines.push(String::new());
    lines.push(table(figures, upstreams));
    if figures.lost != 0 {
        let lost =
            format!("{} records came too fast to be counted", thousands(count(figures.lost)));
        lines.push(paint(WARNING, lost));
    }
    lines.join("\n")
}

fn headline(figures: &Overview) -> String {
    let minutes = figures.now.saturating_sub(figures.since) / 60_000;
    let known = match minutes {
        0..60 => format!("the last {} min", minutes + 1),
        _ => "the last hour".to_owned(),
    };
    let Total { calls, errors, searches, .. } = figures.hour;
    let failed = format!("{} failed", thousands(count(errors)));
    let failed = paint(if errors == 0 { DIM } else { BAD }, failed);
    format!(
        "{}  {known}: {} calls, {failed}, {} searches",
        paint(HEADING, "gatelet"),
        thousands(count(calls)),
        thousands(count(searches)),
    )
}

/// Calls, errors and latency by minute, as lines of bars.
fn plots(figures: &Overview, width: usize) -> Vec<String> {
    // The name, the last value and the spaces between.
    let room = width.saturating_sub(36).clamp(10, 60);
    let minutes = &figures.minutes[figures.minutes.len().saturating_sub(room)..];
    let by_minute =
        |value: fn(&Total) -> f64| minutes.iter().map(|one| value(&one.total)).collect::<Vec<_>>();
    let calls = by_minute(|total| total.calls as f64);
    let errors = by_minute(|total| total.errors as f64);
    let latency = by_minute(|total| total.p95_ms.unwrap_or(0.0));
    let number = |value: f64| thousands(value as usize);
    let millis = |value: f64| format!("{value:.1} ms");
    vec![
        plot("calls/min", &calls, number),
        plot("errors/min", &errors, number),
        plot("95 % within", &latency, millis),
    ]
}

/// One line: a name, a bar for every value, and the last and the largest value as `format`
/// writes them.
fn plot(name: &str, values: &[f64], format: impl Fn(f64) -> String) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = values.iter().copied().fold(0.0, f64::max);
    let bar = |value: &f64| match most <= 0.0 || *value <= 0.0 {
        true => ' ',
        // The largest is the last bar, whatever rounding does.
        false => BARS[((value / most * 7.0).round() as usize).min(7)],
    };
    let bars: String = values.iter().map(bar).collect();
    let last = format(values.last().copied().unwrap_or(0.0));
    format!("{name:<12}{}  now {last}, most {}", paint(GOOD, bars), format(most))
}

/// Lines about the tokens that were saved.
fn saved_tokens(figures: &Overview) -> Vec<String> {
    let hour = &figures.hour;
    let mut lines = vec![format!(
        "tokens kept back by the gate: {} of {}{}",
        thousands(count(hour.tokens_saved())),
        thousands(count(hour.tokens_raw)),
        share(hour.tokens_saved(), hour.tokens_raw),
    )];
    if let Some(definitions) = figures.definitions {
        lines.push(format!(
            "definitions: {} tokens instead of {} for {} tools{}",
            thousands(count(definitions.exposed)),
            thousands(count(definitions.direct)),
            thousands(count(definitions.n_tools)),
            share(definitions.saved(), definitions.direct),
        ));
    }
    lines
}

fn share(part: u64, whole: u64) -> String {
    match whole {
        0 => String::new(),
        whole => format!(" ({:.0} % saved)", part as f64 * 100.0 / whole as f64),
    }
}

/// The upstreams: broken ones first, then those that are called most.
fn table(figures: &Overview, upstreams: &[Upstream]) -> String {
    let head = ["upstream", "state", "tools", "calls", "errors", "median ms", "95 % ms"];
    let mut table = terminal::table(&head);
    let mut rows: Vec<(&Upstream, UpstreamFigures)> = upstreams
        .iter()
        .map(|upstream| {
            let own = figures.upstreams.iter().find(|own| own.label == upstream.label);
            (upstream, own.cloned().unwrap_or_default())
        })
        .collect();
    rows.sort_by_key(|(upstream, own)| (rank(&upstream.state), std::cmp::Reverse(own.calls)));
    for (upstream, own) in rows {
        let state = match &upstream.reason {
            Some(reason) => format!("{}: {reason}", upstream.state),
            None => upstream.state.clone(),
        };
        let style = if rank(&upstream.state) == 0 { BAD } else { GOOD };
        let millis = |millis: Option<f64>| millis.map_or(String::new(), |ms| format!("{ms:.1}"));
        let errors = thousands(count(own.errors));
        table.add_row(vec![
            comfy_table::Cell::new(foreign(&upstream.label)),
            terminal::cell(style, &foreign(&state)),
            comfy_table::Cell::new(thousands(upstream.tools)),
            comfy_table::Cell::new(thousands(count(own.calls))),
            terminal::cell(if own.errors == 0 { DIM } else { BAD }, &errors),
            comfy_table::Cell::new(millis(own.p50_ms)),
            comfy_table::Cell::new(millis(own.p95_ms)),
        ]);
    }
    table.to_string()
}

/// Sorts broken upstreams first, and those that are not started last.
fn rank(state: &str) -> u8 {
    match state {
        "up" => 1,
        "ready" => 3,
        "starting" => 2,
        _ => 0,
    }
}

fn count(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use telemetry::definitions::DefinitionTokens;
    use telemetry::figures::Minute;

    use super::*;

    fn answer() -> OverviewAnswer {
        let total = |calls, errors| Total { calls, errors, p95_ms: Some(2.5), ..Total::default() };
        let minute = |at, calls| Minute { at, total: total(calls, 0) };
        let own = |label: &str, calls| UpstreamFigures {
            label: label.to_owned(),
            calls,
            ..UpstreamFigures::default()
        };
        let figures = Overview {
            now: 180_000,
            minutes: vec![minute(0, 1), minute(60_000, 800), minute(120_000, 400)],
            hour: Total { tokens_raw: 1_000, tokens_sent: 250, ..total(1_201, 3) },
            upstreams: vec![own("busy", 1_000), own("quiet", 1)],
            definitions: Some(DefinitionTokens { direct: 10_000, exposed: 500, n_tools: 99 }),
            ..Overview::default()
        };
        let upstreams = json!([
            {"label": "quiet", "state": "up", "reason": null, "tools": 1},
            {"label": "busy", "state": "up", "reason": null, "tools": 2},
            {"label": "ill\u{1b}[2J", "state": "down", "reason": "no such program", "tools": 0},
        ]);
        OverviewAnswer { figures, upstreams: serde_json::from_value(upstreams).unwrap() }
    }

    #[test]
    fn a_page_has_figures_plots_and_upstreams_with_the_ill_ones_first() {
        let page = page(&answer(), 100);
        for part in [
            "1,201 calls",
            "3 failed",
            "the last 4 min",
            "750 of 1,000",
            "75 % saved",
            "500 tokens instead of 10,000 for 99 tools",
            "95 % saved",
            "now 400, most 800",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(page.contains("▁█▅"), "{page}");
        let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text}: {page}"));
        assert!(at("no such program") < at("busy") && at("busy") < at("quiet"), "{page}");
        assert!(!page.contains("\u{1b}[2J"), "{page}");
    }

    #[test]
    fn a_gate_that_does_nothing_is_shown_too() {
        let nothing = OverviewAnswer { figures: Overview::default(), upstreams: Vec::new() };
        assert!(page(&nothing, 20).contains("0 calls"));
    }
}
