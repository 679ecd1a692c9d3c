//! `gatelet serve`: gatelet itself.

mod serving;

mod port;

mod admin;
mod certificates;
mod console;
mod greeting;
mod issuer_keys;
mod local_socket;
mod metrics;
mod readings;
mod ready;
mod site;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ::console::Console;
use mcp::serve::http::Endpoint;
use mcp::serve::stdio;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use valkey::OpenError;

use crate::config_loader;
use crate::exit::{CliError, Done};
use crate::paths::Paths;
use crate::terminal::say;
use crate::wire::shared::Shared;
use crate::wire::{self, HangUp, StartPolicy, Watched, Wiring, chain};
use config::Loaded;
use port::Listening;
use serving::Serving;

pub(crate) use serving::Args;

/// How long upstreams may take to end when we do.
const UPSTREAMS_END: Duration = Duration::from_secs(5);

pub(crate) fn run(args: &Args, paths: &Paths) -> anyhow::Result<Done> {
    let written = config_loader::load_for(paths, args.listen)?;
    if args.stdio {
        chain::not_again(written.file.as_deref()).map_err(CliError::Usage)?;
    }
    let loaded = Loaded { config: args.over(&written.config), ..written.clone() };
    if let Some(warnings) = &loaded.warnings {
        say(&warnings.to_string());
    }
    // Upstreams on pipes need some, too.
    web::descriptors::raise();
    let runtime = runtime(args)?;
    let outcome = runtime.block_on(serve(args, paths, loaded, written));
    // Reading stdin blocks a thread that nobody can wake.
    runtime.shutdown_background();
    outcome
}

