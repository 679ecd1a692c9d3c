//! One worker, as the gatelet that started it sees it.

use std::io;
use std::os::fd::OwnedFd;
use std::process::Stdio;

use serde::Serialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;

use super::config::Config;
use crate::protocol::{self, FromWorker};
use crate::worker::ARGUMENT;

/// What a worker may use beside the values of a script.
const OVERHEAD: u64 = 64 << 20;

/// A process, ended when dropped.
pub(super) struct Worker {
    child: Child,
    socket: OwnedReadHalf,
    /// What is to be written. A task writes it, so that neither side waits for the
    /// other to read.
    out: mpsc::UnboundedSender<Vec<u8>>,
    /// Bytes that were read and are no whole frame yet.
    read: Vec<u8>,
}

impl Worker {
    /// Starts a worker and waits until it has confined itself.
    pub(super) async fn start(config: &Config) -> io::Result<Worker> {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let memory = OVERHEAD + 4 * config.limits.memory as u64;
        let child = Command::new(&config.program)
            .args(&config.arguments)
            .arg(ARGUMENT)
            .arg(memory.to_string())
            .arg(std::process::id().to_string())
            .env_clear()
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let (socket, half) = UnixStream::from_std(ours)?.into_split();
        let (out, written) = mpsc::unbounded_channel();
        tokio::spawn(write(half, written));
        let mut worker = Worker { child, socket, out, read: Vec::new() };
        match worker.frame().await? {
            FromWorker::Ready { unenforced: None } => Ok(worker),
            FromWorker::Ready { unenforced: Some(what) } => {
                tracing::warn!(what, "scripts run in a process that is not confined by the kernel");
                Ok(worker)
            }
            FromWorker::Call(_) | FromWorker::Done(_) => {
                Err(io::Error::other("a worker began without a script"))
            }
        }
    }

    pub(super) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    pub(super) fn send<T: Serialize>(&mut self, frame: &T) -> io::Result<()> {
        let mut bytes = Vec::new();
        protocol::write(&mut bytes, frame)?;
        self.out.send(bytes).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    /// The next frame. Nothing is lost when the future is dropped.
    pub(super) async fn frame(&mut self) -> io::Result<FromWorker> {
        loop {
            if let Some(head) = self.read.first_chunk::<4>() {
                let end = 4 + protocol::length(*head)?;
                if end <= self.read.len() {
                    let frame = serde_json::from_slice(&self.read[4..end]);
                    self.read.drain(..end);
                    return frame.map_err(io::Error::other);
                }
            }
            if self.socket.read_buf(&mut self.read).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

/// Writes frames until nobody sends any more, or nobody reads them.
async fn write(mut half: OwnedWriteHalf, mut frames: mpsc::UnboundedReceiver<Vec<u8>>) {
    while let Some(frame) = frames.recv().await {
        if half.write_all(&frame).await.is_err() {
            return;
        }
    }
}
