//! `gatelet run`: runs a script from the shell, and resumes one that stopped before its end.

mod unfinished;

use std::path::PathBuf;

use gateway::recipes::SCRIPTS_OFF;
use policy::confirm;
use serde_json::{Map, Value, json};
use tool::{Json, Reply};

use super::approval::{self, ApprovalMethod};
use super::asking::{self, Author, GatewayAccess, Wait};
use super::help::is_error;
use super::output::Output;
use super::person;
use crate::config_loader;
use crate::exit::{CliError, Done};
use crate::paths::Paths;
use crate::terminal::say;
use crate::wire::StartPolicy;
use unfinished::UnfinishedRun;

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

/// The size limit of the reply: none, because no model reads it.
const NO_LIMIT: u64 = 1 << 40;

/// How often a script may ask for approval.
const MAX_QUESTIONS: usize = 200;

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
    let unfinished = UnfinishedRun::new(&paths.state_directory()?, &code, &inputs);
    let kwargs = json!({"code": code, "inputs": inputs, "fresh": args.fresh});
    asking::with_gateway_or_running(paths, StartPolicy::OnDemand, async |gate| {
        gate.wait_until_known(Wait::Known).await;
        let earlier = unfinished.handle().filter(|_| !args.fresh);
        let mut reply = start_or_resume(gate, kwargs, earlier).await?;
        for _ in 0..MAX_QUESTIONS {
            let Some(question) = approval::Question::parse(&reply) else { break };
            let Some(handle) = handle_if(&reply, "paused") else { break };
            if !args.yes && !question.ask_person() {
                unfinished.store(&handle)?;
                // Without a person here, the request stays for somebody elsewhere.
                if let (true, ApprovalMethod::Request(number)) =
                    (person::is_there(), &question.method)
                {
                    gate.decide(*number, false, paths).await?;
                }
                return Err(question.refusal(&waits_for(&reply)).into());
            }
            let mut again = call(json!({"resume": handle}));
            match question.method {
                ApprovalMethod::Token(token) => {
                    again.insert(confirm::ARGUMENT.to_owned(), json!(token));
                }
                ApprovalMethod::Request(number) => gate.decide(number, true, paths).await?,
            }
            reply = gate.call_tool("call", again).await?;
        }
        let is_stopped = is_error(&reply);
        let handle = script_meta(&reply).and_then(|meta| meta.member_as::<String>("id"));
        match handle.filter(|_| is_stopped) {
            Some(handle) => unfinished.store(&handle)?,
            None => unfinished.forget(),
        }
        asking::print_reply(&reply, Author::Upstream, args.output)
    })
}

/// The arguments of `call` for `gatelet.run`.
fn call(kwargs: Value) -> Map<String, Value> {
    let members = [
        ("namespace", json!("gatelet")),
        ("function", json!("run")),
        ("kwargs", kwargs),
        ("sizelimit", json!(NO_LIMIT)),
    ];
    members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// Resumes the script by the handle of its earlier run, or starts it with `kwargs`.
async fn start_or_resume(
    gate: &GatewayAccess<'_>,
    kwargs: Value,
    earlier: Option<String>,
) -> anyhow::Result<Reply> {
    let note = "it did not end when it ran before: it goes on from there (--fresh starts it over)";
    if let Some(handle) = earlier {
        let reply = gate.call_tool("call", call(json!({"resume": handle}))).await?;
        // A run that has ended or expired has no metadata.
        if script_meta(&reply).is_some() {
            say(note);
            return Ok(reply);
        }
    }
    let reply = gate.call_tool("call", call(kwargs)).await?;
    if reply.tool_result().is_some_and(|result| result.text().contains(SCRIPTS_OFF)) {
        let why = "the gate that runs was started while scripts were off: restart it, with \
                   `gatelet restart` if `gatelet up` started it";
        return Err(CliError::Refused(why.to_owned()).into());
    }
    match handle_if(&reply, "unfinished") {
        Some(handle) => {
            say(note);
            gate.call_tool("call", call(json!({"resume": handle}))).await
        }
        None => Ok(reply),
    }
}

/// The metadata about the run of a script in a reply.
fn script_meta(reply: &Reply) -> Option<Json> {
    let Reply::Result(json) = reply else { return None };
    json.member("_meta")?.member("gatelet/script")
}

/// The handle of a script, if the metadata has this flag (`paused` or `unfinished`) set.
fn handle_if(reply: &Reply, flag: &str) -> Option<String> {
    let meta = script_meta(reply)?;
    meta.member_as::<bool>(flag).filter(|is_set| *is_set)?;
    meta.member_as("id")
}

/// The tool that the script waits to call.
fn waits_for(reply: &Reply) -> String {
    let tools = script_meta(reply).and_then(|meta| meta.member_as::<Vec<String>>("waits_for"));
    tools.and_then(|tools| tools.into_iter().next()).unwrap_or_default()
}
