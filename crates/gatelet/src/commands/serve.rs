//! `gatelet serve`: the gate itself.

use std::net::SocketAddr;

use crate::cli::Place;
use crate::config::{self, Surface};
use crate::exit::{Done, Stop};
use crate::terminal::say;

/// Serve everything behind the gate to MCP clients
///
/// Streamable HTTP on loopback unless `--stdio` is given.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Talk on standard input and output, as a host that starts gatelet expects
    #[arg(long, conflicts_with = "listen")]
    stdio: bool,

    /// Address and port for HTTP [default: 127.0.0.1:4747, or what the configuration says]
    #[arg(long, value_name = "ADDRESS", value_parser = config::address)]
    listen: Option<SocketAddr>,

    /// What clients see
    #[arg(long, value_name = "SURFACE")]
    surface: Option<Surface>,
}

pub(crate) fn run(args: &Args, place: &Place) -> anyhow::Result<Done> {
    let loaded = config::load(place)?;
    if let Some(warnings) = &loaded.warnings {
        say(&warnings.to_string());
    }
    let _ = (args.stdio, args.listen, args.surface);
    Err(Stop::Usage("serving is not wired up yet".to_owned()).into())
}
