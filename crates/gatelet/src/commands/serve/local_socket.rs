//! Serves the local socket, over which commands on this machine reach a running gatelet.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use console::Console;
use gateway::{Gateway, Surface};
use mcp::serve::stdio;
use serde_json::{Value, json};
use tokio::io::BufReader;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio_util::task::AbortOnDropHandle;

use crate::approval_queue::{self, BY_SHELL};
use crate::commands::upstreams;
use crate::local_socket::{self, LocalRequest};
use crate::logging;
use crate::wire::Wiring;

/// The open socket; removed when dropped.
pub(super) struct LocalSocket {
    path: PathBuf,
    _serving: AbortOnDropHandle<()>,
}

impl Drop for LocalSocket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The pause after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(500);

/// Answers the requests of commands.
struct LocalServer {
    wiring: Wiring,
    gateway: Gateway,
    /// The surface for hosts.
    surface: Surface,
    console: Arc<OnceLock<Arc<Console>>>,
}

/// Opens the socket, unless another gatelet of the same configuration has it. Without a
/// socket, commands start upstreams themselves.
pub(super) async fn open(
    state: &Path,
    config: Option<&Path>,
    wiring: Wiring,
    gateway: Gateway,
    surface: Surface,
    console: Arc<OnceLock<Arc<Console>>>,
) -> Option<LocalSocket> {
    if local_socket::connect(state, config).await.is_some() {
        return None;
    }
    let path = local_socket::socket(state, config);
    match bind(&path) {
        Ok(listener) => {
            let server = Arc::new(LocalServer { wiring, gateway, surface, console });
            let serving = AbortOnDropHandle::new(tokio::spawn(serve(listener, server)));
            Some(LocalSocket { path, _serving: serving })
        }
        Err(error) => {
            tracing::debug!(path = %path.display(), %error, "commands cannot reach this gate");
            None
        }
    }
}

fn bind(path: &Path) -> std::io::Result<UnixListener> {
    if let Some(parent) = path.parent() {
        store::file::create_private_dir(parent)?;
    }
    // A gatelet that was killed leaves its socket.
    let _ = std::fs::remove_file(path);
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

async fn serve(listener: UnixListener, server: Arc<LocalServer>) {
    let mut sessions = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) if local_socket::is_owners(&stream) => {
                    let server = Arc::clone(&server);
                    sessions.spawn(async move { server.answer(stream).await });
                }
                Ok(_) => tracing::warn!("somebody else came to the socket and was sent away"),
                // The process may be short of file descriptors for a moment.
                Err(error) => {
                    tracing::warn!(%error, "a command could not be let in");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            Some(_) = sessions.join_next() => {}
        }
    }
}

impl LocalServer {
    async fn answer(&self, stream: UnixStream) {
        let (reader, mut writer) = stream.into_split();
        let mut reader = BufReader::new(reader);
        let request = local_socket::read_line::<LocalRequest>(&mut reader).await;
        let Ok(request) = request else { return };
        let answer = match request {
            LocalRequest::Mcp => {
                self.serve(Surface::Cash, reader, writer).await;
                return;
            }
            LocalRequest::Session => {
                self.serve(self.surface, reader, writer).await;
                return;
            }
            LocalRequest::Status => upstreams::rows(&self.gateway).await,
            LocalRequest::Definitions => upstreams::definitions(&self.gateway),
            LocalRequest::Overview => json!({
                "figures": self.wiring.observers().overview(&self.gateway).await,
                "upstreams": upstreams::states(&self.gateway),
            }),
            LocalRequest::Logs { lines } => json!(logging::recent(lines)),
            LocalRequest::Restart { label } => self.restart(&label),
            LocalRequest::Console => self.console_link(),
            LocalRequest::Approvals => approval_queue::list(self.gateway.approvals()).await,
            LocalRequest::Decide { number, allow } => {
                approval_queue::decide(self.gateway.approvals(), number, allow, BY_SHELL).await
            }
        };
        // The command may be gone.
        let _ = local_socket::write_line(&mut writer, &answer).await;
    }

    /// A link to the console, or why there is none.
    fn console_link(&self) -> Value {
        let link = self.console.get().zip(self.wiring.console_address());
        match link {
            Some((console, address)) => json!({"link": console.login_link(&address)}),
            None => {
                let why = "the gate that runs has no console: it serves on standard input and output, or \
                           `[console]` is switched off; `gatelet serve` or `gatelet up` starts one that has";
                json!({"error": why})
            }
        }
    }

    /// Serves an MCP session on the rest of a connection.
    async fn serve(
        &self,
        surface: Surface,
        reader: BufReader<OwnedReadHalf>,
        writer: OwnedWriteHalf,
    ) {
        let source = self.wiring.observers().traced_surface(&self.gateway, surface, "unix");
        let options = stdio::Options {
            tracing: self.wiring.observers().transport_tracing(),
            ..stdio::Options::default()
        };
        stdio::serve(source, reader, writer, options).await;
    }

    fn restart(&self, label: &str) -> Value {
        match self.wiring.restart(&self.gateway, label) {
            Some(label) => json!({"restarted": label}),
            None => json!({"error": format!("no upstream is called `{label}`")}),
        }
    }
}
