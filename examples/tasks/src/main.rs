//! Checkable tasks against real servers, done by any model through gatelet, directly or
//! through other gateways, with every token counted.
//!
//! `tasks run --way gatelet --model anthropic --name MODEL` asks an endpoint, with
//! `--model pipe` a program, and with `--model folder:DIR` somebody who plays the model with
//! `tasks say DIR '{"call": …}'`. `tasks table FILE…` puts runs side by side, with their
//! spread.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints its table")]

mod compose;
mod endpoint;
mod model;
mod play;
mod table;
mod task;
mod way;
mod world;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Parser;
use replay::{Mocks, Recording};
use serde_json::json;

use endpoint::{Dialect, Endpoint};
use model::{Folder, Model};
use way::{Programs, Way};
use world::World;

#[derive(Debug, Parser)]
enum Cli {
    /// Do the tasks once
    Run(Box<Run>),
    /// Play the model of a run with `--model folder:DIR`: answer, and print what comes next
    Say { directory: PathBuf, words: Option<String> },
    /// Put runs side by side
    Table { files: Vec<PathBuf> },
}

#[derive(Debug, clap::Args)]
struct Run {
    /// direct, gatelet[:SURFACE], fastmcp[:code] or compressor
    #[arg(long)]
    way: String,

    /// anthropic, openai, pipe or folder:DIR
    #[arg(long)]
    model: String,

    /// The model's name at its endpoint
    #[arg(long, default_value = "")]
    name: String,

    /// The address of the endpoint
    #[arg(long)]
    url: Option<String>,

    /// The variable with the key of the endpoint
    #[arg(long, default_value = "API_KEY")]
    key_variable: String,

    /// The program under test
    #[arg(long, default_value = "target/release/gatelet")]
    gatelet: PathBuf,

    /// Where `cargo xtask test` put real servers, and `cargo xtask bench context` other gateways
    #[arg(long, default_value = ".tools")]
    tools: PathBuf,

    /// How many invented tools stand beside the real ones; they can be called
    #[arg(long, default_value_t = 300)]
    distractors: usize,

    /// Which tasks: `usual`, or `compose` for those in which results are joined, filtered, compared
    #[arg(long, value_enum, default_value_t = way::Set::Usual)]
    set: way::Set,

    /// Refuse `pick`, `calls` and scripts, to see what they save
    #[arg(long)]
    plain: bool,

    /// Only tasks whose name begins so
    #[arg(long, default_value = "")]
    only: String,

    /// Where to write what came out
    #[arg(long)]
    out: Option<PathBuf>,
}

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().collect();
    if let [_, first, url] = words.as_slice()
        && first == replay::BRIDGE
    {
        return Ok(replay::bridge(url)?);
    }
    match Cli::parse() {
        Cli::Run(run) => self::run(&run),
        Cli::Say { directory, words } => {
            println!("{}", model::say(&directory, words.as_deref())?);
            Ok(())
        }
        Cli::Table { files } => {
            println!("{}", table::table(&files)?);
            Ok(())
        }
    }
}

fn run(run: &Run) -> Result<()> {
    let way = Way::parse(&run.way)?;
    let mut model = open(run)?;
    let tools = std::path::absolute(&run.tools)?;
    let programs = Programs {
        gatelet: std::path::absolute(&run.gatelet)?,
        peers: tools.join("peers"),
        tools: tools.clone(),
    };
    let distractors = Mocks::start(&Recording::invented(run.distractors))?;
    let world = World::create(&tools.join("py/bin/python"))?;
    let mut connected = way.connect(&programs, &world, &distractors, run.set)?;
    connected.is_plain = run.plain;
    let (tasks, max_calls) = match run.set {
        way::Set::Usual => (task::TASKS, play::MAX_CALLS),
        way::Set::Compose => (compose::TASKS, compose::MAX_CALLS),
    };
    let mut outcomes = Vec::new();
    for task in tasks.iter().filter(|task| task.id.starts_with(&run.only)) {
        let outcome = play::play(task, max_calls, &world, &mut connected, &mut model)?;
        let word = if outcome.is_right { "right" } else { "wrong" };
        eprintln!("{}: {word}, {} calls", outcome.id, outcome.calls);
        outcomes.push(outcome);
    }
    let mut summary = play::summary(&outcomes, play::definitions(&connected));
    summary["way"] = json!(run.way);
    summary["plain"] = json!(run.plain);
    summary["set"] = json!(match run.set {
        way::Set::Usual => "usual",
        way::Set::Compose => "compose",
    });
    summary["distractors"] = json!(run.distractors);
    summary["model"] = json!(if run.name.is_empty() { &run.model } else { &run.name });
    model.end(outcomes.len(), outcomes.iter().filter(|outcome| outcome.is_right).count())?;
    match &run.out {
        Some(file) => std::fs::write(file, format!("{summary:#}\n"))
            .with_context(|| file.display().to_string())?,
        None => eprintln!("{summary:#}"),
    }
    Ok(())
}

fn open(run: &Run) -> Result<Model> {
    let key = || {
        std::env::var(&run.key_variable)
            .with_context(|| format!("set {} to the key", run.key_variable))
    };
    let endpoint = |dialect, usual: &str| -> Result<Model> {
        let url = run.url.clone().unwrap_or_else(|| usual.to_owned());
        Ok(Model::Endpoint(Endpoint::new(dialect, url, run.name.clone(), key()?)))
    };
    match run.model.split_once(':').unwrap_or((&run.model, "")) {
        ("anthropic", "") => endpoint(Dialect::Anthropic, "https://api.anthropic.com/v1/messages"),
        ("openai", "") => endpoint(Dialect::OpenAi, "https://api.openai.com/v1/chat/completions"),
        ("pipe", "") => Ok(Model::Pipe),
        ("folder", directory) => Ok(Model::Folder(Folder::create(directory.as_ref())?)),
        _ => bail!("no model `{}`; there are: anthropic, openai, pipe, folder:DIR", run.model),
    }
}
