//! `gatelet connect`: relays a host's stdin and stdout to the running gatelet, or serves
//! itself if none runs.

use anyhow::Context;
use mcp::serve::stdio;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;

use super::serve;
use crate::config_loader;
use crate::exit::{CliError, Done};
use crate::local_socket::{self, LocalRequest};
use crate::paths::Paths;
use crate::search_paths;
use crate::wire::refuse_cycle;

/// Talk on standard input and output to the running gatelet, so that its servers run once for all hosts
///
/// Where none runs, it serves by itself, as `gatelet serve --stdio` does.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// End with an error where none runs
    #[arg(long)]
    only: bool,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> anyhow::Result<Done> {
    let file = paths.config_file();
    refuse_cycle(file.as_deref()).map_err(CliError::Usage)?;
    let state = paths.state_directory()?;
    search_paths::note(&state);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let connected = runtime.block_on(local_socket::connect(&state, file.as_deref()));
    match connected {
        Some(stream) => {
            let relayed = runtime.block_on(relay(stream));
            // Reading stdin blocks a thread that nobody can wake.
            runtime.shutdown_background();
            relayed.map(|()| Done::Fine)
        }
        None if args.only => {
            let why = "no gatelet runs for this configuration; `gatelet up` starts one";
            Err(CliError::NoAnswer(why.to_owned()).into())
        }
        None => {
            drop(runtime);
            // A wrong configuration ends the command here; its warnings are printed by
            // `serve`.
            let _ = config_loader::load(paths)?;
            serve::run(&serve::Args::for_stdio(), paths)
        }
    }
}

/// Copies both ways until the running gatelet has answered everything.
async fn relay(stream: UnixStream) -> anyhow::Result<()> {
    let (mut answers, mut questions) = stream.into_split();
    local_socket::write_line(&mut questions, &LocalRequest::Session).await?;
    let (mut input, mut output) = (stdio::stdin()?, stdio::stdout()?);
    let asking = tokio::spawn(async move {
        let copied = tokio::io::copy(&mut input, &mut questions).await;
        // The host sends no more; its requests are still answered.
        let _ = questions.shutdown().await;
        copied
    });
    let answered = tokio::io::copy(&mut answers, &mut output).await;
    output.flush().await?;
    answered.context("the running gatelet broke off")?;
    let is_over = asking.is_finished();
    asking.abort();
    match is_over {
        true => Ok(()),
        false => Err(CliError::NoAnswer("the running gatelet ended".to_owned()).into()),
    }
}
