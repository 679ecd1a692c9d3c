//! `gatelet bench`: estimates how many tokens gatelet would save with the user's own
//! servers, by kind of host.

mod measure;
mod report;

use anyhow::Result;

use super::asking::{self, Wait};
use super::output::Output;
use crate::exit::Done;
use crate::paths::Paths;
use crate::terminal::out;
use crate::wire::StartPolicy;

/// Estimate what a task costs a model with your servers, directly and through gatelet, by kind of host
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many calls a task has
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u16).range(1..=1000))]
    calls: u16,

    /// How many searches a task has where tools are not listed
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(0..=1000))]
    searches: u16,

    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> Result<Done> {
    let results = measure::results(paths);
    asking::with_gateway(paths, StartPolicy::OnDemand, async |gateway| {
        asking::wait_until_known(gateway, Wait::Known).await;
        let measured = measure::measure(gateway, results).await?;
        let task = measured.task(usize::from(args.searches), usize::from(args.calls));
        if args.output.is_json() {
            out(&crate::terminal::json_text(&report::as_json(&measured, &task))?);
        } else {
            out(&report::text(&measured, &task));
        }
        let nothing = measured.catalogue.tools.is_empty() && !measured.uncounted.is_empty();
        Ok(if nothing { Done::NoAnswer } else { Done::Fine })
    })
}
