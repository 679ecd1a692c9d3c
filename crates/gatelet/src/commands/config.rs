//! `gatelet config`: check the configuration, print its schema, show where it is.

use clap::Subcommand;
use tool::Finding;

use crate::config_loader;
use crate::exit::{CliError, Done};
use crate::paths::{self, Paths};
use crate::terminal::{DIM, GOOD, foreign, foreign_line, out, paint, say};
use crate::trusted_directories;
use crate::wire::{StartPolicy, Wiring};
use config::{Loaded, Reach};

/// Check the configuration or print its schema
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Report everything that is wrong with the configuration, each at its place
    Check,
    /// Print the JSON Schema of the configuration file, for editors
    Schema,
    /// Print where the configuration is and where it is looked for
    Path,
    /// Trust the `gatelet.toml` of this directory, which may start programs, from now on
    Trust,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> anyhow::Result<Done> {
    match args.action {
        Action::Check => check(paths),
        Action::Schema => {
            out(&crate::terminal::json_text(&config::schema())?);
            Ok(Done::Fine)
        }
        Action::Path => path(paths),
        Action::Trust => trust(paths),
    }
}

fn check(paths: &Paths) -> anyhow::Result<Done> {
    trusted_directories::check(paths)?;
    let loaded = config_loader::load(paths)?;
    if let Some(warnings) = &loaded.warnings {
        say(&warnings.to_string());
    }
    for finding in unmatched(&loaded, paths)? {
        let Finding { subject, message, .. } = finding;
        say(&foreign(&format!("warning: {subject}: {message}")));
    }
    if let Some(why) = loaded.config.exposure_problem(false) {
        return Err(CliError::Usage(format!("`serve` would refuse to start: {why}")).into());
    }
    let name = loaded.file.map_or("the embedded default".to_owned(), |f| f.display().to_string());
    let upstreams = &loaded.config.upstreams;
    let n_programs = upstreams.iter().filter(|u| matches!(u.reach, Reach::Program { .. })).count();
    let n_addresses = upstreams.iter().filter(|u| matches!(u.reach, Reach::Address { .. })).count();
    let kinds = [(n_programs, "program"), (n_addresses, "address")];
    let kinds = kinds.into_iter().chain([(upstreams.len() - n_programs - n_addresses, "other")]);
    let kinds = kinds.filter(|(n, _)| *n != 0).map(|(n, word)| counted(n, word));
    let kinds = match kinds.collect::<Vec<_>>().join(", ") {
        none if none.is_empty() => String::new(),
        some => format!(" ({some})"),
    };
    let n_upstreams = counted(upstreams.len(), "upstream");
    out(&format!("{} {name}: {n_upstreams}{kinds}", paint(GOOD, "ok")));
    Ok(Done::Fine)
}

/// Names in the configuration that match no tool, by the remembered listings of upstreams:
/// a check starts nothing and writes nothing.
fn unmatched(loaded: &Loaded, paths: &Paths) -> anyhow::Result<Vec<Finding>> {
    let state = paths.state_directory()?;
    let mut loaded = loaded.clone();
    loaded.config.records.file = None;
    let wiring = Wiring::new(&state, StartPolicy::OnDemand, &loaded)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(async { wiring.unmatched(&wiring.gateway(&loaded)) }))
}

fn counted(n: usize, word: &str) -> String {
    match (n, word) {
        (1, _) | (_, "other") => format!("{n} {word}"),
        (_, "address") => format!("{n} addresses"),
        (_, _) => format!("{n} {word}s"),
    }
}

fn trust(paths: &Paths) -> anyhow::Result<Done> {
    let directory = trusted_directories::trust(paths)?;
    let shown = directory.display().to_string();
    say(&format!("{} {}", paint(GOOD, "trusted"), foreign_line(&shown)));
    Ok(Done::Fine)
}

fn path(paths: &Paths) -> anyhow::Result<Done> {
    match paths.config_file() {
        Some(file) => out(&file.display().to_string()),
        None => {
            say("no configuration: the built-in tools are used. Looked for:");
            for candidate in paths::candidates() {
                say(&paint(DIM, format!("  {}", candidate.display())));
            }
        }
    }
    Ok(Done::Fine)
}
