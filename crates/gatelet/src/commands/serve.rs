//! `gatelet serve`: the gate itself.

mod admin;
mod greeting;
mod showing;
mod site;

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use gateway::Gateway;
use mcp::serve::stdio;
use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime::Runtime;
use web::identity::key::Key;
use web::tls::Callers;

use crate::cli::Place;
use crate::config::{self, Loaded, Surface, Tls};
use crate::exit::{Done, Stop};
use crate::gate;
use crate::terminal::say;
use crate::wire::{self, Pace, Wiring, chain};

/// Serve everything behind the gate to MCP clients
///
/// Streamable HTTP on loopback unless `--stdio` is given. Without a
/// configuration the built-in tools are served.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Talk on standard input and output, as a host that starts gatelet expects
    #[arg(long, conflicts_with = "listen")]
    pub(crate) stdio: bool,

    /// Address and port for HTTP [default: 127.0.0.1:4747, or what the configuration says]
    #[arg(long, value_name = "ADDRESS", value_parser = config::address)]
    listen: Option<SocketAddr>,

    /// Threads that answer [default: half of the processors, or one with --stdio]
    #[arg(long, value_name = "NUMBER")]
    threads: Option<NonZeroUsize>,

    /// What clients see [default: cash, or what the configuration says]
    #[arg(long, value_name = "SURFACE")]
    surface: Option<Surface>,

    /// Listen on an address that other machines can reach, though nobody is asked who they are
    #[arg(long)]
    open: bool,

    /// Speak HTTPS with this certificate chain, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_key", conflicts_with = "stdio")]
    tls_cert: Option<PathBuf>,

    /// The private key of the certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
}

/// How long upstreams may take to end when we do.
const FAREWELL: Duration = Duration::from_secs(5);

