//! `gatelet status`, `gatelet logs` and `gatelet restart`: the running gatelet.

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

/// Asks the gatelet that runs for this configuration; `None` when none does.
pub(super) fn ask(paths: &Paths, wish: &LocalRequest) -> anyhow::Result<Option<Value>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(asked(paths, wish))
}

/// What the gatelet that runs for this configuration answers; `None` when none
/// does.
pub(super) async fn asked(paths: &Paths, wish: &LocalRequest) -> anyhow::Result<Option<Value>> {
    let (state, file) = (paths.state_directory()?, paths.config_file());
    let Some(stream) = local_socket::connect(&state, file.as_deref()).await else {
        return Ok(None);
    };
    let told = local_socket::ask(stream, wish).await;
    let told = told.map_err(|error| {
        CliError::NoAnswer(format!("the gate that runs gave no answer: {error}"))
    })?;
    Ok(Some(told))
}

/// Asks the gatelet that must be running.
pub(super) fn ask_or_fail(paths: &Paths, wish: &LocalRequest) -> anyhow::Result<Value> {
    ask(paths, wish)?.ok_or_else(|| {
        let why =
            "no gatelet runs for this configuration and state directory; `gatelet serve` starts one, and `gatelet up` one that stays";
        CliError::NoAnswer(why.to_owned()).into()
    })
}

pub(crate) fn logs(args: &LogsArgs, paths: &Paths) -> anyhow::Result<Done> {
    let told = ask_or_fail(paths, &LocalRequest::Logs { lines: args.lines })?;
    if args.output.is_json() {
        out(&crate::terminal::json_text(&told)?);
        return Ok(Done::Fine);
    }
    for line in told.as_array().into_iter().flatten().filter_map(Value::as_str) {
        out(&foreign(line));
    }
    Ok(Done::Fine)
}

pub(crate) fn restart(args: &RestartArgs, paths: &Paths) -> anyhow::Result<Done> {
    let Some(label) = args.label.clone() else { return service::restart(paths) };
    let told = ask_or_fail(paths, &LocalRequest::Restart { label })?;
    match told["restarted"].as_str() {
        Some(label) => {
            say(&format!("{} `{label}`", paint(GOOD, "restarted")));
            Ok(Done::Fine)
        }
        None => {
            let why = told["error"].as_str().unwrap_or("the gate refused");
            Err(CliError::Usage(why.to_owned()).into())
        }
    }
}
