//! `gatelet serve`: serves MCP clients over HTTP, or over stdin and stdout, until they are
//! gone or a signal comes.

mod serving;

mod port;

mod admin;
mod certificates;
mod console;
mod effective_settings;
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
use crate::search_paths;
use crate::terminal::say;
use crate::wire::cluster::Cluster;
use crate::wire::{self, HangUp, StartPolicy, WatchedConfig, Wiring, refuse_cycle};
use config::Loaded;
use port::Listening;
use serving::Serving;

pub(crate) use serving::Args;

/// How long upstreams may take to end when gatelet does.
const UPSTREAMS_END: Duration = Duration::from_secs(5);

pub(crate) fn run(args: &Args, paths: &Paths) -> anyhow::Result<Done> {
    let written = config_loader::load_for(paths, args.listen)?;
    if args.stdio {
        refuse_cycle(written.file.as_deref()).map_err(CliError::Usage)?;
    }
    let loaded = Loaded { config: args.apply_to(&written.config), ..written.clone() };
    if let Some(warnings) = &loaded.warnings {
        say(&warnings.to_string());
    }
    // Pipes to upstreams need file descriptors too.
    web::descriptors::raise();
    let runtime = runtime(args)?;
    let outcome = runtime.block_on(serve(args, paths, loaded, written));
    // Reading stdin blocks a thread that nobody can wake.
    runtime.shutdown_background();
    outcome
}

/// Makes the runtime. Moving a call between threads costs more than answering it, so a
/// single client on stdio gets one thread; HTTP clients share half of the processors and
/// leave the others to upstreams.
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

/// Serves until the clients are gone or a signal comes. `loaded` is the configuration with
/// the flags applied, `written` that of the file, with which later changes are compared.
async fn serve(
    args: &Args,
    paths: &Paths,
    mut loaded: Loaded,
    written: Loaded,
) -> anyhow::Result<Done> {
    let state = paths.state_directory()?;
    search_paths::note(&state);
    // The port is taken first, because the manifest contains the address.
    let listening = match args.stdio {
        true => None,
        false => Some(port::listen(args, &loaded, &state)?),
    };
    if let Some(listening) = &listening {
        loaded.config.serve.listen = listening.socket.local_addr()?;
    }
    let wiring = Wiring::new(&state, StartPolicy::Configured, &loaded)?;
    check_cluster(&wiring).await?;
    wiring.load_from_replicas().await;
    let gateway = wiring.gateway(&loaded);
    wiring.observers().start_exporting();
    let serving = Serving { args, paths, state, loaded, wiring, gateway };
    let listen = listening.as_ref().map(|_| serving.config().serve.listen);
    let background = serving.start_background_tasks(listen, written);
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
    stop(background).await;
    serving.close().await;
    outcome
}

impl Serving<'_> {
    /// Starts what runs beside the clients: reloading the configuration, refreshing mounts,
    /// the object store, replicas, and giving memory back. `listen` is the address in use,
    /// which the file may leave open.
    fn start_background_tasks(
        &self,
        listen: Option<SocketAddr>,
        written: Loaded,
    ) -> [JoinHandle<()>; 5] {
        let (wiring, gateway) = (self.wiring.clone(), self.gateway.clone());
        let watched = WatchedConfig { paths: self.paths.clone(), listen, written };
        let watching = tokio::spawn(wire::watch(wiring, gateway, watched));
        let (wiring, gateway) = (self.wiring.clone(), self.gateway.clone());
        let changed = move || wiring.remount(&gateway);
        let mounts = tokio::spawn(Arc::clone(&self.wiring.mounts).keep_refreshed(changed));
        let artifacts = tokio::spawn(self.wiring.clone().maintain_artifact_store());
        let replicas = tokio::spawn(self.wiring.clone().keep_replicas_aligned());
        [watching, mounts, artifacts, replicas, tokio::spawn(wire::memory::give_back())]
    }

    /// Serves one client on stdio until it is gone or a signal comes. After a signal nothing
    /// more is read, and requests that were read are still answered for a while.
    async fn over_stdio(&self) -> anyhow::Result<Done> {
        let surface = self.config().serve.surface;
        // The upstreams start when the client is known, so this goes by their remembered
        // listings.
        self.wiring.log_unmatched(&self.gateway);
        let scraped = metrics::listen(self, None).await?;
        let input =
            wire::StoppableInput::new(stdio::stdin()?, wire::asked_to_end(HangUp::Reloads)?);
        let source = self.wiring.observers().traced_surface(&self.gateway, surface, "pipe");
        let options = stdio::Options {
            tracing: self.wiring.observers().transport_tracing(),
            ..stdio::Options::default()
        };
        // A spawned task is polled as soon as it is woken; the main future is polled only
        // after the runtime has asked the system for events, which is slower.
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
        let tls = serve.tls.as_ref().map(certificates::tls_configs).transpose();
        let tls = tls.map_err(CliError::Usage)?;
        let Listening { socket, operator, _note } = listening;
        let issuers = site::Issuers::new(self.config());
        let site = site::site(self, operator, issuers.clone(), console);
        let scraped = metrics::listen(self, Some(site.clone())).await?;
        self.gateway.warm();
        // The file that was read, even if another would be found now.
        let read = Paths { config: self.loaded.file.clone(), ..self.paths.clone() };
        let background = [
            tokio::spawn(self.wiring.clone().keep_manifest_current(self.gateway.clone())),
            tokio::spawn(issuers.clone().keep_reloading(read)),
            tokio::spawn(issuers.keep_fetching(self.config().auth.key_sources.clone())),
            tokio::spawn(ready::announce(self.wiring.clone(), self.gateway.clone())),
            tokio::spawn(run_cluster(self.wiring.cluster().cloned(), site.endpoints().clone())),
        ];
        let (signal, closing) = (wire::asked_to_end(HangUp::Reloads)?, site.clone());
        greeting::greet(self);
        let signal = async move {
            signal.await;
            closing.drain();
        };
        let limits = serve.limits.connection;
        let served = site.serve(socket, tls, limits, Box::pin(signal)).await;
        stop(background).await;
        drop(scraped);
        served?;
        Ok(Done::Fine)
    }

    /// Waits until the upstreams have ended and records are written.
    async fn close(self) {
        drop(self.gateway);
        self.wiring.end_upstreams(UPSTREAMS_END).await;
        wire::children_have_ended(UPSTREAMS_END).await;
        self.wiring.close().await;
    }
}

/// Takes part in the cluster, if there is one, until dropped.
async fn run_cluster(cluster: Option<Cluster>, endpoints: BTreeMap<String, Endpoint>) {
    if let Some(cluster) = cluster {
        cluster.run(endpoints).await;
    }
}

/// Checks the store of the cluster: one that is unfit is an error, one that is away may come
/// back.
async fn check_cluster(wiring: &Wiring) -> Result<(), CliError> {
    let Some(cluster) = wiring.cluster() else { return Ok(()) };
    match cluster.check().await {
        Ok(()) => Ok(()),
        Err(OpenError::Unfit(why)) => Err(CliError::Usage(why)),
        Err(error @ OpenError::Away(_)) => {
            tracing::error!(%error, "nothing is shared with other replicas until the store is back");
            Ok(())
        }
    }
}

async fn stop<const N: usize>(tasks: [JoinHandle<()>; N]) {
    for task in tasks {
        task.abort();
        let _ = task.await;
    }
}
