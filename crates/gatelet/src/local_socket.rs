//! The socket in the state directory over which commands on this machine reach
//! a running gatelet.
//!
//! A gatelet and a command find each other when they have the same state directory
//! and the same configuration. Only the owner of the directory gets in: the
//! socket is theirs alone, and whoever connects is asked for their user by the
//! kernel. The first line says what is wanted; `mcp` makes the rest of the
//! connection a session of the protocol, everything else has one line for an
//! answer.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tool::hex;

/// What a command wants of a running gatelet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "lowercase")]
pub(crate) enum LocalRequest {
    /// A session of the protocol, for a command.
    Mcp,
    /// A session of the protocol, for a host, which sees what is configured.
    Session,
    /// How every upstream fares.
    Status,
    /// How the gate fares over the last hour, and every upstream now.
    Overview,
    /// The last lines of its log.
    Logs { lines: usize },
    /// One upstream stopped and started again.
    Restart { label: String },
    /// A link to the console that logs in once.
    Console,
    /// Every request for approval that has not expired.
    Approvals,
    /// A request for approval allowed or denied.
    Decide { number: u64, allow: bool },
}

/// No wish and no answer to one is longer.
const LONGEST: u64 = 256 << 20;

/// Where the gatelet of a configuration is reached.
pub(crate) fn socket(state: &Path, config: Option<&Path>) -> PathBuf {
    state.join(format!("gate-{}.sock", config_digest(config)))
}

/// Tells the gatelets of one configuration from those of another that share a
/// state directory.
pub(crate) fn config_digest(config: Option<&Path>) -> String {
    let whole = config.map(|file| std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned()));
    let name = whole.map(|file| file.display().to_string()).unwrap_or_default();
    hex::encode(&Sha256::digest(name.as_bytes())[..6])
}

/// Connects to the gatelet of a configuration; `None` when none runs.
pub(crate) async fn connect(state: &Path, config: Option<&Path>) -> Option<UnixStream> {
    let stream = UnixStream::connect(socket(state, config)).await.ok()?;
    is_owners(&stream).then_some(stream)
}

/// Whether the other side is of the same user.
pub(crate) fn is_owners(stream: &UnixStream) -> bool {
    let own = rustix::process::geteuid().as_raw();
    stream.peer_cred().is_ok_and(|peer| peer.uid() == own)
}

/// Writes one line.
pub(crate) async fn write_line(
    stream: &mut (impl AsyncWriteExt + Unpin),
    value: &impl Serialize,
) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    stream.write_all(&line).await
}

/// Reads one line.
pub(crate) async fn read_line<T: serde::de::DeserializeOwned>(
    reader: &mut (impl AsyncBufReadExt + Unpin),
) -> io::Result<T> {
    let mut line = Vec::new();
    reader.take(LONGEST).read_until(b'\n', &mut line).await?;
    if line.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(serde_json::from_slice(&line)?)
}

/// Asks a running gatelet something that has one line for an answer.
pub(crate) async fn ask(mut stream: UnixStream, wish: &LocalRequest) -> io::Result<Value> {
    write_line(&mut stream, wish).await?;
    read_line(&mut BufReader::new(stream)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_of_other_configurations_are_reached_elsewhere() {
        let state = Path::new("/state");
        let sockets = [None, Some(Path::new("/a.toml")), Some(Path::new("/b.toml"))]
            .map(|config| socket(state, config));
        assert!(sockets[0] != sockets[1] && sockets[1] != sockets[2], "{sockets:?}");
        assert_eq!(socket(state, None), sockets[0]);
        assert!(sockets.iter().all(|path| path.starts_with(state)));
    }

    #[tokio::test]
    async fn a_line_is_read_as_it_was_written_and_an_end_is_no_line() {
        let (mut one, other) = tokio::io::duplex(1024);
        let wish = LocalRequest::Restart { label: "files".to_owned() };
        write_line(&mut one, &wish).await.unwrap();
        drop(one);
        let mut other = BufReader::new(other);
        assert_eq!(read_line::<LocalRequest>(&mut other).await.unwrap(), wish);
        assert!(read_line::<LocalRequest>(&mut other).await.is_err());
    }
}
