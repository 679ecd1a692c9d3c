//! `gatelet tools`: lists the built-in tools, and those that could not be registered.

use super::output::Output;
use crate::exit::Done;
use crate::paths::Paths;
use crate::terminal::{BAD, DIM, HEADING, out, paint};

/// List the tools that are built in, and how they were found
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> anyhow::Result<Done> {
    let reports = builtin::reports(&paths.state_directory()?);
    if args.output.is_json() {
        let all: serde_json::Value = reports
            .iter()
            .map(|(label, report)| {
                (label.to_string(), report.to_json().to_value().unwrap_or_default())
            })
            .collect::<serde_json::Map<_, _>>()
            .into();
        out(&crate::terminal::json_text(&all)?);
        return Ok(Done::Fine);
    }
    let mut failed = false;
    for (label, report) in &reports {
        out(&format!(
            "{} {}",
            paint(HEADING, label),
            paint(DIM, format!("{} tools in {:.1?}", report.found.len(), report.took))
        ));
        for tool in &report.found {
            let old = tool
                .deprecated_in
                .as_ref()
                .map_or(String::new(), |version| format!(", deprecated in {version}"));
            out(&format!(
                "  {} {}",
                tool.name,
                paint(DIM, format!("{}{old}, {}", tool.version, tool.place))
            ));
        }
        for tool in &report.failed {
            failed = true;
            out(&format!("  {} {}: {}", paint(BAD, "refused"), tool.name, tool.error));
        }
    }
    Ok(if failed { Done::AnswerIsError } else { Done::Fine })
}
