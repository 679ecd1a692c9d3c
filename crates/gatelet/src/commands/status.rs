//! `gatelet status`: how the upstreams of the gate that runs fare.

use super::output::Output;
use super::{running, upstreams};
use crate::exit::Done;
use crate::local::Wish;
use crate::paths::Paths;

/// Show how the upstreams of the gate that runs fare; starts nothing
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> anyhow::Result<Done> {
    upstreams::show(running::demand(paths, &Wish::Status)?, args.output)
}
