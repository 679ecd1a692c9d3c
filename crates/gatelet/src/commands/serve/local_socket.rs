//! The side of the gate on its local socket.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gateway::{Gateway, Surface};
use mcp::serve::stdio;
use serde_json::{Value, json};
use tokio::io::BufReader;
use tokio::net::{UnixListener, UnixStream};
use tokio_util::task::AbortOnDropHandle;

use crate::commands::upstreams;
use crate::local::{self, Wish};
use crate::telemetry;
use crate::wire::Wiring;

/// The socket of a gate; it is taken away when dropped.
pub(super) struct LocalSocket {
    path: PathBuf,
    _serving: AbortOnDropHandle<()>,
}

impl Drop for LocalSocket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// What the socket gives access to.
struct Desk {
    wiring: Wiring,
    gateway: Gateway,
}

/// Opens the socket of a gate, unless another gate of the same configuration
/// has it. Where there can be none, commands start what they need themselves.
pub(super) async fn open(
    state: &Path,
    config: Option<&Path>,
    wiring: Wiring,
    gateway: Gateway,
) -> Option<LocalSocket> {
    if local::connect(state, config).await.is_some() {
        return None;
    }
    let path = local::socket(state, config);
    match bind(&path) {
        Ok(listener) => {
            let desk = Arc::new(Desk { wiring, gateway });
            let serving = AbortOnDropHandle::new(tokio::spawn(serve(listener, desk)));
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
        std::fs::create_dir_all(parent)?;
    }
    // Of a gate that was killed.
    let _ = std::fs::remove_file(path);
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

async fn serve(listener: UnixListener, desk: Arc<Desk>) {
    let mut sessions = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) if local::is_owners(&stream) => {
                    let desk = Arc::clone(&desk);
                    sessions.spawn(async move { desk.answer(stream).await });
                }
                Ok(_) => tracing::warn!("somebody else came to the socket and was sent away"),
                Err(error) => {
                    tracing::warn!(%error, "the local socket is closed");
                    return;
                }
            },
            Some(_) = sessions.join_next() => {}
        }
    }
}

impl Desk {
    async fn answer(&self, stream: UnixStream) {
        let (reader, mut writer) = stream.into_split();
        let mut reader = BufReader::new(reader);
        let Ok(wish) = local::read_line::<Wish>(&mut reader).await else { return };
        let told = match wish {
            Wish::Mcp => {
                let source = self.gateway.surface(Surface::Cash);
                stdio::serve(source, reader, writer, stdio::Options::default()).await;
                return;
            }
            Wish::Status => upstreams::rows_of(&self.gateway).await,
            Wish::Logs { lines } => json!(telemetry::recent(lines)),
            Wish::Restart { label } => self.restart(&label),
        };
        // Whoever is gone needs no answer.
        let _ = local::write_line(&mut writer, &told).await;
    }

    fn restart(&self, label: &str) -> Value {
        match self.wiring.restart(&self.gateway, label) {
            Some(label) => json!({"restarted": label}),
            None => json!({"error": format!("no upstream is called `{label}`")}),
        }
    }
}
