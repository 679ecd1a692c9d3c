//! `gatelet logs` and `gatelet restart`, and how commands send requests to the running
//! gatelet over its local socket.

use serde_json::Value;

use super::output::Output;
use super::service;
use crate::exit::{CliError, Done};
use crate::local_socket::{self, LocalRequest};
use crate::paths::Paths;
use crate::terminal::{GOOD, foreign, out, paint, say};

/// Print the last lines that the running gatelet wrote to its log, and what its upstreams said
#[derive(Debug, clap::Args)]
pub(crate) struct LogsArgs {
    /// How many lines
    #[arg(long, short = 'n', value_name = "NUMBER", default_value_t = 100)]
    lines: usize,

    #[command(flatten)]
    output: Output,
}

/// Restart an upstream of the running gatelet, or the service that `gatelet up` made
#[derive(Debug, clap::Args)]
pub(crate) struct RestartArgs {
    /// The label of the upstream; the whole service without one
    label: Option<String>,
}

/// Sends a request to the gatelet that runs for this configuration, and returns its answer;
/// `None` when none runs.
pub(super) fn ask(paths: &Paths, request: &LocalRequest) -> anyhow::Result<Option<Value>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(ask_async(paths, request))
}

/// Like [`ask`], where a runtime is there already.
pub(super) async fn ask_async(
    paths: &Paths,
    request: &LocalRequest,
) -> anyhow::Result<Option<Value>> {
    let (state, file) = (paths.state_directory()?, paths.config_file());
    let Some(stream) = local_socket::connect(&state, file.as_deref()).await else {
        return Ok(None);
    };
    let answer = local_socket::ask(stream, request).await.map_err(|error| {
        CliError::NoAnswer(format!("the gate that runs gave no answer: {error}"))
    })?;
    Ok(Some(answer))
}

/// Like [`ask`], but an error when no gatelet runs.
pub(super) fn ask_or_fail(paths: &Paths, request: &LocalRequest) -> anyhow::Result<Value> {
    ask(paths, request)?.ok_or_else(|| {
        let why =
            "no gatelet runs for this configuration and state directory; `gatelet serve` starts one, and `gatelet up` one that stays";
        CliError::NoAnswer(why.to_owned()).into()
    })
}

pub(crate) fn logs(args: &LogsArgs, paths: &Paths) -> anyhow::Result<Done> {
    let answer = ask_or_fail(paths, &LocalRequest::Logs { lines: args.lines })?;
    if args.output.is_json() {
        out(&crate::terminal::json_text(&answer)?);
        return Ok(Done::Fine);
    }
    for line in answer.as_array().into_iter().flatten().filter_map(Value::as_str) {
        out(&foreign(line));
    }
    Ok(Done::Fine)
}

pub(crate) fn restart(args: &RestartArgs, paths: &Paths) -> anyhow::Result<Done> {
    let Some(label) = args.label.clone() else { return service::restart(paths) };
    let answer = ask_or_fail(paths, &LocalRequest::Restart { label })?;
    match answer["restarted"].as_str() {
        Some(label) => {
            say(&format!("{} `{label}`", paint(GOOD, "restarted")));
            Ok(Done::Fine)
        }
        None => {
            let why = answer["error"].as_str().unwrap_or("the gate refused");
            Err(CliError::Usage(why.to_owned()).into())
        }
    }
}
