//! Takes the HTTP port, and leaves the note by which commands find this gatelet.

use std::os::unix::net::UnixStream;
use std::path::Path;

use anyhow::Context;
use tokio::net::{TcpListener, TcpSocket};
use web::identity::key::Key;

use super::serving::Args;
use super::site;
use crate::exit::CliError;
use crate::{local_socket, running};
use config::{Config, Loaded};

/// The open port, with the operator's key and the note that contains it.
pub(super) struct Listening {
    pub(super) socket: TcpListener,
    pub(super) operator: Key,
    pub(super) _note: Option<running::NoteGuard>,
}

/// Binds the port, writes the note, and then listens: whoever can connect finds the note.
pub(super) fn listen(args: &Args, loaded: &Loaded, state: &Path) -> anyhow::Result<Listening> {
    let config = &loaded.config;
    let is_other =
        || UnixStream::connect(local_socket::socket(state, loaded.file.as_deref())).is_ok();
    let socket = bind(args, config, is_other)?;
    let operator = site::operator_key(config);
    let note =
        running::write_note(state, config.serve.scheme(), socket.local_addr()?, operator.secret);
    let socket = socket.listen(BACKLOG).context("cannot listen")?;
    Ok(Listening { socket, operator: operator.key, _note: note })
}

/// How many connections may wait to be accepted.
const BACKLOG: u32 = 1024;

/// Binds the port, unless other machines could use it without authentication. `is_other` says
/// whether a gatelet runs already for this configuration.
fn bind(args: &Args, config: &Config, is_other: impl Fn() -> bool) -> anyhow::Result<TcpSocket> {
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
    bound.map_err(|error| {
        let is_taken = error.kind() == std::io::ErrorKind::AddrInUse;
        let listen = serve.listen;
        let why = match is_taken && is_other() {
            true => format!(
                "a gatelet runs already for this configuration, so {listen} is taken: \
                 `gatelet status` shows how it fares, `gatelet restart` restarts the service"
            ),
            false => format!("cannot listen on {listen}; try --listen with another port"),
        };
        anyhow::Error::new(error).context(why)
    })
}
