//! `gatelet console`: the console in the browser, by a link that works once.

use super::{login, running};
use crate::exit::{CliError, Done};
use crate::local_socket::LocalRequest;
use crate::paths::Paths;
use crate::terminal::{DIM, out, paint, say};

/// Open the console of the running gatelet in the browser
///
/// Prints a link that logs in once, within five minutes, and opens it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only print the link
    #[arg(long)]
    print: bool,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> anyhow::Result<Done> {
    let told = running::ask_or_fail(paths, &LocalRequest::Console)?;
    let Some(link) = told["link"].as_str() else {
        let why = told["error"].as_str().unwrap_or("the gate that runs is another version");
        return Err(CliError::Refused(why.to_owned()).into());
    };
    out(link);
    if !args.print {
        login::open_browser(link);
    }
    say(&paint(DIM, "The link works once, within five minutes."));
    Ok(Done::Fine)
}
