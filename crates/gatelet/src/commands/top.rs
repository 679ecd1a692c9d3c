//! `gatelet top`: how the running gatelet fares, in a terminal.

use std::time::Duration;

use serde_json::Value;
use telemetry::figures::{Overview, UpstreamFigures};

use super::output::Output;
use super::running;
use crate::approval_queue;
use crate::exit::{CliError, Done};
use crate::local_socket::LocalRequest;
use crate::paths::Paths;
use crate::terminal::{self, BAD, DIM, GOOD, HEADING, WARNING, foreign, out, paint};

/// Show how the running gatelet fares: calls, errors, latency, tokens and upstreams
///
/// Renews itself until it is ended with Ctrl-C. Figures are collected while somebody looks.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print once and end
    #[arg(long)]
    once: bool,

    /// Seconds between two looks
    #[arg(long, value_name = "SECONDS", default_value_t = 2)]
    every: u64,

    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> anyhow::Result<Done> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    if args.output.is_json() {
        let told = runtime.block_on(look(paths))?;
        out(&serde_json::to_string_pretty(&told.whole)?);
        return Ok(Done::Fine);
    }
    runtime.block_on(async {
        loop {
            let told = look(paths).await?;
            let text = page(&told, usize::from(terminal::width()));
            if args.once || !terminal::is_read_by_a_person() {
                out(&text);
                return Ok(Done::Fine);
            }
            terminal::redraw(&text);
            tokio::select! {
                _ = tokio::signal::ctrl_c() => return Ok(Done::Fine),
                () = tokio::time::sleep(Duration::from_secs(args.every.max(1))) => {}
            }
        }
    })
}

/// What the running gatelet tells.
struct Told {
    whole: Value,
    figures: Overview,
    upstreams: Vec<Value>,
    n_waiting: usize,
}

async fn look(paths: &Paths) -> anyhow::Result<Told> {
    let away = || {
        let why = "no gatelet runs for this configuration and state directory; `gatelet serve` starts one";
        CliError::NoAnswer(why.to_owned())
    };
    let whole = running::asked(paths, &LocalRequest::Overview).await?.ok_or_else(away)?;
    let waiting = running::asked(paths, &LocalRequest::Approvals).await?.unwrap_or_default();
    let waiting = approval_queue::requests(&waiting).unwrap_or_default();
    Ok(Told {
        figures: serde_json::from_value(whole["figures"].clone())?,
        upstreams: whole["upstreams"].as_array().cloned().unwrap_or_default(),
        n_waiting: waiting.iter().filter(|request| request.is_waiting()).count(),
        whole,
    })
}

fn page(told: &Told, width: usize) -> String {
    let figures = &told.figures;
    let hour = &figures.hour;
    let millis = |value: Option<f64>| value.map_or("–".to_owned(), |ms| format!("{ms:.1} ms"));
    let calls: Vec<u64> = figures.minutes.iter().map(|minute| minute.total.calls).collect();
    let errors: Vec<u64> = figures.minutes.iter().map(|minute| minute.total.errors).collect();
    let mut lines = vec![
        format!("{}  {}", paint(HEADING, "gatelet top"), paint(DIM, "the last hour; Ctrl-C ends")),
        String::new(),
        format!("calls     {:>8}  {}", hour.calls, paint(GOOD, bars(&calls))),
        format!("errors    {:>8}  {}", hour.errors, paint(BAD, bars(&errors))),
        format!("latency   {:>8}  95 % within {}", millis(hour.p50_ms), millis(hour.p95_ms)),
        format!(
            "tokens    {:>8}  sent of {} that servers answered",
            hour.tokens_sent, hour.tokens_raw
        ),
    ];
    if let Some(definitions) = figures.definitions {
        lines.push(format!(
            "saved     {:>8}  tokens of definitions for each session ({} instead of {})",
            definitions.saved(),
            definitions.exposed,
            definitions.direct
        ));
    }
    if told.n_waiting != 0 {
        let text = format!("{} calls wait for approval: `gatelet approvals list`", told.n_waiting);
        lines.push(paint(WARNING, text));
    }
    lines.push(String::new());
    lines.push(paint(
        DIM,
        format!(
            "{:<20} {:<9} {:>7} {:>7} {:>11} {:>11}  calls by minute",
            "upstream", "state", "calls", "errors", "median", "95 %"
        ),
    ));
    for row in rows(told) {
        lines.push(row);
    }
    let cut = lines.into_iter().map(|line| shortened(&line, width));
    cut.collect::<Vec<_>>().join("\n")
}

/// Every upstream, those that are down first, then by calls.
fn rows(told: &Told) -> Vec<String> {
    let none = UpstreamFigures::default();
    let figures =
        |label: &str| told.figures.upstreams.iter().find(|one| one.label == label).unwrap_or(&none);
    let mut upstreams: Vec<(&str, &str, &UpstreamFigures)> = told
        .upstreams
        .iter()
        .map(|row| {
            let label = row["label"].as_str().unwrap_or_default();
            (label, row["state"].as_str().unwrap_or_default(), figures(label))
        })
        .collect();
    upstreams.sort_by_key(|(_, state, one)| (*state != "down", std::cmp::Reverse(one.calls)));
    let millis = |value: Option<f64>| value.map_or("–".to_owned(), |ms| format!("{ms:.1} ms"));
    let row = |(label, state, one): (&str, &str, &UpstreamFigures)| {
        let style = if state == "down" || state == "silent" { BAD } else { GOOD };
        format!(
            "{:<20} {} {:>7} {:>7} {:>11} {:>11}  {}",
            shortened(&foreign(label), 20),
            paint(style, format!("{state:<9}")),
            one.calls,
            one.errors,
            millis(one.p50_ms),
            millis(one.p95_ms),
            paint(DIM, bars(&one.calls_by_minute)),
        )
    };
    upstreams.into_iter().map(row).collect()
}

/// Values as a row of small bars.
fn bars(values: &[u64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let highest = values.iter().copied().max().unwrap_or(0).max(1);
    let bar = |value: &u64| match value {
        0 => ' ',
        value => BARS[usize::try_from((value * 7).div_ceil(highest)).unwrap_or(7).min(7)],
    };
    values.iter().map(bar).collect()
}

/// A line without what does not fit; colours take no room.
fn shortened(line: &str, width: usize) -> String {
    let (mut shown, mut n_chars, mut is_style) = (String::new(), 0, false);
    for c in line.chars() {
        is_style = is_style || c == '\u{1b}';
        if is_style || n_chars < width {
            shown.push(c);
        }
        if !is_style {
            n_chars += 1;
        }
        is_style = is_style && c != 'm';
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_show_what_is_much_and_lines_fit() {
        assert_eq!(bars(&[0, 1, 7, 0]), " ▂█ ");
        assert_eq!(bars(&[]), "");
        assert_eq!(shortened("abcdef", 3), "abc");
        assert_eq!(shortened("\u{1b}[1mabc\u{1b}[0mdef", 2), "\u{1b}[1mab\u{1b}[0m");
    }
}