pub(crate) fn run(args: &Args, place: &Place) -> anyhow::Result<Done> {
    let place = &Place { listen: args.listen, ..place.clone() };
    let written = config::load(place)?;
    if args.stdio {
        chain::not_again(written.file.as_deref())?;
    }
    let mut loaded = written.clone();
    loaded.config.serve.listen = args.listen.unwrap_or(loaded.config.serve.listen);
    loaded.config.serve.surface = args.surface.unwrap_or(loaded.config.serve.surface);
    if let (Some(cert), Some(key)) = (&args.tls_cert, &args.tls_key) {
        let (cert, key) = (cert.clone(), key.clone());
        let rest = loaded.config.serve.tls.take();
        let callers = rest.as_ref().map(|tls| tls.callers).unwrap_or_default();
        let client_ca = rest.and_then(|tls| tls.client_ca);
        loaded.config.serve.tls = Some(Tls { cert, key, client_ca, callers });
    }
    if let Some(warnings) = &loaded.warnings {
        say(&warnings.to_string());
    }
    let state = config::state_directory(place)?;
    let runtime = runtime(args)?;
    let outcome = runtime.block_on(async {
        // What the gate says of itself includes where it is.
        let listener = if args.stdio { None } else { Some(listen(args, &loaded, &state)?) };
        if let Some(listener) = &listener {
            loaded.config.serve.listen = listener.socket.local_addr()?;
        }
        let wiring = Wiring::new(&state, Pace::Configured, &loaded)?;
        let gateway = wiring.gateway(&loaded);
        let listen = listener.as_ref().map(|_| loaded.config.serve.listen);
        let here = Place { listen, ..place.clone() };
        let watching = wire::watch(wiring.clone(), gateway.clone(), here, written);
        let watching = tokio::spawn(watching);
        let changed = {
            let (wiring, gateway) = (wiring.clone(), gateway.clone());
            move || wiring.remount(&gateway)
        };
        let mounting = tokio::spawn(Arc::clone(&wiring.mounts).keep(changed));
        let outcome = match listener {
            None => over_stdio(&loaded, &gateway).await,
            Some(listener) => {
                let words = &greeting::words(args, place, loaded.file.as_deref());
                let kept = Kept { state: &state, place, words };
                over_http(&loaded, &gateway, &wiring, &kept, listener).await
            }
        };
        for task in [watching, mounting] {
            task.abort();
            let _ = task.await;
        }
        drop(gateway);
        wire::children_have_ended(FAREWELL).await;
        wiring.close();
        outcome
    });
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

/// Serves the pipe until the client is gone, or a signal asks us to end: then
/// nothing more is read, and what was asked is still answered for a while.
async fn over_stdio(loaded: &Loaded, gateway: &Gateway) -> anyhow::Result<Done> {
    let surface = loaded.config.serve.surface.meant();
    let input = wire::Until::new(stdio::stdin()?, wire::signal()?);
    let (door, options) = (gateway.door(surface), stdio::Options::default());
    let reason = stdio::serve(door, input, stdio::stdout()?, options).await;
    tracing::info!("the client is gone: {reason}");
    Ok(Done::Fine)
}

/// A port that is ours, and the note that says so.
struct Listening {
    socket: TcpListener,
    operator: Key,
    _note: gate::Left,
}

/// Takes the port and leaves the note, in this order but before anybody can
/// connect: whoever finds the port open finds the note.
fn listen(args: &Args, loaded: &Loaded, state: &Path) -> anyhow::Result<Listening> {
    let socket = bind(args, loaded)?;
    let operator = site::operator(&loaded.config);
    let scheme = if loaded.config.serve.tls.is_some() { "https" } else { "http" };
    let note = gate::leave(state, scheme, socket.local_addr()?, operator.secret)?;
    let socket = socket.listen(BACKLOG).context("cannot listen")?;
    Ok(Listening { socket, operator: operator.key, _note: note })
}

/// As many may wait to be taken in as the standard library allows.
const BACKLOG: u32 = 1024;

/// Takes the port, unless strangers could reach it and nobody is asked.
fn bind(args: &Args, loaded: &Loaded) -> anyhow::Result<TcpSocket> {
    let serve = &loaded.config.serve;
    let shows = serve.tls.as_ref().is_some_and(|tls| tls.callers == Callers::Must);
    let guarded = loaded.config.auth.required || shows || args.open || serve.open;
    if !serve.listen.ip().is_loopback() && !guarded {
        let message = format!(
            "`{}` can be reached from other machines, and nobody is asked who they are; listen on \
             127.0.0.1, set `auth.required`, or say --open if that is what you want",
            serve.listen
        );
        return Err(Stop::Usage(message).into());
    }
    let socket = if serve.listen.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() };
    let bound = socket.and_then(|socket| {
        // A port is free again as soon as the gate before is gone.
        #[cfg(unix)]
        socket.set_reuseaddr(true)?;
        socket.bind(serve.listen)?;
        Ok(socket)
    });
    bound.with_context(|| {
        format!("cannot listen on {}; try --listen with another port", serve.listen)
    })
}

/// Where things are read and remembered.
struct Kept<'a> {
    state: &'a Path,
    place: &'a Place,
    /// How this gate is started over a pipe.
    words: &'a [String],
}

async fn over_http(
    loaded: &Loaded,
    gateway: &Gateway,
    wiring: &Wiring,
    kept: &Kept<'_>,
    listener: Listening,
) -> anyhow::Result<Done> {
    let state = kept.state;
    let serve = &loaded.config.serve;
    let shown = serve.tls.as_ref().map(showing::showing).transpose();
    let shown = shown.map_err(Stop::Usage)?;
    let Listening { socket, operator, _note } = listener;
    let address = socket.local_addr()?;
    let desk = admin::Desk { wiring: wiring.clone(), gateway: gateway.clone() };
    let issuers = site::Issuers::of(&loaded.config);
    let site =
        site::site(gateway, serve.surface, &loaded.config, state, operator, desk, issuers.clone());
    gateway.warm();
    // The file that was read, whatever is found later.
    let read = Place { config: loaded.file.clone(), ..kept.place.clone() };
    let keeping = [
        tokio::spawn(wiring.clone().keep_presented(gateway.clone())),
        tokio::spawn(issuers.keep(read)),
    ];
    let (signal, closing) = (wire::signal()?, site.clone());
    greeting::greet(address, loaded, gateway, kept.words);
    let signal = async move {
        signal.await;
        closing.drain();
    };
    let answer = move |request| {
        let site = site.clone();
        async move { site.respond(request).await }
    };
    let served = web::listen::listen(socket, shown, serve.limits.connection, answer, signal).await;
    for task in keeping {
        task.abort();
        let _ = task.await;
    }
    served?;
    Ok(Done::Fine)
}
