//! `gatelet remove`: removes an upstream from the configuration, with its trust and token.

use super::config_file::ConfigFile;
use super::review;
use crate::commands::person;
use crate::exit::{CliError, Done};
use crate::paths::Paths;
use crate::secrets::{Locations, Secrets};
use crate::terminal::{DIM, GOOD, out, paint, say};
use crate::wire;
use config::edit::Edit;
use config::upstreams_to_toml;

/// Take a server out of the configuration, and forget what is known of it
///
/// Its entry is printed, so that it can be put back.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The label of the upstream
    label: String,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> anyhow::Result<Done> {
    let file = ConfigFile::open(paths)?;
    let raw = file.upstream(&args.label)?;
    let label = raw.label.clone().unwrap_or_default();
    let text = file.edited(&[Edit::Remove(&label)])?;
    if !args.yes && !person::agrees(&format!("Remove `{label}` from {}?", file.path().display())) {
        let why =
            format!("nobody agreed to remove `{label}`: nothing was done; --yes agrees beforehand");
        return Err(CliError::Refused(why).into());
    }
    let upstream = file.parse(&raw, paths);
    file.write(&text)?;
    let entry = upstreams_to_toml(vec![raw]);
    out(&entry);
    say(&format!("{} `{label}` from {}", paint(GOOD, "removed"), file.path().display()));
    let n_known = upstream.and_then(|upstream| review::forget_trust(&upstream, paths)).unwrap_or(0);
    let state = paths.state_directory()?;
    let had_token = wire::vault(&state).remove(&wire::vault_entry(&label, None)).unwrap_or(false);
    if n_known != 0 || had_token {
        let token = if had_token { " and its token" } else { "" };
        say(&paint(DIM, format!("forgot the trust in {n_known} tools{token}")));
    }
    let known = Secrets::at(&state).list().unwrap_or_default();
    for name in unused_secrets(&entry, &text, &known) {
        let line =
            format!("nothing here uses the secret `{name}` any more: `gatelet secret rm {name}`");
        say(&paint(DIM, line));
    }
    Ok(Done::Fine)
}

/// The names of stored secrets that the removed entry refers to and the rest of the file
/// does not. They stay: the entry may be put back, and another file may use them.
fn unused_secrets<'a>(entry: &str, rest: &str, stored: &'a Locations) -> Vec<&'a str> {
    let is_named = |text: &str, name: &str| text.contains(&format!("${{keyring:{name}}}"));
    let names = stored.keys().map(String::as_str);
    names.filter(|name| is_named(entry, name) && !is_named(rest, name)).collect()
}