/// Handing a call from thread to thread costs more than answering it. A pipe has
/// one client, so it gets one thread; many clients share half of the processors,
/// and leave the others to the upstreams that do the work.
fn runtime(args: &Args) -> std::io::Result<Runtime> {
    let n_processors = || std::thread::available_parallelism().map_or(1, usize::from);
    let n_threads = match (args.threads, args.stdio) {
        (Some(threads), _) => threads.get(),
        (None, true) => 1,
        (None, false) => (n_processors() / 2).max(1),
    };
    let mut builder = match n_threads {
        1 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    builder.worker_threads(n_threads).enable_all().build()
}

/// Opens a gatelet, and closes it when its clients are gone or a signal says so.
/// Changes are seen by comparison with what is `written`, without the flags.
async fn serve(
    args: &Args,
    paths: &Paths,
    mut loaded: Loaded,
    written: Loaded,
) -> anyhow::Result<Done> {
    let state = paths.state_directory()?;
    // What gatelet says of itself includes where it is.
    let listening = match args.stdio {
        true => None,
        false => Some(port::listen(args, &loaded.config, &state)?),
    };
    if let Some(listening) = &listening {
        loaded.config.serve.listen = listening.socket.local_addr()?;
    }
    let wiring = Wiring::new(&state, StartPolicy::Configured, &loaded)?;
    check_shared(&wiring).await?;
    wiring.learn().await;
    let gateway = wiring.gateway(&loaded);
    wiring.start_sending();
    let serving = Serving { args, paths, state, loaded, wiring, gateway };
    let listen = listening.as_ref().map(|_| serving.config().serve.listen);
    let keeping = serving.keep_up(listen, written);
    let file = serving.loaded.file.as_deref();
    let (wiring, gateway) = (serving.wiring.clone(), serving.gateway.clone());
    let surface = serving.config().serve.surface;
    let console = Arc::default();
    let shared = Arc::clone(&console);
    let local = local_socket::open(&serving.state, file, wiring, gateway, surface, shared).await;
    let outcome = match listening {
        None => serving.over_stdio().await,
        Some(listening) => serving.over_http(listening, &console).await,
    };
    drop(local);
    end(keeping).await;
    serving.close().await;
    outcome
}

impl Serving<'_> {
    /// Takes up what changes in files and behind mounts. `listen` is where we
    /// are, which a file that leaves it open does not know.
    fn keep_up(&self, listen: Option<SocketAddr>, written: Loaded) -> [JoinHandle<()>; 5] {
        let (wiring, gateway) = (self.wiring.clone(), self.gateway.clone());
        let watched = Watched { paths: self.paths.clone(), listen, written };
        let watching = tokio::spawn(wire::watch(wiring, gateway, watched));
        let (wiring, gateway) = (self.wiring.clone(), self.gateway.clone());
        let changed = move || wiring.remount(&gateway);
        let mounts = tokio::spawn(Arc::clone(&self.wiring.mounts).keep(changed));
        let artifacts = tokio::spawn(self.wiring.clone().look_after_artifacts());
        let in_line = tokio::spawn(self.wiring.clone().keep_in_line());
        [watching, mounts, artifacts, in_line, tokio::spawn(wire::memory::give_back())]
    }

    /// Serves the pipe until the client is gone, or a signal asks us to end: then
    /// nothing more is read, and what was asked is still answered for a while.
    async fn over_stdio(&self) -> anyhow::Result<Done> {
        let surface = self.config().serve.surface;
        // The upstreams start when the client is known: this is about what they
        // listed before.
        self.wiring.log_unmatched(&self.gateway);
        let scraped = metrics::listen(self, None).await?;
        let input =
            wire::StoppableInput::new(stdio::stdin()?, wire::asked_to_end(HangUp::Reloads)?);
        let source = self.wiring.served(&self.gateway, surface, "pipe");
        let options =
            stdio::Options { tracing: self.wiring.tracing(), ..stdio::Options::default() };
        // A task is run again as soon as it is woken. What is waited for here is
        // looked at only after the whole system was asked for news.
        let reason = tokio::spawn(stdio::serve(source, input, stdio::stdout()?, options)).await?;
        drop(scraped);
        tracing::info!("the client is gone: {reason}");
        Ok(Done::Fine)
    }

    async fn over_http(
        &self,
        listening: Listening,
        console: &OnceLock<Arc<Console>>,
    ) -> anyhow::Result<Done> {
        let serve = &self.config().serve;
        let shown = serve.tls.as_ref().map(certificates::tls_configs).transpose();
        let shown = shown.map_err(CliError::Usage)?;
        let Listening { socket, operator, _note } = listening;
        let issuers = site::Issuers::new(self.config());
        let site = site::site(self, operator, issuers.clone(), console);
        let scraped = metrics::listen(self, Some(site.clone())).await?;
        self.gateway.warm();
        // The file that was read, whatever is found later.
        let read = Paths { config: self.loaded.file.clone(), ..self.paths.clone() };
        let keeping = [
            tokio::spawn(self.wiring.clone().keep_presented(self.gateway.clone())),
            tokio::spawn(issuers.clone().keep(read)),
            tokio::spawn(issuers.fetch(self.config().auth.key_sources.clone())),
            tokio::spawn(ready::announce(self.wiring.clone(), self.gateway.clone())),
            tokio::spawn(keep_shared(self.wiring.shared().cloned(), site.endpoints().clone())),
        ];
        let (signal, closing) = (wire::asked_to_end(HangUp::Reloads)?, site.clone());
        greeting::greet(self);
        let signal = async move {
            signal.await;
            closing.drain();
        };
        let limits = serve.limits.connection;
        let served = site.serve(socket, shown, limits, Box::pin(signal)).await;
        end(keeping).await;
        drop(scraped);
        served?;
        Ok(Done::Fine)
    }

    /// Waits until the upstreams have ended and everything is written.
    async fn close(self) {
        drop(self.gateway);
        self.wiring.end_upstreams(UPSTREAMS_END).await;
        wire::children_have_ended(UPSTREAMS_END).await;
        self.wiring.close().await;
    }
}

/// Hears from the other replicas, if there are any, until dropped.
async fn keep_shared(shared: Option<Shared>, endpoints: BTreeMap<String, Endpoint>) {
    if let Some(shared) = shared {
        shared.keep(endpoints).await;
    }
}

/// A store that must not be used ends the start; one that is away may come back.
async fn check_shared(wiring: &Wiring) -> Result<(), CliError> {
    let Some(shared) = wiring.shared() else { return Ok(()) };
    match shared.check().await {
        Ok(()) => Ok(()),
        Err(OpenError::Unfit(why)) => Err(CliError::Usage(why)),
        Err(error @ OpenError::Away(_)) => {
            tracing::error!(%error, "nothing is shared with other replicas until the store is back");
            Ok(())
        }
    }
}

async fn end<const N: usize>(tasks: [JoinHandle<()>; N]) {
    for task in tasks {
        task.abort();
        let _ = task.await;
    }
}
