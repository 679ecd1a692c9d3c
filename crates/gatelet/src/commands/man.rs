//! `gatelet man`: the manual, as `man` reads it.

use std::path::PathBuf;

use anyhow::Context;

use crate::exit::Done;
use crate::terminal::out;

/// Print the manual page, or write one for every command
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Write `gatelet.1` and a page for every command into this directory
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, line: clap::Command) -> anyhow::Result<Done> {
    match &args.dir {
        Some(dir) => {
            std::fs::create_dir_all(dir)
                .and_then(|()| clap_mangen::generate_to(line, dir))
                .with_context(|| format!("cannot write the manual into {}", dir.display()))?;
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(line).render(&mut page)?;
            out(&String::from_utf8(page)?);
        }
    }
    Ok(Done::Fine)
}
