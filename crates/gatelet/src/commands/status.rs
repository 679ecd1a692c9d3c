//! `gatelet status`: shows the state of the upstreams of the running gatelet.

use super::output::Output;
use super::{running, upstreams};
use crate::exit::Done;
use crate::local_socket::LocalRequest;
use crate::paths::Paths;

/// Show how the upstreams of the running gatelet fare; starts nothing
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> anyhow::Result<Done> {
    upstreams::show(running::ask_or_fail(paths, &LocalRequest::Status)?, args.output)
}
