//! Takes the HTTP port, and leaves the note by which commands find this gatelet.

use std::path::Path;

use anyhow::Context;
use tokio::net::{TcpListener, TcpSocket};
use web::identity::key::Key;

use super::serving::Args;
use super::site;
use crate::exit::CliError;
use crate::running;
use config::Config;

/// The open port, with the operator's key and the note that contains it.
pub(super) struct Listening {
    pub(super) socket: TcpListener,
    pub(super) operator: Key,
    pub(super) _note: Option<running::NoteGuard>,
}

/// Binds the port, writes the note, and then listens: whoever can connect finds the note.
pub(super) fn listen(args: &Args, config: &Config, state: &Path) -> anyhow::Result<Listening> {
    let socket = bind(args, config)?;
    let operator = site::operator_key(config);
    let note =
        running::write_note(state, config.serve.scheme(), socket.local_addr()?, operator.secret);
    let socket = socket.listen(BACKLOG).context("cannot listen")?;
    Ok(Listening { socket, operator: operator.key, _note: note })
}

/// How many connections may wait to be accepted.
const BACKLOG: u32 = 1024;

/// Binds the port, unless other machines could use it without authentication.
fn bind(args: &Args, config: &Config) -> anyhow::Result<TcpSocket> {
    let serve = &config.serve;
    if let Some(why) = config.exposure_problem(args.open) {
        return Err(CliError::Usage(why).into());
    }
    let socket = if serve.listen.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() };
    let bound = socket.and_then(|socket| {
        // The port of a gatelet that has just ended can be taken immediately.
        #[cfg(unix)]
        socket.set_reuseaddr(true)?;
        socket.bind(serve.listen)?;
        Ok(socket)
    });
    bound.with_context(|| {
        format!("cannot listen on {}; try --listen with another port", serve.listen)
    })
}
