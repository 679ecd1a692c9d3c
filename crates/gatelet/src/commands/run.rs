//! `gatelet run`: runs a script from the shell.

mod unfinished;

use std::path::PathBuf;

use gateway::recipes::SCRIPTS_OFF;
use policy::confirm;
use serde_json::{Map, Value, json};
use tool::{Json, Reply};

use super::approval::{self, Way};
use super::asking::{self, Author, GatewayAccess, Wait};
use super::help::is_error;
use super::output::Output;
use super::person;
use crate::config_loader;
use crate::exit::{CliError, Done};
use crate::paths::Paths;
use crate::terminal::say;
use crate::wire::StartPolicy;
use unfinished::Unfinished;

/// Run a script: JavaScript that calls functions
///
/// The file is the body of an async function with `inputs` and `tools`, or a recipe. One
/// that stopped before its end goes on where it stopped, and does nothing twice.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  gatelet run totals.js --inputs '{\"status\": \"open\"}'")]
pub(crate) struct Args {
    file: PathBuf,

    /// The value of `inputs`, as a JSON object
    #[arg(long, value_name = "JSON")]
    inputs: Option<String>,

    /// Agree beforehand to what gatelet would ask about, such as a tool that destroys
    #[arg(long, short)]
    yes: bool,

    /// Start it over, also if it stopped before its end: it may do things twice
    #[arg(long)]
    fresh: bool,

    #[command(flatten)]
    output: Output,
}

/// How much of an answer comes back: no model reads here.
const WHOLE: u64 = 1 << 40;

/// No script asks more often.
const MOST_QUESTIONS: usize = 200;

pub(crate) fn run(args: &Args, paths: &Paths) -> anyhow::Result<Done> {
    let wrong = |why: String| CliError::Usage(format!("`{}`: {why}", args.file.display()));
    let code = std::fs::read_to_string(&args.file).map_err(|error| wrong(error.to_string()))?;
    let inputs: Value = match &args.inputs {
        Some(text) => serde_json::from_str(text)
            .map_err(|error| CliError::Usage(format!("--inputs is not JSON: {error}")))?,
        None => json!({}),
    };
    let loaded = config_loader::load(paths)?;
    if !loaded.config.scripts.enabled {
        let file = loaded.file.unwrap_or_else(|| PathBuf::from("gatelet.toml"));
        let why =
            format!("scripts are off: set `[scripts] enabled = true` in `{}`", file.display());
        return Err(CliError::Usage(why).into());
    }
    let unfinished = Unfinished::of(&paths.state_directory()?, &code, &inputs);
    let given = json!({"code": code, "inputs": inputs, "fresh": args.fresh});
    asking::with_gateway_or_running(paths, StartPolicy::OnDemand, async |gate| {
        gate.wait_until_known(Wait::Known).await;
        let earlier = unfinished.handle().filter(|_| !args.fresh);
        let mut reply = begin(gate, given, earlier).await?;
        for _ in 0..MOST_QUESTIONS {
            let Some(question) = approval::Question::in_reply(&reply) else { break };
            let Some(handle) = handle(&reply, "paused") else { break };
            if !args.yes && !question.is_agreed_to() {
                unfinished.keep(&handle)?;
                // Where nobody is there the request stays, for somebody elsewhere.
                if let (true, Way::Request(number)) = (person::is_there(), &question.way) {
                    gate.decide(*number, false, paths).await?;
                }
                return Err(question.refused(&waits_for(&reply)).into());
            }
            let mut again = call(json!({"resume": handle}));
            match question.way {
                Way::Token(token) => {
                    again.insert(confirm::ARGUMENT.to_owned(), json!(token));
                }
                Way::Request(number) => gate.decide(number, true, paths).await?,
            }
            reply = gate.ask("call", again).await?;
        }
        let is_stopped = is_error(&reply);
        match told(&reply).and_then(|told| told.member_as::<String>("id")).filter(|_| is_stopped) {
            Some(handle) => unfinished.keep(&handle)?,
            None => unfinished.forget(),
        }
        asking::answer(&reply, Author::Upstream, args.output)
    })
}

/// The arguments of `call` for `gatelet.run`.
fn call(kwargs: Value) -> Map<String, Value> {
    let members = [
        ("namespace", json!("gatelet")),
        ("function", json!("run")),
        ("kwargs", kwargs),
        ("sizelimit", json!(WHOLE)),
    ];
    members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// Goes on with the script that stopped, or begins it.
async fn begin(
    gate: &GatewayAccess<'_>,
    given: Value,
    earlier: Option<String>,
) -> anyhow::Result<Reply> {
    let note = "it did not end when it ran before: it goes on from there (--fresh starts it over)";
    if let Some(handle) = earlier {
        let reply = gate.ask("call", call(json!({"resume": handle}))).await?;
        // Of one that has ended or expired nothing is told.
        if told(&reply).is_some() {
            say(note);
            return Ok(reply);
        }
    }
    let reply = gate.ask("call", call(given)).await?;
    if reply.tool_result().is_some_and(|result| result.text().contains(SCRIPTS_OFF)) {
        let why = "the gate that runs was started while scripts were off: restart it, with \
                   `gatelet restart` if `gatelet up` started it";
        return Err(CliError::Refused(why.to_owned()).into());
    }
    match handle(&reply, "unfinished") {
        Some(handle) => {
            say(note);
            gate.ask("call", call(json!({"resume": handle}))).await
        }
        None => Ok(reply),
    }
}

/// What gatelet says about the script to a program.
fn told(reply: &Reply) -> Option<Json> {
    let Reply::Result(json) = reply else { return None };
    json.member("_meta")?.member("gatelet/script")
}

/// The handle of a script of which this is so: `paused`, or `unfinished`.
fn handle(reply: &Reply, is_so: &str) -> Option<String> {
    let told = told(reply)?;
    told.member_as::<bool>(is_so).filter(|is_so| *is_so)?;
    told.member_as("id")
}

/// The tool that the script waits to call.
fn waits_for(reply: &Reply) -> String {
    let tools = told(reply).and_then(|told| told.member_as::<Vec<String>>("waits_for"));
    tools.and_then(|tools| tools.into_iter().next()).unwrap_or_default()
}
