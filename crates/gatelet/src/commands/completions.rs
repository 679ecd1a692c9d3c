//! `gatelet completions`: prints the script by which a shell completes our commands.

use clap_complete::Shell;

use crate::exit::Done;
use crate::terminal::out;

/// Print the completion script for a shell
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    shell: Shell,
}

pub(crate) fn run(args: &Args, mut line: clap::Command) -> anyhow::Result<Done> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut line, "gatelet", &mut script);
    out(&String::from_utf8(script)?);
    Ok(Done::Fine)
}
