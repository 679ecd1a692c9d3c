//! `gatelet stats`: adds up the records of calls, by tool, day, caller and the like.

mod chart;
mod sum;

use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use jiff::{Timestamp, ToSpan};

use super::output::Output;
use crate::config_loader;
use crate::exit::{CliError, Done};
use crate::paths::Paths;
use crate::terminal::{out, say};
use crate::time::unix_seconds;
use sum::{GroupBy, Period, Stats, Sum};

/// Add up the records of calls: how many, how they ended, and the tokens saved
///
/// Records are written when the configuration has a `file` in `[records]`. Files that were put aside are read,
/// too.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The file of records [default: the one in the configuration, and those put aside]
    file: Option<PathBuf>,

    /// What to add up by
    #[arg(long, value_enum, default_value_t = GroupBy::Tool)]
    by: GroupBy,

    /// Leave out what was before: a day such as 2026-11-01, or an age such as 7d or 12h
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,

    /// Leave out what was after: a day, which is left out itself, or an age
    #[arg(long, value_name = "WHEN")]
    until: Option<String>,

    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> anyhow::Result<Done> {
    let files = match &args.file {
        Some(file) => vec![file.clone()],
        None => configured_files(paths)?,
    };
    let period = Period {
        since: args.since.as_deref().map(parse_moment).transpose()?,
        until: args.until.as_deref().map(parse_moment).transpose()?,
    };
    let stats = add_up(&files, args.by, period)?;
    if args.output.is_json() {
        out(&crate::terminal::json_text(&stats.to_json())?);
    } else {
        out(&stats.to_table());
        if let Some(chart) = stats.to_chart() {
            out(&format!("\n{chart}"));
        }
        if stats.lost != 0 {
            say(&format!("({} records were lost: they could not be written)", stats.lost));
        }
        if stats.odd != 0 {
            say(&format!("({} lines are no records)", stats.odd));
        }
    }
    Ok(Done::Fine)
}

/// The tokens of all results of one tool, by the records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ResultCost {
    pub(super) tool: String,
    pub(super) calls: usize,
    /// Tokens of the results as the upstream sent them.
    pub(super) raw: usize,
    /// Tokens of what went out to clients.
    pub(super) sent: usize,
}

/// The tokens of the results of every tool, the most expensive first.
pub(super) fn result_costs(paths: &Paths) -> anyhow::Result<Vec<ResultCost>> {
    let stats = add_up(&configured_files(paths)?, GroupBy::Tool, Period::default())?;
    let cost = |(tool, sum): (&String, &Sum)| ResultCost {
        tool: tool.clone(),
        calls: sum.calls,
        raw: sum.raw,
        sent: sum.sent,
    };
    let mut costs: Vec<ResultCost> = stats.groups().map(cost).collect();
    costs.sort_by(|one, other| other.sent.cmp(&one.sent).then(one.tool.cmp(&other.tool)));
    Ok(costs)
}

/// Adds up the records in files.
fn add_up(files: &[PathBuf], by: GroupBy, period: Period) -> anyhow::Result<Stats> {
    let mut stats = Stats::new(by, period);
    for file in files {
        let opened = std::fs::File::open(file).map_err(|error| {
            CliError::Usage(format!("cannot read the records in `{}`: {error}", file.display()))
        })?;
        add_lines(&mut stats, BufReader::new(opened))?;
    }
    stats.finish();
    Ok(stats)
}

/// The record files of the configuration, rotated ones first.
fn configured_files(paths: &Paths) -> anyhow::Result<Vec<PathBuf>> {
    let file = config_loader::load(paths)?.config.records.file.ok_or_else(|| {
        let how = "switch them on with `[records]` and `file = \"calls.jsonl\"` in the \
                   configuration, or name a file of records";
        CliError::Usage(format!("records are off: {how}"))
    })?;
    let mut files = records::events::all_files(&file);
    // During rotation there is a moment without a current file.
    if 1 < files.len() && !file.exists() {
        files.pop();
    }
    Ok(files)
}

fn add_lines(stats: &mut Stats, lines: impl BufRead) -> std::io::Result<()> {
    for line in lines.split(b'\n') {
        let line = line?;
        if !line.trim_ascii().is_empty() {
            stats.add_line(&line);
        }
    }
    Ok(())
}

/// Parses a day, a timestamp, or an age such as `7d`.
fn parse_moment(text: &str) -> Result<Timestamp, CliError> {
    let wrong = || {
        let how = "write a day such as 2026-11-01, or an age such as 7d or 12h";
        CliError::Usage(format!("`{text}` is no time: {how}"))
    };
    if let Ok(day) = text.parse::<jiff::civil::Date>() {
        let start = day.to_zoned(jiff::tz::TimeZone::UTC).map_err(|_| wrong())?;
        return Ok(start.timestamp());
    }
    if let Ok(moment) = text.parse::<Timestamp>() {
        return Ok(moment);
    }
    let unit = text.chars().last().ok_or_else(wrong)?;
    let count: i64 = text[..text.len() - unit.len_utf8()].parse().map_err(|_| wrong())?;
    let hours = match unit {
        'h' => Some(count),
        'd' => count.checked_mul(24),
        'w' => count.checked_mul(24 * 7),
        _ => None,
    };
    let hours = hours.filter(|hours| (0..=1_000_000).contains(hours)).ok_or_else(wrong)?;
    let now = i64::try_from(unix_seconds()).unwrap_or(i64::MAX);
    let now = Timestamp::from_second(now).map_err(|_| wrong())?;
    now.checked_sub(hours.hours()).map_err(|_| wrong())
}

#[cfg(test)]
mod tests;
