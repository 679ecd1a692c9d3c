//! The socket in the state directory over which commands on this machine reach
//! a running gatelet.
//!
//! A gatelet and a command find each other when they have the same state directory
//! and the same configuration. Only the owner of the directory may connect: the socket
//! is private, and the kernel reports the user of the other side. The first line is a
//! [`LocalRequest`]; after `mcp` or `session` the rest of the connection is an MCP session,
//! everything else is answered with one line.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tool::hex;

/// A request of a command to a running gatelet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "lowercase")]
pub(crate) enum LocalRequest {
    /// Opens an MCP session for a command, on the `cash` surface.
    Mcp,
    /// Opens an MCP session for a host, on the configured surface.
    Session,
    /// Lists the state of every upstream.
    Status,
    /// Gives the definitions of the tools that every upstream listed.
    Definitions,
    /// Gives the figures of the last hour and the state of every upstream.
    Overview,
    /// Gives the last lines of the log.
    Logs { lines: usize },
    /// Stops one upstream and starts it again.
    Restart { label: String },
    /// Makes a link to the console that logs in once.
    Console,
    /// Lists every request for approval that has not expired.
    Approvals,
    /// Allows or denies a request for approval.
    Decide { number: u64, allow: bool },
}

/// How long a running gatelet may take to answer. One that was stopped or hangs accepts
/// connections all the same, because the kernel does.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// How long it may take to end an upstream and to start it again.
const RESTART_TIMEOUT: Duration = Duration::from_secs(120);

/// The longest line.
const MAX_LINE_BYTES: u64 = 256 << 20;

/// The path of the socket of a configuration.
pub(crate) fn socket(state: &Path, config: Option<&Path>) -> PathBuf {
    state.join(format!("gate-{}.sock", config_digest(config)))
}

/// A short digest of the path of a configuration, by which gatelets that share a state
/// directory are told apart.
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

/// Whether the other side runs as the same user.
pub(crate) fn is_owners(stream: &UnixStream) -> bool {
    let own = rustix::process::geteuid().as_raw();
    stream.peer_cred().is_ok_and(|peer| peer.uid() == own)
}

/// Writes a value as one line of JSON.
pub(crate) async fn write_line(
    stream: &mut (impl AsyncWriteExt + Unpin),
    value: &impl Serialize,
) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    stream.write_all(&line).await
}

/// Reads a value from one line of JSON.
pub(crate) async fn read_line<T: serde::de::DeserializeOwned>(
    reader: &mut (impl AsyncBufReadExt + Unpin),
) -> io::Result<T> {
    let mut line = Vec::new();
    reader.take(MAX_LINE_BYTES).read_until(b'\n', &mut line).await?;
    if line.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(serde_json::from_slice(&line)?)
}

/// Sends a request that is answered with one line, and reads the answer.
pub(crate) async fn ask(mut stream: UnixStream, request: &LocalRequest) -> io::Result<Value> {
    let timeout = match request {
        LocalRequest::Restart { .. } => RESTART_TIMEOUT,
        LocalRequest::Mcp
        | LocalRequest::Session
        | LocalRequest::Status
        | LocalRequest::Definitions
        | LocalRequest::Overview
        | LocalRequest::Logs { .. }
        | LocalRequest::Console
        | LocalRequest::Approvals
        | LocalRequest::Decide { .. } => ANSWER_TIMEOUT,
    };
    in_time(timeout, async {
        write_line(&mut stream, request).await?;
        read_line(&mut BufReader::new(stream)).await
    })
    .await
}

/// Waits for the first answer of a running gatelet, as long as one may take.
pub(crate) async fn first_answer<T>(answer: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    in_time(ANSWER_TIMEOUT, answer).await
}

async fn in_time<T>(
    timeout: Duration,
    answer: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    let too_late = |_| {
        let why = format!(
            "nothing came within {} s; it hangs or was stopped (a signal such as SIGSTOP, a debugger): let it go on or end it",
            timeout.as_secs()
        );
        Err(io::Error::new(io::ErrorKind::TimedOut, why))
    };
    tokio::time::timeout(timeout, answer).await.unwrap_or_else(too_late)
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

    #[tokio::test(start_paused = true)]
    async fn a_gate_that_does_not_answer_is_not_waited_for_without_end() {
        for request in [LocalRequest::Status, LocalRequest::Restart { label: "x".to_owned() }] {
            // The other side takes the connection and stays silent, as a stopped one does.
            let (stream, _silent) = UnixStream::pair().unwrap();
            let error = ask(stream, &request).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{error}");
        }
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
