//! `gatelet run`: runs a script from the shell.

use std::path::PathBuf;

use policy::confirm;
use serde_json::{Map, Value, json};

use super::approval::{self, Way};
use super::asking::{self, Author, Wait};
use super::output::Output;
use crate::exit::{CliError, Done};
use crate::paths::Paths;
use crate::wire::StartPolicy;

/// Run a script: JavaScript that calls functions
///
/// The file is the body of an async function with `inputs` and `tools`, or a recipe.
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
    let call = |kwargs: Value| {
        let members = [
            ("namespace", json!("gatelet")),
            ("function", json!("run")),
            ("kwargs", kwargs),
            ("sizelimit", json!(WHOLE)),
        ];
        members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Map<_, _>>()
    };
    asking::with_gateway_or_running(paths, StartPolicy::OnDemand, async |gate| {
        gate.wait_until_known(Wait::Known).await;
        let mut reply = gate.ask("call", call(json!({"code": code, "inputs": inputs}))).await?;
        for _ in 0..MOST_QUESTIONS {
            let Some(question) = approval::Question::in_reply(&reply) else { break };
            if !args.yes && !question.is_agreed_to() {
                return Err(question.refused("the script").into());
            }
            let Some(handle) = paused(&reply) else { break };
            let mut again = call(json!({"resume": handle}));
            match question.way {
                Way::Token(token) => {
                    again.insert(confirm::ARGUMENT.to_owned(), json!(token));
                }
                Way::Request(number) => gate.allow(number, paths).await?,
            }
            reply = gate.ask("call", again).await?;
        }
        asking::answer(&reply, Author::Upstream, args.output)
    })
}

/// The handle of a script that waits for somebody.
fn paused(reply: &tool::Reply) -> Option<String> {
    let tool::Reply::Result(json) = reply else { return None };
    let told = json.member("_meta")?.member("gatelet/script")?;
    told.member_as::<bool>("paused").filter(|paused| *paused)?;
    told.member_as("id")
}
