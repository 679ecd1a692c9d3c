//! `gatelet search`: searches servers in the registry.

use serde_json::json;

use super::registry::{Registry, RegistryArgs};
use crate::commands::output::Output;
use crate::exit::Done;
use crate::paths::Paths;
use crate::terminal::{self, DIM, foreign, out, paint, say};

/// Search servers in the registry, by words of their name or description
///
/// Answers are kept for an hour, and longer while the registry cannot be
/// reached.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What to look for
    #[arg(required = true)]
    words: Vec<String>,
    /// How many to show
    #[arg(long, short = 'n', value_name = "NUMBER", default_value_t = 20)]
    limit: usize,
    #[command(flatten)]
    registry: RegistryArgs,
    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> anyhow::Result<Done> {
    let registry = Registry::new(&args.registry, &paths.state_directory()?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut found = runtime.block_on(registry.search(&args.words))?;
    let n_found = found.len();
    found.truncate(args.limit);
    if args.output.is_json() {
        let rows = found.iter().map(|entry| {
            json!({
                "name": entry.name, "version": entry.version, "description": entry.description,
                "status": entry.status, "kinds": entry.kinds,
            })
        });
        out(&crate::terminal::json_text(&rows.collect::<Vec<_>>())?);
        return Ok(Done::Fine);
    }
    if found.is_empty() {
        say("nothing was found; fewer or other words may help");
        return Ok(Done::Fine);
    }
    let mut table = terminal::table(&["name", "version", "as", "what it is"]);
    for entry in &found {
        let status =
            if entry.status == "active" { String::new() } else { format!("({}) ", entry.status) };
        let about = format!("{status}{}", entry.description);
        let texts = [&entry.name, &entry.version, &entry.kinds.join(", "), &about];
        table.add_row(texts.map(|text| foreign(text).replace('\n', " ")));
    }
    out(&table.to_string());
    if args.limit < n_found {
        say(&paint(DIM, format!("{} more; -n shows them", n_found - args.limit)));
    }
    say(&paint(DIM, "add one with `gatelet add NAME the/name`"));
    Ok(Done::Fine)
}
