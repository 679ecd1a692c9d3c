//! `gatelet skill`: instructions, as a model would ask for them.

use serde_json::{Map, Value, json};

use super::verb::{self, Output};
use crate::cli::Place;
use crate::exit::Done;
use crate::wire::Pace;

/// List skills or print one
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A skill, or a namespace and a skill
    #[arg(value_name = "NAME", num_args = 0..=2)]
    names: Vec<String>,

    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(args: &Args, place: &Place) -> anyhow::Result<Done> {
    let keys: &[&str] =
        if args.names.len() == 2 { &["namespace", "skillname"] } else { &["skillname"] };
    let names = keys.iter().zip(&args.names);
    let arguments: Map<String, Value> =
        names.map(|(key, name)| ((*key).to_owned(), json!(name))).collect();
    verb::with_gateway(place, Pace::WhenAsked, async |gateway| {
        verb::answer(&verb::ask(gateway, "skill", arguments).await?, args.output)
    })
}
