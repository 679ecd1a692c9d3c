//! The port that a gatelet takes, and the note that says so.

use std::path::Path;

use anyhow::Context;
use tokio::net::{TcpListener, TcpSocket};
use web::identity::key::Key;

use super::serving::Args;
use super::site;
use crate::exit::CliError;
use crate::running;
use config::Config;

/// A port that is ours, and the note that says so.
pub(super) struct Listening {
    pub(super) socket: TcpListener,
    pub(super) operator: Key,
    pub(super) _note: Option<running::NoteGuard>,
}

/// Takes the port and leaves the note, in this order but before anybody can
/// connect: whoever finds the port open finds the note.
pub(super) fn listen(args: &Args, config: &Config, state: &Path) -> anyhow::Result<Listening> {
    let socket = bind(args, config)?;
    let operator = site::operator(config);
    let note = running::leave(state, config.serve.scheme(), socket.local_addr()?, operator.secret);
    let socket = socket.listen(BACKLOG).context("cannot listen")?;
    Ok(Listening { socket, operator: operator.key, _note: note })
}

/// As many may wait to be taken in as the standard library allows.
const BACKLOG: u32 = 1024;

/// Takes the port, unless strangers could reach it and nobody is asked.
fn bind(args: &Args, config: &Config) -> anyhow::Result<TcpSocket> {
    let serve = &config.serve;
    if let Some(why) = config.exposed(args.open) {
        return Err(CliError::Usage(why).into());
    }
    let socket = if serve.listen.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() };
    let bound = socket.and_then(|socket| {
        // A port is free again as soon as the gatelet before is gone.
        #[cfg(unix)]
        socket.set_reuseaddr(true)?;
        socket.bind(serve.listen)?;
        Ok(socket)
    });
    bound.with_context(|| {
        format!("cannot listen on {}; try --listen with another port", serve.listen)
    })
}
